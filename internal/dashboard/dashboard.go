// Package dashboard is what people see of the gateway in a browser: the dashboard
// of an organization under /dashboard, the portal of its customers under
// /p/{portal_slug}, and the sessions of both.
//
// A session is a row of the database that a random cookie names and that stands
// for a key. Pages make their requests below their own path
// (/dashboard/gw/…, /dashboard/v1/…, /p/{slug}/gw/…) and enters the same
// handlers as a call that presents the key: session and key are looked up again
// each time, and the key's scopes decide. Cookies mean nothing anywhere else.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/httpx"
	"modelgate/internal/people"
	"modelgate/internal/ratelimit"
	"modelgate/internal/store/access"
	"modelgate/internal/store/spend"
)

// Visit is a request of a signed-in page.
type Visit struct {
	Caller  *modelgate.Caller
	Session modelgate.SessionID
	Portal  bool // of a customer, in its reseller's portal
}

// Authenticator finds callers; auth.Authenticator is one.
type Authenticator interface {
	Identify(ctx context.Context, secret string, from auth.Origin) (*modelgate.Caller, error)
	IdentifyDigest(ctx context.Context, digest modelgate.Digest, from auth.Origin) (*modelgate.Caller, error)
}

// Sessions finds sessions by the digests of their cookies; auth.Sessions is
// one.
type Sessions interface {
	Find(ctx context.Context, cookie modelgate.Digest, from auth.Origin) (*modelgate.Session, error)
	Forget(cookie modelgate.Digest)
	ForgetKey(id modelgate.KeyID)
}

// Store is what pages read and write themselves; store.DB is one.
type Store interface {
	StartSession(ctx context.Context, s modelgate.Session, cookie modelgate.Digest) error
	EndSession(ctx context.Context, cookie modelgate.Digest, place string) error
	EndSessionsOfKey(ctx context.Context, id modelgate.KeyID) error
	BrandingBySlug(ctx context.Context, slug string) (modelgate.Branding, error)
	Client(ctx context.Context, id modelgate.ClientID) (modelgate.Client, error)
	Balance(ctx context.Context, id modelgate.ClientID, entries int) (spend.Balance, []spend.BalanceEntry, error)
	Person(ctx context.Context, id modelgate.PersonID) (modelgate.Person, error)
	OrganizationsOf(ctx context.Context, id modelgate.PersonID) ([]access.Organization, error)
	SubAccount(ctx context.Context, client modelgate.ClientID, id modelgate.SubAccountID) (modelgate.SubAccount, error)
}

// Options are what New needs; all fields but BaseURL, OverTLS, Client and KeySession are
// required.
type Options struct {
	// BaseURL is the gateway's public address; "" is wherever a page was
	// opened.
	BaseURL  string
	Keys     Authenticator
	Sessions Sessions
	Store    Store
	People   *people.Service
	Limiter  ratelimit.Limiter
	IDs      *modelgate.IDs
	// Enter answers a request whose path is that of the API, as Visit's caller.
	Enter func(http.ResponseWriter, *http.Request, Visit)
	// OverTLS reports whether the browser reaches the gateway over TLS; nil asks
	// the connection alone.
	OverTLS func(*http.Request) bool
	// Client is the address of a client by that of its peer and the lines of
	// X-Forwarded-For; nil believes no such line.
	Client func(peer netip.Addr, forwarded []string) netip.Addr
	Now    func() time.Time
	Log    *slog.Logger
	// KeySession is how long a session lasts at most that a key opens; nil is
	// modelgate.SessionLife.
	KeySession func() time.Duration
}

// Pages serves the pages. Safe for concurrent use.
type Pages struct {
	Options
	built   *built
	brands  brands
	fetches *http.CrossOriginProtection
	secure  bool // the public address is https
}

