package operator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store/access"
)

const (
	// linkSession is the life of a session that a link opens.
	linkSession = time.Hour
	// maxCredentials bounds the body of POST /operator/session, in bytes.
	maxCredentials = 4 << 10
)

var errNoSession = &modelgate.Error{Kind: modelgate.Unauthorized, Message: "not signed in"}

// session serves /operator/session: GET says who is signed in, POST signs in and
// DELETE signs out.
func (a *API) session(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	r = r.WithContext(ctx)
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		session, err := a.visitor(r)
		if err != nil {
			return err
		}
		return httpx.WriteJSON(w, session)
	case http.MethodPost:
		return a.signIn(w, r)
	case http.MethodDelete:
		return a.signOut(w, r)
	}
	w.Header().Set("Allow", "DELETE, GET, HEAD, POST")
	return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use DELETE, GET, HEAD, POST")
}

// visitor is the session of the request's cookie. Errors: unauthorized.
func (a *API) visitor(r *http.Request) (access.OperatorToken, error) {
	const most = 4 // cookies of one name, set for several paths or domains
	cookies := r.CookiesNamed(a.cookieName(r))
	for _, cookie := range cookies[:min(most, len(cookies))] {
		session, err := a.lookUp(r, cookie.Value, access.OperatorSession)
		if err == nil {
			err = a.Store.TouchOperatorSession(r.Context(), &session)
		}
		if modelgate.KindOf(err) != modelgate.Unauthorized {
			return session, err
		}
	}
	if len(cookies) == 0 && strings.HasPrefix(r.URL.Path, "/operator/v1/") {
		return access.OperatorToken{}, errUnauthorized
	}
	return access.OperatorToken{}, errNoSession
}

// credentials is the body of POST /operator/session: an operator token, or that of
// a link.
type credentials struct {
	Token string `json:"token"`
}

func (a *API) signIn(w http.ResponseWriter, r *http.Request) error {
	var in credentials
	if err := httpx.ReadJSON(r, maxCredentials, nil, &in); err != nil {
		return err
	}
	given := strings.TrimSpace(in.Token)
	token, err := a.lookUp(r, given, access.OperatorAPIToken)
	link := modelgate.KindOf(err) == modelgate.Unauthorized && modelgate.IsOperatorToken(given)
	if err != nil && !link {
		return err
	}
	session := a.newSession(token.Name, token.Role)
	session.Parent = token.ID
	if !link && token.ExpiresAt.Before(session.ExpiresAt) {
		session.ExpiresAt = token.ExpiresAt
	}
	action, actor := "operator.sign_in", token
	if link {
		session.Name, session.Role, session.ExpiresAt, session.Idle = "break glass", access.Admin, session.CreatedAt.Add(linkSession), 0
		action, actor = "operator.break_glass", session
	}
	secret := modelgate.NewOperatorSecret()
	record := a.audit(&exchange{w: w, token: actor}, "", action, "operator_session", session.ID, session)
	if link {
		err = a.Store.UseOperatorLink(r.Context(), modelgate.DigestOf(given), session, secret.Digest(), record)
	} else {
		err = a.Store.AddOperatorToken(r.Context(), session, secret.Digest(), record)
	}
	if err != nil {
		return err
	}
	if link {
		a.BreakGlass()
		a.Log.Warn("a link has opened a session of the operator's console", "session", session.ID, "remote", r.RemoteAddr, "request_id", httpx.RequestID(w).String())
	}
	http.SetCookie(w, a.cookie(r, secret.Reveal(), int(session.ExpiresAt.Sub(session.CreatedAt).Seconds())))
	return httpx.WriteJSON(w, session)
}

// newSession begins a session.
func (a *API) newSession(name string, role access.Role) access.OperatorToken {
	rules, now := a.signIns.Load(), a.Now().UTC().Truncate(time.Microsecond)
	return access.OperatorToken{
		ID: a.IDs.New().String(), Name: name, Role: role, Kind: access.OperatorSession,
		CreatedAt: now, ExpiresAt: now.Add(rules.Absolute), Idle: rules.Idle, LastSeenAt: now,
	}
}

// signOut ends the session and takes the browser's cookie. Without a session there
// is nothing to end.
func (a *API) signOut(w http.ResponseWriter, r *http.Request) error {
	session, err := a.visitor(r)
	if err == nil {
		record := a.audit(&exchange{w: w, token: session}, "", "session.revoke", "operator_session", session.ID, nil)
		err = a.Store.RevokeOperatorToken(r.Context(), session.ID, access.OperatorSession, record)
	}
	if kind := modelgate.KindOf(err); err != nil && kind != modelgate.Unauthorized && kind != modelgate.NotFound {
		return err
	}
	http.SetCookie(w, a.cookie(r, "", -1))
	if session.Account.Provider != "" {
		if leave := a.Accounts.LeaveURL(r.Context(), session.Account.Provider); leave != "" {
			return httpx.WriteJSON(w, location{leave})
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// cookie is the session's cookie; an age below 0 deletes it.
func (a *API) cookie(r *http.Request, value string, age int) *http.Cookie {
	c := &http.Cookie{Name: a.cookieName(r), Value: value, Path: "/operator", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if a.overTLS(r) {
		c.Secure, c.Path = true, "/" // what __Host- asks for
	}
	return c
}

func (a *API) cookieName(r *http.Request) string {
	if a.overTLS(r) {
		return "__Host-operator"
	}
	return "operator"
}

func (a *API) overTLS(r *http.Request) bool { return a.Secure || r.TLS != nil }

// sessions lists the sessions that have not ended, the newest first.
func (a *API) sessions(ctx context.Context, x *exchange) (any, error) {
	if err := x.ready(); err != nil {
		return nil, err
	}
	return a.Store.OperatorTokens(ctx, access.OperatorSession)
}

func (a *API) deleteSession(ctx context.Context, x *exchange) (any, error) {
	id, err := x.pathID("id", "operator session")
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	return nil, a.Store.RevokeOperatorToken(ctx, id, access.OperatorSession, a.audit(x, "", "session.revoke", "operator_session", id, nil))
}
