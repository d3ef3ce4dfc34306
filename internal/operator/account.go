package operator

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/people"
	"modelgate/internal/store/access"
)

// SignIn is how operators sign in to the console.
type SignIn struct {
	Roles    []RoleRule
	Idle     time.Duration // after a session's last request
	Absolute time.Duration // after its begin
}

// RoleRule makes the accounts of a group operators.
type RoleRule struct {
	Group string // "*" for every account
	Role  access.Role
}

// role is that of the first rule that fits; "" for none.
func (s *SignIn) role(groups []string) access.Role {
	for _, r := range s.Roles {
		if r.Group == "*" || slices.Contains(groups, r.Group) {
			return r.Role
		}
	}
	return ""
}

// Configure takes a configuration over. The role of a session that is open stays
// until the next sign-in.
func (a *API) Configure(s SignIn) { a.signIns.Store(&s) }

type offers struct {
	Providers []people.Offer `json:"providers"`
}

type start struct {
	Provider string  `json:"provider"`
	ReturnTo *string `json:"return_to" null:"absent"`
}

type location struct {
	URL string `json:"url"`
}

// account serves signing in with an account of an OpenID provider, below
// /operator; it reports false for any other path.
func (a *API) account(w http.ResponseWriter, r *http.Request, path string) (bool, error) {
	method, serve := http.MethodPost, a.startAccount
	switch path {
	case "/operator/session/offers":
		method, serve = http.MethodGet, a.offers
	case "/operator/session/start":
	case "/operator/session/callback":
		method, serve = http.MethodGet, a.finishAccount
	default:
		if !strings.HasPrefix(path, logoutPath) {
			return false, nil
		}
		serve = a.backChannelLogout
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return true, modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use %s", method)
	}
	w.Header().Set("Cache-Control", "no-store")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	return true, serve(w, r.WithContext(ctx))
}

const (
	logoutPath    = "/operator/session/back-channel-logout/"
	maxLogoutForm = 32 << 10 // bytes
)

func (a *API) offers(w http.ResponseWriter, _ *http.Request) error {
	return httpx.WriteJSON(w, offers{a.Accounts.Offers()})
}

func (a *API) startAccount(w http.ResponseWriter, r *http.Request) error {
	body, err := httpx.ReadBody(r, maxCredentials, nil)
	if err != nil {
		return err
	}
	var in start
	if err := httpx.DecodeJSON(body, &in); err != nil {
		return err
	}
	returnTo := ""
	if in.ReturnTo != nil {
		returnTo = *in.ReturnTo
	}
	address, held, err := a.Accounts.Begin(r.Context(), in.Provider, returnTo, peer(r))
	if err != nil {
		return err
	}
	http.SetCookie(w, a.attemptCookie(r, held, int(people.AttemptLife.Seconds())))
	return httpx.WriteJSON(w, location{address})
}

func peer(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero address where it cannot be read
	return at.Addr()
}

// attemptCookie holds a sign-in under way. It is sent with the navigation that
// comes back from the provider, which a strict cookie would not be.
func (a *API) attemptCookie(r *http.Request, value string, age int) *http.Cookie {
	c := a.cookie(r, value, age)
	c.Name += "-sign-in"
	c.SameSite = http.SameSiteLaxMode
	return c
}

// finishAccount takes the browser back from the provider, and opens a session
// where a rule makes the account an operator.
func (a *API) finishAccount(w http.ResponseWriter, r *http.Request) error {
	held := ""
	if c, err := r.Cookie(a.attemptCookie(r, "", 0).Name); err == nil {
		held = c.Value
	}
	http.SetCookie(w, a.attemptCookie(r, "", -1))
	answer, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return modelgate.Errorf(modelgate.BadRequest, "the query cannot be read")
	}
	return a.Accounts.Identify(r.Context(), held, answer, people.Visitor{UserAgent: r.UserAgent(), RequestID: httpx.RequestID(w).String()}, func(who people.Account) (bool, error) {
		rules := a.signIns.Load()
		role := rules.role(who.Groups)
		if role == "" {
			return false, nil
		}
		session := a.newSession(cmp.Or(who.Email, who.Name, who.Subject), role)
		session.Account = access.OperatorAccount{Provider: who.Provider, Issuer: who.Issuer, Subject: who.Subject, Session: who.Session}
		secret := modelgate.NewOperatorSecret()
		// Records name nobody.
		record := a.audit(&exchange{w: w, token: session}, "", "operator.sign_in", "operator_session", session.ID, map[string]any{"role": role, "provider": who.Provider})
		if err := a.Store.AddOperatorToken(r.Context(), session, secret.Digest(), record); err != nil {
			return false, err
		}
		http.SetCookie(w, a.cookie(r, secret.Reveal(), int(session.ExpiresAt.Sub(session.CreatedAt).Seconds())))
		w.Header().Set("Location", who.ReturnTo)
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusSeeOther)
		return true, nil
	})
}

// backChannelLogout takes a logout token, which comes from the provider itself and
// not from a browser.
func (a *API) backChannelLogout(w http.ResponseWriter, r *http.Request) error {
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
	if err := a.Accounts.Logout(r.Context(), strings.TrimPrefix(r.URL.Path, logoutPath), form.Get("logout_token"), peer(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
