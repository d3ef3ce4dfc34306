package dashboard

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// fail writes an error, as a page where a person navigates to it. An unreachable
// database is not the gateway's fault and passes.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	httpx.LogFault(p.Log, w, r, err)
	if modelgate.KindOf(err) == modelgate.Internal && store.Unreachable(err) {
		err = modelgate.Errorf(modelgate.Unavailable, "the database does not answer; retry shortly")
	}
	if navigates(r) {
		writeFault(w, r, err)
		return
	}
	httpx.WriteError(w, r, err, httpx.Management)
}

// plainPage is a page without a script: its title and what there is to say.
const plainPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>%[1]s</title>
<h1>%[1]s</h1>
<p>%[2]s</p>
`

func writePlain(w http.ResponseWriter, r *http.Request, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(text)) // it fails if the client has left
	}
}

func noPortal(w http.ResponseWriter, r *http.Request) {
	writePlain(w, r, http.StatusNotFound, fmt.Sprintf(plainPage, "Not found", "There is nothing at this address."))
}

// navigates reports whether a browser asked for a page, to be read by a
// person.
func navigates(r *http.Request) bool {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// writeFault is the page of an error: what its answer on the API says, and the
// request's id.
func writeFault(w http.ResponseWriter, r *http.Request, err error) {
	shown, ok := errors.AsType[*modelgate.Error](err)
	if !ok {
		shown = modelgate.ErrInternal
	}
	said := html.EscapeString(shown.Message)
	if id := w.Header().Get(httpx.RequestIDHeader); id != "" {
		said += "</p>\n<p>Request <code>" + html.EscapeString(id) + "</code>"
	}
	writePlain(w, r, shown.Kind.Status(), fmt.Sprintf(plainPage, "This page cannot be shown", said))
}
