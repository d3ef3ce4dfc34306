package dashboard

import (
	"net/http"
	"strings"
)

// ConsoleFault shows an error as a page.
func (p *Pages) ConsoleFault(w http.ResponseWriter, r *http.Request, err error) {
	guard(w.Header())
	writeFault(w, r, err)
}

// Console serves the page of the operator's console, which is the same at every path
// below /operator, and the files of the web app below /dashboard/assets.
func (p *Pages) Console(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	err := readOnly(w, r)
	if name, ok := strings.CutPrefix(r.URL.Path, "/dashboard/"); ok && err == nil {
		err = p.built.asset(w, r, name)
	} else if err == nil {
		p.built.page(w, r, "operator.html", "<title>Modelgate operator</title>")
	}
	if err != nil {
		p.fail(w, r, err)
	}
}
