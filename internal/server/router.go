package server

import (
	"net/http"
	"strings"

	"github.com/rs/cors"

	"modelgate"
	"modelgate/internal/dashboard"
	"modelgate/internal/gateway"
	"modelgate/internal/httpx"
	"modelgate/internal/openapi"
	"modelgate/internal/provider/target"
	"modelgate/internal/selfservice"
)

// router sends each request to its surface by the first segment of its path,
// compared as it was sent. It judges the raw target first, because a path
// that two servers could read differently must not be routed at all.
type router struct {
	selfservice *selfservice.API
	gateway     *gateway.Gateway
	snapshot    func() *gateway.Snapshot
	health      *health
	openapi     *openapi.Handler
	dashboard   *dashboard.Pages
	// webhook says that the processor's deliveries are taken.
	webhook bool
	maxBody int64      // bytes
	cors    *cors.Cors // nil where no other site's page may call
	keys    pageKeys
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, escaped := target.EscapedSlug(r.RequestURI); !escaped {
		if err := target.Judge(r.RequestURI); err != nil {
			rt.refuse(w, r, modelgate.Errorf(modelgate.BadRequest, "%s", err))
			return
		}
	}
	if err := rt.judgePageKey(r); err != nil {
		rt.refuse(w, r, err)
		return
	}
	path := r.URL.EscapedPath()
	first, _, _ := strings.Cut(path[1:], "/")
	switch {
	case first == "gw", path == "/v1/models", strings.HasPrefix(path, "/v1/models/"):
		rt.selfservice.ServeHTTP(w, r)
		return
	case first == "v1", path == "/v2/rerank":
		rt.gateway.Door(w, r)
		return
	case rt.webhook && path == "/webhooks/processor", strings.HasPrefix(path, "/webhooks/processor/"):
		rt.selfservice.ServeWebhook(w, r)
		return
	}
	p := rt.snapshot().Providers[first]
	if p == nil && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete) {
		if err := httpx.SkipBody(r, rt.maxBody); err != nil {
			rt.refuse(w, r, err)
			return
		}
	}
	if dashboard.Serves(path) {
		rt.dashboard.ServeHTTP(w, r)
		return
	}
	if rt.health.serve(w, r) || rt.openapi.Serve(w, r, func(err error) { rt.refuse(w, r, err) }) {
		return
	}
	if p != nil {
		rt.gateway.Proxy(w, r, p)
		return
	}
	if path == "/" && rt.home(w, r) {
		return
	}
	rt.refuse(w, r, gateway.NoSuchPath(path))
}

// home redirects a browser that opens the gateway's address to the dashboard. It
// reports false for any other request.
func (rt *router) home(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Vary", "Accept, Sec-Fetch-Mode")
	navigates := strings.Contains(r.Header.Get("Accept"), "text/html")
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		navigates = mode == "navigate"
	}
	if !navigates || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w.Header().Set("Location", "/dashboard")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// serveVisit sends a request of a signed-in page to its surface.
func (rt *router) serveVisit(w http.ResponseWriter, r *http.Request, v dashboard.Visit) {
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, "/gw") || path == "/v1/models" || strings.HasPrefix(path, "/v1/models/") {
		rt.selfservice.ServeFor(w, r, selfservice.Session{Caller: v.Caller, ID: v.Session, Portal: v.Portal})
		return
	}
	rt.gateway.DoorFor(w, r, v.Caller)
}

func (rt *router) refuse(w http.ResponseWriter, r *http.Request, err error) {
	httpx.WriteError(w, r, err, httpx.SurfaceOf(r))
}
