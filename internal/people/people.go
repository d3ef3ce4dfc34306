// Package people signs people in to the dashboards of organizations with an
// account of an OpenID provider: authorization code with PKCE, ID tokens, and
// logout from either side. The rules of the configuration say, at each sign-in,
// which organizations an account is a member of.
//
// A member has a hidden key in its organization. A session stands for that key
// as other sessions stand for the key that signed in, so rights, budgets and
// rows are those of keys.
package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/store/access"
)

// Place is where the sessions of people are good.
const Place = "dashboard"

// Store keeps people and their sessions; store.DB is one.
type Store interface {
	SignIn(ctx context.Context, p modelgate.Person, want []access.Membership, audit func() modelgate.Audit) (access.SignedIn, error)
	StartSession(ctx context.Context, s modelgate.Session, cookie modelgate.Digest) error
	EndSessionsOfProvider(ctx context.Context, l access.Logout) error
	OrganizationsOf(ctx context.Context, id modelgate.PersonID) ([]access.Organization, error)
	Members(ctx context.Context, client modelgate.ClientID, after modelgate.PersonID, limit int) ([]access.PersonMember, bool, error)
	ChangeMember(ctx context.Context, client modelgate.ClientID, id modelgate.PersonID, c access.MemberChange) (access.SignedIn, error)
	Sessions(ctx context.Context, client modelgate.ClientID, l access.SessionList) ([]modelgate.Session, bool, error)
	EndSessionByID(ctx context.Context, client modelgate.ClientID, id modelgate.SessionID, of access.SessionOwner, a modelgate.Audit) error
	EndSessionsOfMember(ctx context.Context, client modelgate.ClientID, id modelgate.PersonID, a modelgate.Audit) error
}

// Keys caches keys; auth.Authenticator is one.
type Keys interface {
	ForgetClient(modelgate.ClientID)
}

// Sessions caches sessions; auth.Sessions is one.
type Sessions interface {
	ForgetPeople()
	ForgetSession(modelgate.SessionID)
}

// Options are what New needs; all are required.
type Options struct {
	// BaseURL is the gateway's public address, without a slash at its end; "" only
	// where there are no providers.
	BaseURL string
	// Root is the path that the pages lie below: /dashboard or /operator.
	Root     string
	Secret   []byte // seals sign-ins under way; all instances share it
	Store    Store
	Keys     Keys
	Sessions Sessions
	IDs      *modelgate.IDs
	Now      func() time.Time
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Config is what a reload replaces.
type Config struct {
	Providers []Provider
	Idle      time.Duration // after a session's last request
	Absolute  time.Duration // after its begin
}

// Service signs people in. Safe for concurrent use.
type Service struct {
	Options
	sealer  sealer
	live    atomic.Pointer[live]
	starts  limiter
	logouts limiter
	signIns *prometheus.CounterVec
	took    *prometheus.HistogramVec
}

type live struct {
	Config
	parties []*party
}

// New makes the service without providers; Configure names them.
func New(o Options) (*Service, error) {
	s := &Service{Options: o, starts: limiter{most: maxStarts}, logouts: limiter{most: maxLogouts}}
	var err error
	if s.sealer, err = newSealer(o.Secret, o.Root); err != nil {
		return nil, err
	}
	s.live.Store(&live{})
	s.signIns, err = register(o.Metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelgate_sign_ins_total", Help: "Sign-ins of people and keys, by method (key, or the name of an OpenID provider) and outcome.",
	}, []string{"method", "outcome"}))
	if err != nil {
		return nil, err
	}
	s.signIns.WithLabelValues(methodKey, signedIn)
	s.took, err = register(o.Metrics, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "modelgate_oidc_seconds", Help: "Time that OpenID providers took, by step.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 6),
	}, []string{"step"}))
	return s, err
}

// register registers a collector, or finds that which another service of the
// process has registered.
func register[C prometheus.Collector](with prometheus.Registerer, c C) (C, error) {
	err := with.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if first, ok := known.ExistingCollector.(C); ok {
			return first, nil
		}
	}
	return c, err
}

// Labels of the metrics; the outcome of a sign-in that failed is the kind of its
// error.
const (
	signedIn      = "signed_in"
	methodKey     = "key"
	stepDiscovery = "discovery"
)

