package dashboard

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/httpx"
	"modelgate/internal/ratelimit"
)

// errNoSession answers a page that is not signed in; the pages then ask for a
// key.
var errNoSession = &modelgate.Error{Kind: modelgate.Unauthorized, Message: "not signed in"}

// welcomes reports whether a key may sign in: the keys of customers in their
// reseller's portal, all others in the dashboard.
func (s *site) welcomes(c *modelgate.Caller) bool {
	if s.brand == nil {
		return c.SubAccountID == ""
	}
	return c.SubAccountID != "" && c.ClientID == s.brand.ClientID
}

// session serves /session: GET returns the signed-in user, POST signs in and
// DELETE signs out.
func (p *Pages) session(w http.ResponseWriter, r *http.Request, at *site) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		caller, session, err := p.visitor(r, at)
		if err != nil {
			return err
		}
		return p.writeSession(r.Context(), w, at, caller, session)
	case http.MethodPost:
		return p.signIn(w, r, at)
	case http.MethodDelete:
		return p.signOut(w, r, at)
	}
	w.Header().Set("Allow", "DELETE, GET, HEAD, POST")
	return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use DELETE, GET, HEAD, POST")
}

// credentials is the body of POST /session.
type credentials struct {
	Key string `json:"key"`
}

// maxCredentials bounds that body, in bytes.
const maxCredentials = 4 << 10

func (p *Pages) signIn(w http.ResponseWriter, r *http.Request, at *site) (err error) {
	defer func() { p.People.CountKey(err) }()
	var in credentials
	if err := httpx.ReadJSON(r, maxCredentials, nil, &in); err != nil {
		return err
	}
	secret := strings.TrimSpace(in.Key)
	caller, err := p.Keys.Identify(r.Context(), secret, auth.OriginOf(r))
	if err != nil {
		return err
	}
	if caller.Token != nil {
		return modelgate.ErrTokenRoute
	}
	if !at.welcomes(caller) {
		if at.brand == nil {
			return modelgate.Errorf(modelgate.Forbidden, "this key belongs to a customer; its portal is where it signs in")
		}
		return modelgate.ErrUnauthorized // does not reveal where else the key is valid
	}
	pass, err := p.Limiter.Enter(caller.KeyID, caller.Limits, ratelimit.Request)
	if err != nil {
		return err
	}
	defer pass.Release()
	session, token := p.newSession(caller, modelgate.DigestOf(secret), at, r.UserAgent())
	if err := p.Store.StartSession(r.Context(), session, modelgate.DigestOf(token)); err != nil {
		return err
	}
	// The browser's earlier session ends. If the database does not answer now, it
	// expires.
	_ = p.endSession(r, at)
	http.SetCookie(w, p.cookie(r, at, token, int(session.ExpiresAt.Sub(p.Now()).Seconds())))
	return p.writeSession(r.Context(), w, at, caller, &session)
}

// newSession makes a session of a caller, and the token for its cookie. The
// session expires no later than the key.
func (p *Pages) newSession(c *modelgate.Caller, key modelgate.Digest, at *site, userAgent string) (modelgate.Session, string) {
	id := p.IDs.New()
	now := id.Time()
	ends := now.Add(p.KeySession())
	if !c.ExpiresAt.IsZero() && c.ExpiresAt.Before(ends) {
		ends = c.ExpiresAt
	}
	token := make([]byte, tokenBytes)
	rand.Read(token) // never fails (crypto/rand)
	return modelgate.Session{
		ID: modelgate.SessionID(id.String()), Kind: modelgate.KeySession, Place: at.name,
		ClientID: c.ClientID, KeyID: c.KeyID, Key: key,
		UserAgent: modelgate.CutUserAgent(userAgent), Idle: modelgate.SessionIdle, CreatedAt: now, LastSeenAt: now, ExpiresAt: ends.UTC().Truncate(time.Second),
	}, base64.RawURLEncoding.EncodeToString(token)
}

// tokenBytes are drawn for a session; in a cookie they are tokenLen characters.
const (
	tokenBytes = 32
	tokenLen   = (tokenBytes*8 + 5) / 6
)

// mostTokens bounds the cookies that are tried for one request. A browser sends
// several cookies of one name if another was set for a wider path or domain.
const mostTokens = 4

