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

// Handler serves the contract as JSON and as a page.
type Handler struct {
	document func() ([]byte, error) // made at the first request for it
}

// NewHandler makes a handler.
func NewHandler() *Handler { return &Handler{sync.OnceValues(Document)} }

// policy lets the page do nothing but be read.
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Serve answers GET /openapi.json and GET /openapi.html and reports whether
// the path is one of them. An error is passed to refuse, which answers it.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, refuse func(error)) bool {
	body, err := page, error(nil)
	switch r.URL.Path {
	case "/openapi.json":
		w.Header().Set("Content-Type", "application/json")
		body, err = h.document()
	case "/openapi.html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
	default:
		return false
	}
	switch {
	case err != nil:
		refuse(err)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use GET"))
	default:
		sum := sha256.Sum256(body)
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}
	return true
}
