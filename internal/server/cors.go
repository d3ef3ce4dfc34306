package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/cors"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/config"
	"modelgate/internal/httpfield"
)

const (
	// The names of headers that a page's call may have are echoed within these
	// bounds: SDKs send many of their own.
	maxAskedHeaders = 64
	maxAskedText    = 4 << 10 // bytes, in one or several lines

	askedHeaders = "Access-Control-Request-Headers"
	askedMethod  = "Access-Control-Request-Method"
)

// exposedHeaders are what a page may read of an answer beside what browsers
// show it anyway.
func exposedHeaders() []string {
	list := []string{"X-Gateway-Request-Id", "Retry-After", "X-Should-Retry", "RateLimit", "RateLimit-Policy", "X-Gateway-Ignored-Parameters", "X-Gateway-Cost-Usd", "X-Gateway-Parse-Status"}
	for _, figure := range []string{"Limit", "Remaining", "Reset"} {
		list = append(list, "RateLimit-"+figure, "X-RateLimit-"+figure, "X-RateLimit-"+figure+"-Requests", "X-RateLimit-"+figure+"-Tokens")
	}
	return list
}

// newCORS is the rule for other sites' pages, nil where none may call.
// Credentials of the browser are never accepted: keys are in a header.
func newCORS(c config.CORS) *cors.Cors {
	if len(c.Origins) == 0 {
		return nil
	}
	age := int(c.MaxAge.Seconds())
	if age == 0 {
		age = -1 // to the library 0 says nothing
	}
	return cors.New(cors.Options{
		AllowedOrigins: c.Origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{"*"},
		ExposedHeaders: exposedHeaders(),
		MaxAge:         age,
	})
}

// crossOrigin sets what a browser wants to know about a request that a page of
// another site makes, and reports whether that was all: a preflight is answered
// before anybody is identified, because it never has a key.
func (rt *router) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	if rt.cors == nil || !rt.openToPages(r) || len(r.Header["Origin"]) > 1 {
		return false
	}
	preflight := r.Method == http.MethodOptions && r.Header.Get(askedMethod) != ""
	if preflight && !plausible(r.Header[askedHeaders]) {
		w.Header().Set("Vary", "Origin, "+askedMethod+", "+askedHeaders)
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	rt.cors.HandlerFunc(w, r)
	return preflight
}

// openToPages reports whether a path may be called by other sites' pages: model
// doors, lists of models, /gw/me, /gw/quota and the provider proxy.
func (rt *router) openToPages(r *http.Request) bool {
	path := r.URL.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		return false
	}
	switch first, _, _ := strings.Cut(path[1:], "/"); {
	case first == "gw":
		return path == "/gw/me" || path == "/gw/models" || path == "/gw/quota"
	case first == "v1", path == "/v2/rerank":
		return true
	default:
		return rt.snapshot().Providers[first] != nil
	}
}

// plausible reports whether the names of headers in a preflight are names, and
// not too many.
func plausible(lines []string) bool {
	names, size := 0, 0
	for _, line := range lines {
		size += len(line)
		for name := range strings.SplitSeq(line, ",") {
			name = strings.Trim(name, " \t")
			if !httpfield.IsToken(name) && line != "" {
				return false
			}
			names++
		}
	}
	return names <= maxAskedHeaders && size <= maxAskedText
}

// errPageKey refuses a key that a page of another site has sent.
var errPageKey = &modelgate.Error{Kind: modelgate.Forbidden, Message: "keys are not accepted from browsers; mint a token with POST /gw/tokens"}

// pageKeys refuses keys from pages of other sites: whoever opens such a page can
// read its key.
type pageKeys struct {
	accepted bool
	own      string // the origin of the gateway itself, "" where it is not known
	refused  prometheus.Counter
}

func newPageKeys(cfg *config.Config, r registry) pageKeys {
	k := pageKeys{
		accepted: cfg.Server.CORS.AllowKeys, own: originOf(cfg.Server.BaseURL),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "modelgate_cors_refused_total", Help: "Requests of other sites' pages that were refused because they brought a key instead of a token.",
		}),
	}
	r.MustRegister(k.refused)
	return k
}

// originOf is what browsers send in Origin for pages below a URL.
func originOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return ""
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return strings.ToLower(u.Scheme) + "://" + host
}

// judgePageKey refuses a request of another site's page that has a key.
func (rt *router) judgePageKey(r *http.Request) error {
	origin := r.Header["Origin"]
	if rt.cors == nil || rt.keys.accepted || len(origin) != 1 || origin[0] == rt.keys.own || !rt.openToPages(r) || !rt.cors.OriginAllowed(r) {
		return nil
	}
	secret, err := auth.Presented(r.Header, auth.AnyHeader)
	if err != nil || modelgate.IsToken(secret) || !modelgate.WellFormed(secret) {
		return nil // what is no key is refused as such
	}
	rt.keys.refused.Inc()
	return errPageKey
}
