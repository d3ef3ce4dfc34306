package dashboard

import (
	"context"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/people"
)

// signInOffers is what the sign-in page offers beside a key.
type signInOffers struct {
	Providers []people.Offer `json:"providers"`
}

// offers serves GET /dashboard/sign-in for pages' code; it reports false for a
// person's browser, which is shown the page.
func (p *Pages) offers(w http.ResponseWriter, r *http.Request) (bool, error) {
	if navigates(r) {
		return false, nil
	}
	if err := onlyMethod(w, r, http.MethodGet); err != nil {
		return true, err
	}
	return true, httpx.WriteJSON(w, signInOffers{p.People.Offers()})
}

func onlyMethod(w http.ResponseWriter, r *http.Request, method string) error {
	if r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
		return nil
	}
	w.Header().Set("Allow", method)
	return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use %s", method)
}

// account serves what lies below /dashboard/session: signing in with an account
// of an OpenID provider, its logout, and the switch between organizations.
func (p *Pages) account(w http.ResponseWriter, r *http.Request, at *site, rest string) error {
	if provider, ok := strings.CutPrefix(rest, "/session/back-channel-logout/"); ok {
		if err := onlyMethod(w, r, http.MethodPost); err != nil {
			return err
		}
		return p.backChannelLogout(w, r, provider)
	}
	method, serve := http.MethodPost, p.startAccount
	switch rest {
	case "/session/start":
	case "/session/callback":
		method, serve = http.MethodGet, p.finishAccount
	case "/session/organization":
		serve = p.switchOrganization
	default:
		return modelgate.Errorf(modelgate.NotFound, "no such path")
	}
	if err := onlyMethod(w, r, method); err != nil {
		return err
	}
	return serve(w, r, at)
}

// start is the body of POST /dashboard/session/start.
type start struct {
	Provider string  `json:"provider"`
	ReturnTo *string `json:"return_to" null:"absent"`
}

type location struct {
	URL string `json:"url"`
}

func (p *Pages) startAccount(w http.ResponseWriter, r *http.Request, at *site) error {
	var in start
	if err := httpx.ReadJSON(r, maxCredentials, nil, &in); err != nil {
		return err
	}
	returnTo := ""
	if in.ReturnTo != nil {
		returnTo = *in.ReturnTo
	}
	address, cookie, err := p.People.Begin(r.Context(), in.Provider, returnTo, p.clientOf(r))
	if err != nil {
		return err
	}
	http.SetCookie(w, p.attemptCookie(r, cookie, int(people.AttemptLife.Seconds())))
	return httpx.WriteJSON(w, location{address})
}

// attemptCookie holds a sign-in under way. It is sent with the navigation that
// comes back from the provider, which a strict cookie would not be.
func (p *Pages) attemptCookie(r *http.Request, value string, age int) *http.Cookie {
	c := p.cookie(r, &site{root: "/dashboard/session", name: "sign-in"}, value, age)
	c.SameSite = http.SameSiteLaxMode
	return c
}

// finishAccount takes the browser back from the provider.
func (p *Pages) finishAccount(w http.ResponseWriter, r *http.Request, at *site) error {
	held := ""
	if c, err := r.Cookie(p.attemptCookie(r, "", 0).Name); err == nil {
		held = c.Value
	}
	http.SetCookie(w, p.attemptCookie(r, "", -1))
	answer, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return modelgate.Errorf(modelgate.BadRequest, "the query cannot be read")
	}
	opened, err := p.People.Finish(r.Context(), held, answer, p.visit(w, r))
	if err != nil {
		return err
	}
	p.enterSession(w, r, at, opened)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", opened.ReturnTo)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

func (p *Pages) visit(w http.ResponseWriter, r *http.Request) people.Visitor {
	return people.Visitor{UserAgent: r.UserAgent(), RequestID: httpx.RequestID(w).String()}
}

// enterSession gives the browser a session in place of the one that it had. If
// the database does not answer now, that one expires.
func (p *Pages) enterSession(w http.ResponseWriter, r *http.Request, at *site, o *people.Opened) {
	_ = p.endSession(r, at)
	http.SetCookie(w, p.cookie(r, at, o.Token, int(o.Session.ExpiresAt.Sub(p.Now()).Seconds())))
}

// organization is the body of POST /dashboard/session/organization.
type organization struct {
	ClientID string `json:"client_id"`
}

func (p *Pages) switchOrganization(w http.ResponseWriter, r *http.Request, at *site) error {
	_, session, err := p.visitor(r, at)
	if err != nil {
		return err
	}
	var in organization
	if err := httpx.ReadJSON(r, maxCredentials, nil, &in); err != nil {
		return err
	}
	id, ok := modelgate.ParseUUID(in.ClientID)
	if !ok {
		return modelgate.Errorf(modelgate.NotFound, "organization not found")
	}
	opened, err := p.People.Switch(r.Context(), session, modelgate.ClientID(id.String()), p.visit(w, r))
	if err != nil {
		return err
	}
	p.enterSession(w, r, at, opened)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// backChannelLogout takes a logout token of a provider, which comes from the
// provider itself and not from a browser.
func (p *Pages) backChannelLogout(w http.ResponseWriter, r *http.Request, provider string) error {
	w.Header().Set("Cache-Control", "no-store")
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return modelgate.Errorf(modelgate.BadRequest, "want a form with logout_token")
	}
	body, err := httpx.ReadBody(r, maxLogoutForm, nil)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["logout_token"]) != 1 {
		return modelgate.Errorf(modelgate.BadRequest, "want a form with one logout_token")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), logoutPatience)
	defer cancel()
	if err := p.People.Logout(ctx, provider, form.Get("logout_token"), p.clientOf(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

const (
	maxLogoutForm  = 32 << 10 // bytes
	logoutPatience = 15 * time.Second
)

// clientOf is the address that a request came from.
func (p *Pages) clientOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero address where it cannot be read
	if p.Client == nil {
		return peer.Addr()
	}
	return p.Client(peer.Addr().Unmap(), r.Header["X-Forwarded-For"])
}

// personView is who is signed in with an account.
type personView struct {
	ID            modelgate.PersonID `json:"id"`
	Name          string             `json:"name"`
	Email         string             `json:"email"`
	Role          modelgate.Role     `json:"role"`
	Organizations []organizationView `json:"organizations"` // that the person can switch to, this one included
}

type organizationView struct {
	ID   modelgate.ClientID `json:"id"`
	Name string             `json:"name"`
}

// viewPerson is nil for a session that was opened with a key.
func (p *Pages) viewPerson(ctx context.Context, session *modelgate.Session) (*personView, error) {
	if session.Kind != modelgate.PersonSession {
		return nil, nil
	}
	person, err := p.Store.Person(ctx, session.PersonID)
	if err != nil {
		return nil, err
	}
	list, err := p.Store.OrganizationsOf(ctx, session.PersonID)
	if err != nil {
		return nil, err
	}
	view := &personView{ID: person.ID, Name: person.Name, Email: person.Email, Role: session.Role, Organizations: []organizationView{}}
	for _, o := range list {
		view.Organizations = append(view.Organizations, organizationView{o.ID, o.Name})
	}
	return view, nil
}