// Configure takes a configuration over. Sessions of a provider that is gone end
// at their next request.
func (s *Service) Configure(c Config) {
	next := &live{Config: c}
	for _, p := range c.Providers {
		next.parties = append(next.parties, newParty(p, s.BaseURL+s.Root+"/session/callback", s.Now))
		// An alert on a rate needs the series before the first sign-in.
		s.signIns.WithLabelValues(p.Name, signedIn)
		s.took.WithLabelValues(stepDiscovery)
	}
	old := s.live.Swap(next)
	for _, p := range old.parties {
		p.http.CloseIdleConnections()
	}
}

// Offer is a provider on the sign-in page.
type Offer struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

// Offers are the providers that people can sign in with, in the order of the
// configuration.
func (s *Service) Offers() []Offer {
	list := []Offer{}
	for _, p := range s.live.Load().parties {
		list = append(list, Offer{p.Name, p.Label})
	}
	return list
}

// Good reports whether a session may go on: its provider is configured.
func (s *Service) Good(session *modelgate.Session) bool {
	return session.Kind != modelgate.PersonSession || s.party(session.Provider) != nil
}

func (s *Service) party(name string) *party {
	parties := s.live.Load().parties
	if i := slices.IndexFunc(parties, func(p *party) bool { return p.Name == name }); i >= 0 {
		return parties[i]
	}
	return nil
}

var (
	errStart   = modelgate.Errorf(modelgate.BadRequest, "this sign-in has expired or was started in another browser; start again")
	errUnknown = modelgate.Errorf(modelgate.NotFound, "there is no such sign-in provider")
	errTooMany = modelgate.Errorf(modelgate.RateLimited, "too many sign-ins from this address; try again in a minute")
)

// Begin begins a sign-in: it returns where the browser has to go, and what it
// keeps meanwhile. returnTo is a page of the dashboard, anything else the first.
// Errors: not_found, rate_limited, bad_gateway.
func (s *Service) Begin(ctx context.Context, provider, returnTo string, from netip.Addr) (address, cookie string, err error) {
	p := s.party(provider)
	if p == nil {
		return "", "", errUnknown
	}
	now := s.Now()
	if !s.starts.allow(from, now) {
		return "", "", errTooMany
	}
	d, err := p.discover(ctx)
	s.took.WithLabelValues(stepDiscovery).Observe(s.Now().Sub(now).Seconds())
	if err != nil {
		s.Log.Warn("an OpenID provider does not answer", "provider", p.Name, "error", err)
		return "", "", p.noAnswer(err)
	}
	a := newAttempt(p.Name, s.Root, returnTo, now)
	cookie, err = s.sealer.seal(a)
	return p.address(d, a), cookie, err
}

// Visitor says where a request came from.
type Visitor struct {
	UserAgent string
	RequestID string
}

// Opened is a session that was opened, and the token for its cookie.
type Opened struct {
	Session modelgate.Session
	Token   string
	// ReturnTo is a page of the dashboard.
	ReturnTo string
}

// Finish completes a sign-in with what the provider sent the browser back with.
// Errors: bad_request, forbidden, bad_gateway; also the store's.
func (s *Service) Finish(ctx context.Context, cookie string, answer url.Values, v Visitor) (opened *Opened, err error) {
	err = s.complete(ctx, cookie, answer, v, func(p *party, who *account, returnTo string) error {
		opened, err = s.open(ctx, p, who, returnTo, v)
		return err
	})
	return opened, err
}

// complete judges what a browser came back with, and hands on who it is.
func (s *Service) complete(ctx context.Context, cookie string, answer url.Values, v Visitor, admit func(*party, *account, string) error) error {
	a, err := s.sealer.open(cookie)
	if err != nil || s.Now().After(a.Ends) {
		return errStart
	}
	p := s.party(a.Provider)
	if p == nil {
		return errStart
	}
	who, err := s.redeem(ctx, p, a, answer)
	if err == nil {
		err = admit(p, who, a.ReturnTo)
	}
	s.count(p.Name, err)
	if err != nil {
		s.Log.Warn("a sign-in failed", "provider", p.Name, "error", err, "cause", why(err), "request_id", v.RequestID)
	}
	return err
}

func (s *Service) count(method string, err error) {
	outcome := signedIn
	if err != nil {
		outcome = string(modelgate.KindOf(err))
	}
	s.signIns.WithLabelValues(method, outcome).Inc()
}

// CountKey counts a sign-in with a key; err is nil for one that succeeded.
func (s *Service) CountKey(err error) { s.count(methodKey, err) }

func why(err error) error {
	if c, ok := errors.AsType[*cause](err); ok {
		return c.why
	}
	return nil
}