// New makes the pages of the web app that was built into the binary.
func New(o Options) (*Pages, error) {
	p := &Pages{Options: o, fetches: http.NewCrossOriginProtection()}
	if p.KeySession == nil {
		p.KeySession = func() time.Duration { return modelgate.SessionLife }
	}
	if p.OverTLS == nil {
		p.OverTLS = httpx.Proxies(nil).OverTLS
	}
	p.brands.found = make(map[string]brandEntry)
	if o.BaseURL != "" {
		base, err := url.Parse(o.BaseURL)
		if err != nil {
			return nil, err
		}
		p.secure = base.Scheme == "https"
		if err := p.fetches.AddTrustedOrigin(base.Scheme + "://" + base.Host); err != nil {
			return nil, err
		}
	}
	var err error
	p.built, err = readBuilt(dist)
	return p, err
}

// Serves reports whether a path is one of the pages'.
func Serves(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "dashboard" || first == "p"
}

// ServeHTTP answers a request that httpx.Wrap has let through and whose path
// Serves.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := p.serve(w, r); err != nil {
		p.fail(w, r, err)
	}
}

func (p *Pages) serve(w http.ResponseWriter, r *http.Request) error {
	guard(w.Header())
	if err := p.fetches.Check(r); err != nil {
		return modelgate.Errorf(modelgate.Forbidden, "this request came from a page of another site")
	}
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/dashboard"); ok && (rest == "" || rest[0] == '/') {
		return p.serveSite(w, r, &site{root: "/dashboard", name: "dashboard"}, rest)
	}
	slug, rest, _ := strings.Cut(strings.TrimPrefix(path, "/p/"), "/")
	if strings.HasPrefix(path, "/p/") && modelgate.PlainSlug(slug) {
		brand, err := p.brand(r.Context(), slug)
		if err == nil {
			return p.serveSite(w, r, &site{root: "/p/" + slug, name: "portal-" + slug, brand: &brand}, "/"+rest)
		}
		if modelgate.KindOf(err) != modelgate.NotFound {
			return err
		}
	}
	noPortal(w, r)
	return nil
}

// site is the dashboard or one portal.
type site struct {
	root  string              // path before the page's own
	name  string              // of the cookie
	brand *modelgate.Branding // nil for the dashboard
}

// serveSite answers a request by what comes after the root.
func (p *Pages) serveSite(w http.ResponseWriter, r *http.Request, at *site, rest string) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	switch {
	case first == "session" && rest == "/session":
		return p.session(w, r, at)
	case first == "session" && strings.HasPrefix(rest, "/session/") && at.brand == nil:
		return p.account(w, r, at, rest)
	case rest == "/sign-in" && at.brand == nil:
		if served, err := p.offers(w, r); served || err != nil {
			return err
		}
	case first == "gw", first == "v1" && at.brand == nil:
		return p.enter(w, r, at)
	case first == "assets" && at.brand == nil:
		return p.built.asset(w, r, strings.TrimPrefix(rest, "/"))
	}
	return p.page(w, r, at)
}

// enter passes a request of a signed-in page to the API, without the headers
// that a browser adds and those that present a key.
func (p *Pages) enter(w http.ResponseWriter, r *http.Request, at *site) error {
	caller, session, err := p.visitor(r, at)
	if err != nil {
		return err
	}
	inner := *r
	inner.URL = new(url.URL)
	*inner.URL = *r.URL
	inner.URL.Path = strings.TrimPrefix(r.URL.Path, at.root)
	inner.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, at.root)
	inner.RequestURI = strings.TrimPrefix(r.RequestURI, at.root)
	inner.Header = r.Header.Clone()
	for _, name := range [...]string{"Cookie", "Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		inner.Header.Del(name)
	}
	p.Enter(w, &inner, Visit{Caller: caller, Session: session.ID, Portal: at.brand != nil})
	return nil
}

// guard sets the headers that every response carries. A response that is not a
// page must not be rendered as one: the replies of providers are shown as text, by
// the pages' own code only.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
