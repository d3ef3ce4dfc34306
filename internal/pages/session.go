package pages

import (
	"context"
	"net/http"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/keyring"
	"modelgate/internal/web"
)

// errNoSession answers a page that is not signed in; the pages then ask for a
// key.
var errNoSession = &modelgate.Error{Kind: modelgate.Unauthorized, Message: "not signed in"}

// audience is what a ticket is bound to: the place and, of a portal, whose it
// is now.
func (at *place) audience() string {
	if at.brand == nil {
		return at.name
	}
	return at.name + "\x00" + string(at.brand.ClientID)
}

// welcomes reports whether a key may sign in: the keys of customers in their
// reseller's portal, all others in the dashboard.
func (at *place) welcomes(c *modelgate.Caller) bool {
	if at.brand == nil {
		return c.SubAccountID == ""
	}
	return c.SubAccountID != "" && c.ClientID == at.brand.ClientID
}

// session answers /session: GET tells who is signed in, POST signs in and
// DELETE out.
func (p *Pages) session(w http.ResponseWriter, r *http.Request, at *place) error {
	switch r.Method {
	case http.MethodGet:
		caller, ends, err := p.visitor(r, at)
		if err != nil {
			return err
		}
		return p.tell(r.Context(), w, at, caller, ends)
	case http.MethodPost:
		return p.signIn(w, r, at)
	case http.MethodDelete:
		http.SetCookie(w, p.cookie(r, at, "", -1))
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Allow", "DELETE, GET, POST")
	return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use DELETE, GET, POST")
}

// credentials is the body of POST /session.
type credentials struct {
	Key string `json:"key"`
}

// maxCredentials bounds that body, in bytes.
const maxCredentials = 4 << 10

func (p *Pages) signIn(w http.ResponseWriter, r *http.Request, at *place) error {
	if p.seals == nil {
		return modelgate.Errorf(modelgate.Unavailable, "%s", p.NoSessions)
	}
	body, err := web.ReadBody(r, maxCredentials, nil)
	if err != nil {
		return err
	}
	var in credentials
	if err := web.DecodeJSON(body, &in); err != nil {
		return err
	}
	secret := strings.TrimSpace(in.Key)
	caller, err := p.Keys.Identify(r.Context(), secret, keyring.OriginOf(r))
	if err != nil {
		return err
	}
	if !at.welcomes(caller) {
		if at.brand == nil {
			return modelgate.Errorf(modelgate.Forbidden, "this key belongs to a customer; its portal is where it signs in")
		}
		return modelgate.ErrUnauthorized // no word on where else the key may be good
	}
	text, ends := p.seals.seal(caller, modelgate.DigestOf(secret), at.audience())
	http.SetCookie(w, p.cookie(r, at, text, int(ends.Sub(p.Now()).Seconds())))
	return p.tell(r.Context(), w, at, caller, ends)
}

// visitor is who is signed in, with the rights that its key has now.
func (p *Pages) visitor(r *http.Request, at *place) (*modelgate.Caller, time.Time, error) {
	if p.seals == nil {
		return nil, time.Time{}, errNoSession
	}
	for _, cookie := range r.CookiesNamed(p.cookieName(r, at)) {
		t, ok := p.seals.open(cookie.Value, at.audience())
		if !ok {
			continue
		}
		caller, err := p.Keys.IdentifyDigest(r.Context(), t.digest, keyring.OriginOf(r))
		switch {
		case modelgate.KindOf(err) == modelgate.Unauthorized:
			return nil, time.Time{}, errNoSession
		case err != nil:
			return nil, time.Time{}, err
		case caller.KeyID == t.key && at.welcomes(caller):
			return caller, t.expires, nil
		}
	}
	return nil, time.Time{}, errNoSession
}

// cookie is the session's cookie; an age below 0 deletes it.
func (p *Pages) cookie(r *http.Request, at *place, value string, age int) *http.Cookie {
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
func (p *Pages) cookieName(r *http.Request, at *place) string {
	if p.overTLS(r) {
		return "__Host-" + at.name
	}
	return at.name
}

func (p *Pages) overTLS(r *http.Request) bool { return p.secure || r.TLS != nil }

// sessionView is what a page needs to know of who is signed in. Of a customer
// it says nothing about the reseller.
type sessionView struct {
	Name             string             `json:"name"` // of the organization, or of the customer
	OrganizationID   modelgate.ClientID `json:"organization_id,omitzero"`
	Billing          modelgate.Billing  `json:"billing,omitzero"`
	Balance          *modelgate.Nano    `json:"balance_usd,omitzero"` // prepaid, for those who may pay into it
	KeyID            modelgate.KeyID    `json:"key_id"`
	Scopes           []modelgate.Scope  `json:"scopes"`
	AllowSelfIssue   bool               `json:"allow_self_issue,omitzero"`
	BaseURL          string             `json:"base_url"` // "" is where the page was opened
	SessionExpiresAt time.Time          `json:"session_expires_at"`
}

func (p *Pages) tell(ctx context.Context, w http.ResponseWriter, at *place, c *modelgate.Caller, ends time.Time) error {
	view := sessionView{KeyID: c.KeyID, Scopes: c.Scopes, BaseURL: p.BaseURL, SessionExpiresAt: ends}
	if at.brand != nil {
		customer, err := p.Store.SubAccount(ctx, c.ClientID, c.SubAccountID)
		if err != nil {
			return err
		}
		view.Name, view.AllowSelfIssue = customer.Name, at.brand.AllowSelfIssue
		return web.WriteJSON(w, view)
	}
	client, err := p.Store.Client(ctx, c.ClientID)
	if err != nil {
		return err
	}
	view.Name, view.OrganizationID, view.Billing = client.Name, client.ID, client.Billing
	if client.Billing == modelgate.Manual && c.Has(modelgate.KeysManage) {
		balance, _, err := p.Store.Balance(ctx, client.ID, 1)
		if err != nil {
			return err
		}
		left := balance.Left()
		view.Balance = &left
	}
	return web.WriteJSON(w, view)
}
