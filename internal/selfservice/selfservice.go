// Package selfservice is the self-service API under /gw and the model list of
// /v1/models, as docs/reference/api.md describes it. routes.go has its endpoints
// with their scopes; the organization a request acts for is always that of its
// key.
package selfservice

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/callquery"
	"modelgate/internal/evidence"
	"modelgate/internal/focus/source"
	"modelgate/internal/httpx"
	"modelgate/internal/people"
	"modelgate/internal/processor"
	"modelgate/internal/ratelimit"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/internal/topup"
)

// Options are what New needs; all fields down to MaxBody are required.
type Options struct {
	Store   *store.DB
	Keys    *auth.Authenticator
	Limiter ratelimit.Limiter
	Rates   *ratelimit.Rates
	// Catalog is the catalog of the running configuration.
	Catalog func() *modelgate.Catalog
	// Doors are the paths of the doors that serve a model, the preferred one
	// first. nil is the same as none for every model.
	Doors func(*modelgate.Model) []string
	// Flushed waits until the calls that this instance has booked can be
	// read from the database, or until the context ends.
	Flushed func(context.Context) error
	Cursors *httpx.Cursors
	// Signer returns the current signer of evidence, or an error where there is none.
	Signer  func(context.Context) (*evidence.Signer, error)
	IDs     *modelgate.IDs
	Now     func() time.Time
	Log     *slog.Logger
	MaxBody int64 // bytes of a request body

	// Memory bounds the memory of request bodies; nil has no bound.
	Memory *httpx.MemoryQuota
	// Processor is the payment processor; nil where no route of it is called.
	Processor *processor.Client
	// Master seals the organizations' keys of the processor; nil is no master
	// key.
	Master *secrets.Keys
	// People are those who sign in; nil where no route of them is called.
	People *people.Service
	// Tokens bounds browser tokens.
	Tokens TokenBounds
	// Checkout is how organizations pay into their balance; the zero value
	// offers no payments.
	Checkout Checkout
	// TopUps are payments into wallets; nil where no route of them is called.
	TopUps *topup.Service
	// Focus is how FOCUS files name things; the zero value is all defaults.
	Focus source.Names
}

// API serves the endpoints. Safe for concurrent use.
type API struct {
	Options
	routes []route
	// questions are about calls.
	questions *callquery.Service
}

// New makes the API.
func New(o Options) *API {
	return &API{Options: o, routes: compile(), questions: &callquery.Service{Store: o.Store, Cursors: o.Cursors, Now: o.Now, Log: o.Log}}
}

const (
	// patience bounds the time that one request may take in the database.
	patience = 30 * time.Second
	// flushPatience is how long a read waits for calls to be booked.
	flushPatience = 2 * time.Second
)

// ServeHTTP answers a request that httpx.Wrap has let through. It
// authenticates before it looks for the path and method.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, err := a.identify(r)
	if err == nil {
		err = a.serve(w, r, Session{Caller: caller})
	}
	if err != nil {
		a.fail(w, r, err)
	}
}

// Session is the signed-in user of a page.
type Session struct {
	// Caller is the key that signed in, with its current rights.
	Caller *modelgate.Caller
	// ID is the session's.
	ID modelgate.SessionID
	// Portal says that it signed in to its reseller's portal, where keys are
	// issued on the terms of modelgate.Caller.SelfIssue only.
	Portal bool
}

// ServeFor is ServeHTTP for a session that has been checked; keys in the
// request's headers are not read.
func (a *API) ServeFor(w http.ResponseWriter, r *http.Request, s Session) {
	if err := a.serve(w, r, s); err != nil {
		a.fail(w, r, err)
	}
}

// fail writes an error. An unreachable database is not the gateway's fault and
// passes: the client may retry.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	httpx.LogFault(a.Log, w, r, err)
	if modelgate.KindOf(err) == modelgate.Internal && store.Unreachable(err) {
		err = modelgate.Errorf(modelgate.Unavailable, "the database does not answer; retry shortly")
	}
	httpx.WriteError(w, r, err, httpx.SurfaceOf(r))
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, s Session) error {
	caller := s.Caller
	found, values, methods := a.find(r)
	if found != nil {
		if err := found.admit(s); err != nil {
			return err
		}
	}
	var shared []ratelimit.Bucket
	if a.Tokens.SharedRates != nil && caller.Token != nil {
		shared = a.Tokens.SharedRates(r, caller)
	}
	pass, err := ratelimit.EnterCaller(a.Limiter, caller, ratelimit.Request, shared...)
	if err != nil {
		return err
	}
	defer pass.Release()
	if found == nil {
		return noRoute(w, methods)
	}
	// A change is completed or not made at all, even if its client has left.
	ctx := r.Context()
	if found.method != http.MethodGet {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return found.serve(a, ctx, &exchange{
		actor:   actor{caller, httpx.RequestID(w).String(), s.Portal, s.ID},
		w:       w,
		r:       r,
		path:    values,
		query:   httpx.ParseParams(r.URL.RawQuery),
		strict:  found.strict,
		maxBody: a.MaxBody,
		memory:  a.Memory,
	})
}

func (a *API) identify(r *http.Request) (*modelgate.Caller, error) {
	place := auth.AnyHeader
	if httpx.SurfaceOf(r) == httpx.Management {
		place = auth.AuthorizationOnly
	}
	return auth.Identify(a.Keys, r, place)
}

// settle waits for this instance's own calls, so that a client reads what it
// has just caused. Calls that are not booked in time are read later.
func (a *API) settle(ctx context.Context) {
	a.await(ctx, "reading before all calls are booked", a.Flushed)
}

// await waits at most flushPatience for something that a read can do without.
// Where it fails, otherwise is logged.
func (a *API) await(ctx context.Context, otherwise string, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	if err := do(ctx); err != nil {
		a.Log.Debug(otherwise, "error", err)
	}
}
