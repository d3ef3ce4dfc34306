package people

import (
	"context"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
)

// maxLogoutToken bounds a logout token, in bytes.
const maxLogoutToken = 16 << 10

// Logout takes a provider's logout token: the session that it names ends, or all
// of the account. Errors: bad_request, not_found, rate_limited; also the store's.
func (s *Service) Logout(ctx context.Context, provider, token string, from netip.Addr) error {
	p := s.party(provider)
	if p == nil {
		return errUnknown
	}
	if !s.logouts.allow(from, s.Now()) {
		return errTooMany
	}
	d, err := p.discover(ctx)
	if err != nil {
		return p.noAnswer(err)
	}
	if len(token) > maxLogoutToken {
		return errLogoutToken
	}
	t, err := d.verifier.VerifyLogout(p.context(ctx), token)
	now := s.Now()
	if err != nil || t.IssuedAt.IsZero() || t.IssuedAt.After(now.Add(leeway)) || t.Expiry.After(now.Add(maxLogoutLife)) {
		s.Log.Warn("a logout token is not good", "provider", p.Name, "error", err)
		return errLogoutToken
	}
	if len(t.TokenID) > maxSubject || len(t.SessionID) > maxSubject || len(t.Subject) > maxSubject {
		return errLogoutToken
	}
	err = s.Store.EndSessionsOfProvider(ctx, access.Logout{
		Issuer: p.Issuer, TokenID: t.TokenID, Expires: t.Expiry.Add(leeway), Session: t.SessionID, Subject: t.Subject,
	})
	s.Sessions.ForgetPeople() // before the response, so that it takes effect at once on this instance
	return err
}

// maxLogoutLife bounds how long a logout token may be good, and so how long it is
// remembered.
const maxLogoutLife = time.Hour

var errLogoutToken = modelgate.Errorf(modelgate.BadRequest, "logout_token is not a logout token of this provider for this application")

// LeaveURL is where a browser ends its session at the provider too; "" where the
// provider has no such address, or does not answer.
func (s *Service) LeaveURL(ctx context.Context, provider string) string {
	p := s.party(provider)
	if p == nil {
		return ""
	}
	d, err := p.discover(ctx)
	if err != nil || d.EndSession == "" {
		return ""
	}
	u, err := url.Parse(d.EndSession)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.ClientID)
	q.Set("post_logout_redirect_uri", s.BaseURL+s.Root)
	u.RawQuery = q.Encode()
	return u.String()
}

// The requests that one address may make in a minute.
const (
	maxStarts  = 20
	maxLogouts = 600
)

// limiter counts by address and minute. Safe for concurrent use.
type limiter struct {
	most int

	mu     sync.Mutex
	minute int64
	counts map[netip.Prefix]int
}

// maxCounted bounds the addresses that are counted in a minute: those above it
// share one count.
const maxCounted = 10_000

func (l *limiter) allow(from netip.Addr, now time.Time) bool {
	bits := 32
	if from = from.Unmap(); from.Is6() {
		bits = 64
	}
	network, _ := from.Prefix(bits) // the zero value for the zero address
	l.mu.Lock()
	defer l.mu.Unlock()
	if minute := now.Unix() / 60; minute != l.minute || l.counts == nil {
		l.minute, l.counts = minute, make(map[netip.Prefix]int)
	}
	if _, known := l.counts[network]; !known && len(l.counts) >= maxCounted {
		network = netip.Prefix{}
	}
	l.counts[network]++
	return l.counts[network] <= l.most
}
