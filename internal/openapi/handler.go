package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"modelgate"
)

// Handler serves the description, as JSON and as a page. What it serves is
// made at the first request for it.
type Handler struct {
	document func() (rendered, error)
	page     func() (rendered, error)
}

// rendered is a body and its validator.
type rendered struct {
	body []byte
	etag string
}

// NewHandler makes a handler.
func NewHandler() *Handler {
	return &Handler{
		document: sync.OnceValues(func() (rendered, error) { return render(Document()) }),
		page:     sync.OnceValues(func() (rendered, error) { return render(Page()) }),
	}
}

func render(body []byte, err error) (rendered, error) {
	sum := sha256.Sum256(body)
	return rendered{body, `"` + hex.EncodeToString(sum[:8]) + `"`}, err
}

// policy lets the page do nothing but be read.
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Serve answers GET /openapi.json and GET /openapi.html and reports whether
// the path is one of them; any other method is refused by the caller's
// refuse.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, refuse func(error)) bool {
	var made rendered
	var err error
	switch r.URL.Path {
	case "/openapi.json":
		w.Header().Set("Content-Type", "application/json")
		made, err = h.document()
	case "/openapi.html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		made, err = h.page()
	default:
		return false
	}
	switch {
	case err != nil:
		refuse(err)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(errMethod)
	default:
		w.Header().Set("ETag", made.etag)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(made.body))
	}
	return true
}

// errMethod refuses what is no reading.
var errMethod = modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use GET")
