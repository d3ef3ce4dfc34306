package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"modelgate"
)

// dist is the web app as it was built; without a build it holds no page.
//
//go:embed all:dist
var dist embed.FS

// unbuilt is the response in place of a page where there is no build.
const unbuilt = "The pages are not part of this binary: run \"make build\", which needs Node.js 20 or later, and start bin/modelgate.\n"

// policy is the Content-Security-Policy of a page: its own files and the
// gateway's answers, pictures of logos from wherever their owners keep them,
// and no inline code or style at all.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' https: data:; " +
	"media-src blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// file is a built file.
type file struct {
	plain []byte
	// zipped is its compressed form, made when it is first asked for: a start
	// does not wait for it. It is nil for files that are compressed already.
	zipped func() []byte
	kind   string // Content-Type
}

// kinds are the content types of built files; those of the machine may differ.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".woff2": "font/woff2",
}

func newFile(name string, text []byte) file {
	f := file{plain: text, kind: cmp.Or(kinds[path.Ext(name)], "application/octet-stream")}
	if path.Ext(name) != ".woff2" {
		f.zipped = sync.OnceValue(func() []byte { return compress(text) })
	}
	return f
}

// built is the web app. A page has a place for its head, which differs from
// portal to portal.
type built struct {
	files map[string]file // by path below dist
	pages map[string]page // dashboard.html and portal.html
}

type page struct{ before, after string }

// headMark is where the head of a page goes.
const headMark = "<!--head-->"

func readBuilt(dir fs.FS) (*built, error) {
	b := &built{files: make(map[string]file), pages: make(map[string]page)}
	err := fs.WalkDir(dir, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "dist/")
		if path.Ext(name) != ".html" {
			b.files[name] = newFile(name, text)
			return nil
		}
		before, after, ok := strings.Cut(string(text), headMark)
		if !ok {
			return fmt.Errorf("built page %s has no %s", name, headMark)
		}
		b.pages[name] = page{before, after}
		return nil
	})
	return b, err
}

func compress(text []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that exists
	_, _ = z.Write(text)                                  // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// asset answers a built file; its name changes with its content, so it may be
// kept for ever.
func (b *built) asset(w http.ResponseWriter, r *http.Request, name string) error {
	f, ok := b.files[name]
	if !ok {
		return modelgate.Errorf(modelgate.NotFound, "no such file")
	}
	if err := readOnly(w, r); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	f.write(w, r)
	return nil
}

func (f file) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	body := f.plain
	if f.zipped != nil {
		h.Add("Vary", "Accept-Encoding")
		if acceptsGzip(r) {
			h.Set("Content-Encoding", "gzip")
			body = f.zipped()
		}
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // it fails if the client has left
	}
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

func readOnly(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	w.Header().Set("Allow", "GET, HEAD")
	return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use GET")
}

// brandView is what a portal's page knows before anyone has signed in.
type brandView struct {
	ProductName string  `json:"product_name"`
	LogoURL     *string `json:"logo_url"`
	AccentColor *string `json:"accent_color"`
}

// page answers every other path with the page, which finds out itself what
// the path means.
func (p *Pages) page(w http.ResponseWriter, r *http.Request, at *site) error {
	if err := readOnly(w, r); err != nil {
		return err
	}
	name, head := "dashboard.html", "<title>Modelgate</title>"
	if at.brand != nil {
		brand, err := json.Marshal(brandView{at.brand.ProductName, at.brand.LogoURL, at.brand.AccentColor})
		if err != nil {
			return err
		}
		name = "portal.html"
		head = "<title>" + html.EscapeString(at.brand.ProductName) + "</title>" +
			`<meta name="brand" content="` + html.EscapeString(string(brand)) + `">`
	}
	p.built.page(w, r, name, head)
	return nil
}

// page writes a page with its head.
func (b *built) page(w http.ResponseWriter, r *http.Request, name, head string) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	page, ok := b.pages[name]
	if !ok {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(unbuilt)) // it fails if the client has left
		return
	}
	h.Set("Content-Security-Policy", policy)
	newFile(name, []byte(page.before+head+page.after)).write(w, r)
}
