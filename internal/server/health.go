package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"modelgate"
	"modelgate/internal/httpx"
)

// maxSilence is how old the last good read of the database may be before the
// instance calls itself not ready: as long as known keys are served without
// it.
const maxSilence = 85 * time.Second

// health answers the probes and the metrics.
type health struct {
	lastRead func() time.Time // of the database; zero before the first
	draining atomic.Bool
	metrics  http.Handler
	// shared says that metrics are served here, to this machine only.
	shared bool
}

func newHealth(lastRead func() time.Time, reg *prometheus.Registry) *health {
	return &health{lastRead: lastRead, metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{})}
}

// serve answers a probe and reports whether the path is one.
func (h *health) serve(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.EscapedPath() { // as it was sent: what stands in front may look at that
	case "/healthz":
		h.answer(w, r, "")
	case "/readyz":
		h.answer(w, r, h.unready())
	case "/metrics":
		if !h.shared || !Loopback(r.RemoteAddr) || !local(r.Host) || forwarded(r) {
			return false
		}
		h.metrics.ServeHTTP(w, r)
	default:
		return false
	}
	return true
}

// forwarded reports whether a reverse proxy says that a request comes from
// somewhere else than its connection.
func forwarded(r *http.Request) bool {
	for _, name := range [...]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"} {
		if len(r.Header[name]) > 0 {
			return true
		}
	}
	return false
}

// local reports whether a request's Host names this machine to itself. A proxy
// that adds no header of its own may pass on the name its client asked for, and
// a page in a browser on this machine can have a name of its own lead here.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// unready is why no traffic should come here, "" when it should.
func (h *health) unready() string {
	last := h.lastRead()
	switch {
	case h.draining.Load():
		return "draining"
	case last.IsZero():
		return "the database has not answered yet"
	case time.Since(last) > maxSilence:
		return "the database has not answered for too long"
	}
	return ""
}

func (h *health) answer(w http.ResponseWriter, r *http.Request, trouble string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		httpx.WriteError(w, r, modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use GET"), httpx.Inference)
		return
	}
	if trouble != "" {
		httpx.WriteError(w, r, modelgate.Errorf(modelgate.Unavailable, "%s", trouble), httpx.Inference)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // the prober is gone: nobody is left to tell
}

// Loopback reports whether an address, with a port, is this machine's own.
func Loopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