// redeem is who a browser came back as.
func (s *Service) redeem(ctx context.Context, p *party, a *attempt, answer url.Values) (*account, error) {
	for _, values := range answer {
		if len(values) != 1 {
			return nil, errStart
		}
	}
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(a.State)) != 1 {
		return nil, errStart
	}
	d, err := p.discover(ctx)
	if err != nil {
		return nil, p.noAnswer(err)
	}
	if iss := answer.Get("iss"); iss != p.Issuer && (iss != "" || d.SendsIssuer) {
		return nil, p.bad(errors.New("the answer is another issuer's"))
	}
	if answer.Has("error") {
		return nil, modelgate.Errorf(modelgate.Forbidden, "%s did not sign you in", p.Label)
	}
	if answer.Get("code") == "" {
		return nil, errStart
	}
	began := s.Now()
	who, err := p.redeem(ctx, d, a, answer.Get("code"))
	s.took.WithLabelValues("code").Observe(s.Now().Sub(began).Seconds())
	return who, err
}

// open notes who signed in and opens a session in the first organization.
func (s *Service) open(ctx context.Context, p *party, who *account, returnTo string, v Visitor) (*Opened, error) {
	clients, roles := p.memberships(who)
	now := s.Now()
	person := modelgate.Person{
		ID: modelgate.PersonID(s.IDs.New().String()), Issuer: who.issuer, Subject: who.subject, Email: who.email, Name: who.name, LastSeenAt: now,
	}
	var want []access.Membership
	for _, id := range clients {
		secret := modelgate.NewSecret() // nobody learns it
		want = append(want, access.Membership{ClientID: id, Role: roles[id], Key: access.MemberKey{
			ID: s.IDs.New(), Prefix: secret.Prefix(), Digest: secret.Digest(),
		}})
	}
	in, err := s.Store.SignIn(ctx, person, want, func() modelgate.Audit {
		return modelgate.Audit{ID: s.IDs.New().String(), At: s.Now(), RequestID: v.RequestID}
	})
	if err != nil {
		return nil, err
	}
	for _, id := range in.Unknown {
		s.Log.Warn("a rule for sign-in names an organization that there is not", "provider", p.Name, "organization", id)
	}
	for _, id := range in.Changed { // so that it takes effect at once on this instance
		s.Keys.ForgetClient(id)
		s.Sessions.ForgetPeople()
	}
	if len(in.Members) == 0 {
		return nil, p.noAccess()
	}
	return s.start(ctx, p.Name, who.session, in.Members[0], returnTo, v, now.Add(s.live.Load().Absolute))
}

// start opens a session of a member.
func (s *Service) start(ctx context.Context, provider, providerSession string, m modelgate.Member, returnTo string, v Visitor, ends time.Time) (*Opened, error) {
	id := s.IDs.New()
	token := make([]byte, 32)
	rand.Read(token) // never fails (crypto/rand)
	o := &Opened{ReturnTo: returnTo, Token: base64.RawURLEncoding.EncodeToString(token), Session: modelgate.Session{
		ID: modelgate.SessionID(id.String()), Kind: modelgate.PersonSession, Place: Place, ClientID: m.ClientID, KeyID: m.KeyID,
		PersonID: m.PersonID, Role: m.Role, Provider: provider, ProviderSession: providerSession,
		UserAgent: modelgate.CutUserAgent(v.UserAgent),
		CreatedAt: id.Time(), LastSeenAt: id.Time(), ExpiresAt: ends.UTC().Truncate(time.Second), Idle: s.live.Load().Idle,
	}}
	if o.ReturnTo == "" {
		o.ReturnTo = s.Root
	}
	return o, s.Store.StartSession(ctx, o.Session, modelgate.DigestOf(o.Token))
}

// Switch opens a session of the same person in another of its organizations; it
// ends when the present one would. Errors: not_found.
func (s *Service) Switch(ctx context.Context, from *modelgate.Session, to modelgate.ClientID, v Visitor) (*Opened, error) {
	if from.Kind == modelgate.PersonSession {
		list, err := s.Store.OrganizationsOf(ctx, from.PersonID)
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			if o.ID == to {
				m := modelgate.Member{ClientID: o.ID, PersonID: from.PersonID, Role: o.Role, KeyID: o.KeyID}
				return s.start(ctx, from.Provider, from.ProviderSession, m, "", v, from.ExpiresAt)
			}
		}
	}
	return nil, modelgate.Errorf(modelgate.NotFound, "organization not found")
}
