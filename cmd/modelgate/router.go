package main

import (
	"net/http"
	"strings"

	"github.com/rs/cors"

	"modelgate"
	"modelgate/internal/dashboard"
	"modelgate/internal/gateway"
	"modelgate/internal/httpx"
	"modelgate/internal/openapi"
	"modelgate/internal/provider"
	"modelgate/internal/selfservice"
)

// router sends each request to its surface by the first segment of its path,
// compared as it was sent. It judges the raw target first, because a path
// that two servers could read differently must not be routed at all.
type router struct {
	manage *selfservice.API
	relay  *gateway.Gateway
	live   func() *gateway.Snapshot
	health *health
	api    *openapi.Handler
	pages  *dashboard.Pages
	// webhook says that the processor's deliveries are taken.
	webhook bool
	maxBody int64      // bytes
	cors    *cors.Cors // nil where no other site's page may call
}

func (f *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, escaped := provider.EscapedSlug(r.RequestURI); !escaped {
		if err := provider.JudgeTarget(r.RequestURI); err != nil {
			f.refuse(w, r, modelgate.Errorf(modelgate.BadRequest, "%s", err))
			return
		}
	}
	path := r.URL.EscapedPath()
	first, _, _ := strings.Cut(path[1:], "/")
	switch {
	case first == "gw", path == "/v1/models", strings.HasPrefix(path, "/v1/models/"):
		f.manage.ServeHTTP(w, r)
		return
	case first == "v1", path == "/v2/rerank":
		f.relay.Door(w, r)
		return
	case f.webhook && path == "/webhooks/processor":
		f.manage.ServeWebhook(w, r)
		return
	}
	p := f.live().Providers[first]
	if p == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete) {
		if err := httpx.SkipBody(r, f.maxBody); err != nil {
			f.refuse(w, r, err)
			return
		}
	}
	if dashboard.Serves(path) {
		f.pages.ServeHTTP(w, r)
		return
	}
	if f.health.serve(w, r) || f.api.Serve(w, r, func(err error) { f.refuse(w, r, err) }) {
		return
	}
	if p != nil {
		f.relay.Proxy(w, r, p)
		return
	}
	if path == "/" && f.home(w, r) {
		return
	}
	f.refuse(w, r, modelgate.Errorf(modelgate.NotFound, "no such path"))
}

// home leads a browser that opens the gateway's address to the dashboard, and
// reports whether the request is such a one's.
func (f *router) home(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	h.Set("Location", "/dashboard")
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusFound)
	return true
}

// enter sends a request of a signed-in page to its surface.
func (f *router) enter(w http.ResponseWriter, r *http.Request, v dashboard.Visit) {
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, "/gw") || path == "/v1/models" || strings.HasPrefix(path, "/v1/models/") {
		f.manage.ServeFor(w, r, selfservice.Session{Caller: v.Caller, Portal: v.Portal})
		return
	}
	f.relay.DoorFor(w, r, v.Caller)
}

func (f *router) refuse(w http.ResponseWriter, r *http.Request, err error) {
	httpx.WriteError(w, r, err, httpx.SurfaceOf(r))
}
