package dashboard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// errStillOpen is the response to a sign-out while the database does not answer.
var errStillOpen = &modelgate.Error{
	Kind:    modelgate.Unavailable,
	Message: "this browser is signed out, but the database does not answer and the session itself is not ended: it ends by itself within 24 hours, or sign in again and sign out everywhere",
}

// endPatience bounds how long the database is waited for.
const endPatience = 5 * time.Second

// ending is the context in which a session is ended. Like any change, it is
// completed even if the client has left.
func ending(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), endPatience)
}

// signOut ends the session of a request, or all those of its key with
// everywhere=true, and takes the browser's cookie in any case.
func (p *Pages) signOut(w http.ResponseWriter, r *http.Request, at *site) error {
	q := httpx.ParseParams(r.URL.RawQuery)
	everywhere := httpx.OneOf(q, "everywhere", "false", "true", "false") == "true"
	if err := q.Err(); err != nil {
		return err
	}
	_, session, _ := p.visitor(r, at)
	end := p.endSession
	if everywhere {
		end = p.endAllSessions
	}
	err := end(r, at)
	if everywhere && modelgate.KindOf(err) == modelgate.Unauthorized {
		return err
	}
	http.SetCookie(w, p.cookie(r, at, "", -1))
	if store.Unreachable(err) || errors.Is(err, context.DeadlineExceeded) || modelgate.KindOf(err) == modelgate.Unavailable {
		return errStillOpen
	}
	if err != nil {
		return err
	}
	if session != nil && session.Kind == modelgate.PersonSession {
		if leave := p.People.LeaveURL(r.Context(), session.Provider); leave != "" {
			return httpx.WriteJSON(w, location{leave})
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endSession ends the session of a request. A session that has ended already is
// not an error.
func (p *Pages) endSession(r *http.Request, at *site) error {
	for _, digest := range p.tokens(r, at) {
		ctx, cancel := ending(r)
		err := p.Store.EndSession(ctx, digest, at.name)
		cancel()
		p.Sessions.Forget(digest) // before the response, so that it takes effect at once on this instance
		if err != nil {
			return err
		}
	}
	return nil
}

// endAllSessions ends all sessions of the key that a request is signed in with.
func (p *Pages) endAllSessions(r *http.Request, at *site) error {
	caller, _, err := p.visitor(r, at)
	if err != nil {
		return err
	}
	ctx, cancel := ending(r)
	defer cancel()
	err = p.Store.EndSessionsOfKey(ctx, caller.KeyID)
	p.Sessions.ForgetKey(caller.KeyID)
	return err
}