// tokens are the digests of the request's cookies that can be a session's.
func (p *Pages) tokens(r *http.Request, at *site) (digests []modelgate.Digest) {
	for _, cookie := range r.CookiesNamed(p.cookieName(r, at)) {
		if len(cookie.Value) == tokenLen && len(digests) < mostTokens {
			digests = append(digests, modelgate.DigestOf(cookie.Value))
		}
	}
	return digests
}

// visitor is the caller that is signed in, with the current rights of its key.
func (p *Pages) visitor(r *http.Request, at *site) (*modelgate.Caller, *modelgate.Session, error) {
	from := auth.OriginOf(r)
	for _, digest := range p.tokens(r, at) {
		session, err := p.Sessions.Find(r.Context(), digest, from)
		if err == nil && (session.Place != at.name || !p.People.Good(session)) {
			err = modelgate.ErrUnauthorized
		}
		var caller *modelgate.Caller
		if err == nil {
			caller, err = p.Keys.IdentifyDigest(r.Context(), session.Key, from)
		}
		switch {
		case modelgate.KindOf(err) == modelgate.Unauthorized:
		case err != nil:
			return nil, nil, err
		case caller.KeyID == session.KeyID && at.welcomes(caller):
			return caller, session, nil
		}
	}
	return nil, nil, errNoSession
}

// cookie is the session's cookie; an age below 0 deletes it.
func (p *Pages) cookie(r *http.Request, at *site, value string, age int) *http.Cookie {
	c := &http.Cookie{
		Name: p.cookieName(r, at), Value: value, Path: at.root, MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	if p.overTLS(r) {
		c.Secure, c.Path = true, "/" // what __Host- asks for
	}
	return c
}

// cookieName has the prefix that keeps other hosts of the domain from setting
// the cookie, where TLS makes that possible.
func (p *Pages) cookieName(r *http.Request, at *site) string {
	if p.overTLS(r) {
		return "__Host-" + at.name
	}
	return at.name
}

func (p *Pages) overTLS(r *http.Request) bool { return p.secure || p.OverTLS(r) }

// sessionView describes the signed-in user to a page. A customer's view has no
// member about the reseller.
type sessionView struct {
	Name             string             `json:"name"` // of the organization, or of the customer
	OrganizationID   modelgate.ClientID `json:"organization_id,omitzero"`
	Billing          modelgate.Billing  `json:"billing,omitzero"`
	Balance          *modelgate.Nano    `json:"balance_usd,omitzero"` // prepaid, for those who may pay into it
	KeyID            modelgate.KeyID    `json:"key_id"`
	KeyExpiresAt     time.Time          `json:"key_expires_at,omitzero"`
	Scopes           []modelgate.Scope  `json:"scopes"`
	AllowSelfIssue   bool               `json:"allow_self_issue,omitzero"`
	BaseURL          string             `json:"base_url"` // "" is where the page was opened
	SessionExpiresAt time.Time          `json:"session_expires_at"`
	Person           *personView        `json:"person,omitempty"` // who signed in with an account
}

// writeSession writes the sessionView of a caller.
func (p *Pages) writeSession(ctx context.Context, w http.ResponseWriter, at *site, c *modelgate.Caller, session *modelgate.Session) error {
	view := sessionView{KeyID: c.KeyID, KeyExpiresAt: c.ExpiresAt, Scopes: c.Scopes, BaseURL: p.BaseURL, SessionExpiresAt: session.ExpiresAt}
	if at.brand != nil {
		customer, err := p.Store.SubAccount(ctx, c.ClientID, c.SubAccountID)
		if err != nil {
			return err
		}
		view.Name, view.AllowSelfIssue = customer.Name, at.brand.AllowSelfIssue
		return httpx.WriteJSON(w, view)
	}
	client, err := p.Store.Client(ctx, c.ClientID)
	if err != nil {
		return err
	}
	view.Name, view.OrganizationID, view.Billing = client.Name, client.ID, client.Billing
	if view.Person, err = p.viewPerson(ctx, session); err != nil {
		return err
	}
	if client.Billing == modelgate.Manual && c.Has(modelgate.KeysManage) {
		balance, _, err := p.Store.Balance(ctx, client.ID, 1)
		if err != nil {
			return err
		}
		left := balance.Left()
		view.Balance = &left
	}
	return httpx.WriteJSON(w, view)
}
