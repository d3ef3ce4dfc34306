// Package operator is the HTTP API of whoever runs the gateway, under
// /operator/v1 on a listener of its own: organizations, keys, balances, records
// of changes, and the tokens that may use it. Its callers present operator tokens;
// keys of organizations mean nothing here.
package operator

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/callquery"
	"modelgate/internal/httpx"
	"modelgate/internal/people"
	"modelgate/internal/provider"
	"modelgate/internal/ratelimit"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

// Options are what New needs; all fields are required.
type Options struct {
	Store *store.DB
	// Keys is the cache of keys, which drops those that are revoked here.
	Keys    *auth.Authenticator
	Limiter ratelimit.Limiter
	// Catalog is the catalog of the running configuration.
	Catalog func() *modelgate.Catalog
	// Providers are those of the running configuration, by name.
	Providers func() map[string]*provider.Provider
	// People are the members of organizations.
	People *people.Service
	// JobEnded is called with every job that a poll has ended.
	JobEnded func(*modelgate.JobFinal)
	Cursors  *httpx.Cursors
	IDs      *modelgate.IDs
	Now      func() time.Time
	Log      *slog.Logger
	MaxBody  int64 // bytes of a request body
	// Memory bounds the memory of request bodies; nil has no bound.
	Memory *httpx.MemoryQuota
	// Secure says that browsers reach the console over TLS.
	Secure bool
	// Console serves the console's page and its files.
	Console http.Handler
	// Accounts signs operators in with accounts of an OpenID provider.
	Accounts *people.Service
	// Fault shows an error to a browser that navigates, as a page.
	Fault func(http.ResponseWriter, *http.Request, error)
	// BreakGlass is called for each session that a link opens.
	BreakGlass func()
}

// API serves the endpoints. Safe for concurrent use.
type API struct {
	Options
	mux     *http.ServeMux
	fetches *http.CrossOriginProtection
	guesses *auth.LookupLimiter
	signIns atomic.Pointer[SignIn]
	// questions are about calls.
	questions *callquery.Service
	// testing has an entry for each provider that is tested.
	testing sync.Map
}

const (
	// patience bounds the time that one request may take in the database.
	patience = 30 * time.Second
	// requestsPerSecond is how often one token may ask, and at once after a pause.
	requestsPerSecond = 20
)

// endpoint is one line of the table of endpoints. Errors of serve are answered in
// the envelope; a nil answer is 204.
type endpoint struct {
	pattern string      // method and path, as http.ServeMux reads them
	role    access.Role // who may beside admins; "" is every role
	serve   func(*API, context.Context, *exchange) (any, error)
}

// exchange is one admitted request.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	query   *httpx.Params
	token   access.OperatorToken
	maxBody int64
	memory  *httpx.MemoryQuota
}

func endpoints() []endpoint {
	return []endpoint{
		{"GET /operator/v1/organizations", "", (*API).organizations},
		{"POST /operator/v1/organizations", access.Admin, (*API).createOrganization},
		{"GET /operator/v1/organizations/{org}", "", (*API).organization},
		{"PATCH /operator/v1/organizations/{org}", access.Admin, (*API).patchOrganization},
		{"GET /operator/v1/organizations/{org}/ceiling", "", (*API).ceiling},
		{"PUT /operator/v1/organizations/{org}/ceiling", access.Admin, (*API).putCeiling},
		{"GET /operator/v1/organizations/{org}/subaccounts", "", (*API).subAccounts},
		{"PATCH /operator/v1/organizations/{org}/subaccounts/{id}", access.Support, (*API).patchSubAccount},
		{"GET /operator/v1/organizations/{org}/balance", "", (*API).balance},
		{"POST /operator/v1/organizations/{org}/balance/entries", access.Finance, (*API).credit},
		{"POST /operator/v1/organizations/{org}/keys", access.Admin, (*API).issueKey},
		{"GET /operator/v1/keys", "", (*API).keys},
		{"POST /operator/v1/keys/find", "", (*API).findKeys},
		{"DELETE /operator/v1/keys/{id}", access.Support, (*API).revokeKey},
		{"PUT /operator/v1/keys/{id}/limits", access.Admin, (*API).putKeyLimits},
		{"GET /operator/v1/calls", "", (*API).calls},
		{"GET /operator/v1/report", "", (*API).report},
		{"GET /operator/v1/providers", "", (*API).providers},
		{"GET /operator/v1/providers/{name}/errors", "", (*API).providerErrors},
		{"POST /operator/v1/providers/{name}/test", access.Support, (*API).testProvider},
		{"GET /operator/v1/jobs", "", (*API).jobs},
		{"POST /operator/v1/jobs/{org}/{provider}/{task_id}/poll", access.Support, (*API).pollJob},
		{"GET /operator/v1/events", "", (*API).events},
		{"POST /operator/v1/events/{id}/resend", access.Finance, (*API).resendEvent},
		{"GET /operator/v1/organizations/{org}/people", "", (*API).people},
		{"GET /operator/v1/organizations/{org}/budgets", "", (*API).budgets},
		{"PUT /operator/v1/organizations/{org}/budgets", access.Finance, (*API).putBudget},
		{"DELETE /operator/v1/organizations/{org}/budgets", access.Finance, (*API).deleteBudget},
		{"GET /operator/v1/health", "", (*API).health},
		{"GET /operator/v1/audit", "", (*API).audits},
		{"GET /operator/v1/tokens", access.Admin, (*API).tokens},
		{"POST /operator/v1/tokens", access.Admin, (*API).createToken},
		{"DELETE /operator/v1/tokens/{id}", access.Admin, (*API).deleteToken},
		{"GET /operator/v1/sessions", access.Admin, (*API).sessions},
		{"DELETE /operator/v1/sessions/{id}", access.Admin, (*API).deleteSession},
	}
}

// New makes the API.
func New(o Options) *API {
	a := &API{Options: o, mux: http.NewServeMux(), fetches: http.NewCrossOriginProtection(), guesses: auth.NewLookupLimiter(o.Now)}
	a.questions = &callquery.Service{Store: o.Store, Cursors: o.Cursors, Now: o.Now, Log: o.Log}
	for _, e := range endpoints() {
		a.mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := a.serve(w, r, &e); err != nil {
				a.fail(w, r, err)
			}
		})
	}
	a.Configure(SignIn{Idle: 30 * time.Minute, Absolute: 12 * time.Hour})
	return a
}

// ServeHTTP answers a request that httpx.Wrap has let through. It authenticates
// before it looks for the path and method. The console's page and files are for
// everybody; they hold nothing.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := a.fetches.Check(r); err != nil {
		a.fail(w, r, modelgate.Errorf(modelgate.Forbidden, "this request came from a page of another site"))
		return
	}
	path := r.URL.Path
	if served, err := a.account(w, r, path); served {
		if err != nil {
			a.fail(w, r, err)
		}
		return
	}
	switch {
	case path == "/operator/session":
		if err := a.session(w, r); err != nil {
			a.fail(w, r, err)
		}
		return
	case path == "/operator", strings.HasPrefix(path, "/operator/") && !strings.HasPrefix(path, "/operator/v1/"), strings.HasPrefix(path, "/dashboard/assets/"):
		a.Console.ServeHTTP(w, r)
		return
	}
	if _, pattern := a.mux.Handler(r); pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	if _, err := a.identify(r); err != nil {
		a.fail(w, r, err)
		return
	}
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		a.fail(w, r, modelgate.Errorf(modelgate.NotFound, "no such path"))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	a.fail(w, r, modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use %s", strings.Join(allowed, ", ")))
}

// fail writes an error. An unreachable database passes: the client may retry.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	httpx.LogFault(a.Log, w, r, err)
	if modelgate.KindOf(err) == modelgate.Internal && store.Unreachable(err) {
		err = modelgate.Errorf(modelgate.Unavailable, "the database does not answer; retry shortly")
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		a.Fault(w, r, err)
		return
	}
	httpx.WriteError(w, r, err, httpx.Management)
}

var errUnauthorized = &modelgate.Error{Kind: modelgate.Unauthorized, Message: "invalid operator token"}

// identify finds who asks, by a token or by the cookie of a session. Both are read
// from the database each time, so that what is revoked is refused at once, on every
// instance.
func (a *API) identify(r *http.Request) (access.OperatorToken, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return a.visitor(r)
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if len(values) != 1 || !strings.EqualFold(scheme, "Bearer") {
		return access.OperatorToken{}, errUnauthorized
	}
	return a.lookUp(r, secret, access.OperatorAPIToken)
}

// lookUp finds what a secret of a kind stands for. Errors: unauthorized, and
// rate_limited for an address that presents many that stand for nothing.
func (a *API) lookUp(r *http.Request, secret string, kind access.OperatorKind) (access.OperatorToken, error) {
	if !modelgate.IsOperatorToken(secret) {
		return access.OperatorToken{}, errUnauthorized
	}
	from := auth.OriginOf(r)
	if err := a.guesses.Enter(r.Context(), from); err != nil {
		return access.OperatorToken{}, err
	}
	token, err := a.Store.OperatorToken(r.Context(), modelgate.DigestOf(secret))
	if modelgate.KindOf(err) == modelgate.NotFound {
		a.guesses.Failed(from)
	}
	if modelgate.KindOf(err) == modelgate.NotFound || err == nil && (token.Kind != kind || !token.Live(a.Now()) || !a.stillOffered(&token)) {
		return access.OperatorToken{}, errUnauthorized
	}
	return token, err
}

// stillOffered reports whether the provider that a session was opened with is the
// operators' still.
func (a *API) stillOffered(t *access.OperatorToken) bool {
	return t.Account.Provider == "" || slices.ContainsFunc(a.Accounts.Offers(), func(o people.Offer) bool { return o.Name == t.Account.Provider })
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, e *endpoint) error {
	// A change is completed or not made at all, even if its client has left.
	ctx := r.Context()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	token, err := a.identify(r)
	if err != nil {
		return err
	}
	if e.role != "" && token.Role != access.Admin && token.Role != e.role {
		return modelgate.Errorf(modelgate.Forbidden, "missing operator role: %s", e.role)
	}
	most := requestsPerSecond
	none := 0
	limits := modelgate.Limits{RequestsPerSecond: &most, Burst: &most, Concurrency: &none}
	pass, err := a.Limiter.Enter(modelgate.KeyID(token.ID), limits, ratelimit.Request)
	if err != nil {
		return err
	}
	defer pass.Release()
	x := &exchange{w: w, r: r, query: httpx.ParseParams(r.URL.RawQuery), token: token, maxBody: a.MaxBody, memory: a.Memory}
	answer, err := e.serve(a, ctx, x)
	if wrong := x.query.Err(); wrong != nil {
		return wrong
	}
	switch {
	case err != nil:
		return err
	case answer == any(written{}):
		return nil
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return httpx.WriteJSON(w, answer)
}

// ready ends the reading of a request: parameters that the endpoint has not read
// are refused.
func (x *exchange) ready() error {
	if err := x.query.Err(); err != nil {
		return err
	}
	for _, name := range x.query.Unknown() {
		return x.query.ErrUnknownParam(name)
	}
	return nil
}

// body decodes the request's body strictly.
func (x *exchange) body(into any) error {
	if err := x.ready(); err != nil {
		return err
	}
	memory := x.memory.For("operator")
	defer memory.Release()
	return httpx.ReadJSON(x.r, x.maxBody, &memory, into)
}

// pathID is an id in the path in its canonical spelling; what is no UUID cannot
// exist.
func (x *exchange) pathID(name, noun string) (string, error) {
	id, ok := modelgate.ParseUUID(x.r.PathValue(name))
	if !ok {
		return "", modelgate.Errorf(modelgate.NotFound, "%s not found", noun)
	}
	return id.String(), nil
}

func (x *exchange) org() (modelgate.ClientID, error) {
	id, err := x.pathID("org", "organization")
	return modelgate.ClientID(id), err
}

// page is the window of a list that is sorted in memory: its rows, and the header
// with the cursor of the next. Rows are counted, so rows that come or go between
// two pages shift them.
func page[T any](a *API, x *exchange, rows []T, filter string) ([]T, error) {
	limit := x.query.Int("limit", 1, 200, 50)
	text, given := x.query.Text("cursor")
	if err := x.ready(); err != nil {
		return nil, err
	}
	skip := 0
	if given {
		at, err := a.Cursors.Read(text, filter)
		if err != nil {
			return nil, err
		}
		skip = int(at.At.UnixMicro())
	}
	rows = rows[min(skip, len(rows)):]
	if len(rows) > limit {
		rows = rows[:limit]
		next := httpx.Position{At: time.UnixMicro(int64(skip + limit))}
		x.w.Header().Set("X-Next-Cursor", a.Cursors.Sign(next, filter))
	}
	if rows == nil {
		rows = []T{}
	}
	return rows, nil
}

// audit makes the record of a change by the holder of a token.
func (a *API) audit(x *exchange, client modelgate.ClientID, action, target, id string, set any) modelgate.Audit {
	record := modelgate.Audit{
		ID: a.IDs.New().String(), At: a.Now(), ClientID: client, Action: action,
		Actor:      modelgate.Actor{Operator: string(x.token.Kind) + " " + x.token.ID},
		TargetType: target, TargetID: id, RequestID: httpx.RequestID(x.w).String(),
	}
	if set != nil {
		record.Change, _ = json.Marshal(set) // structs and maps of plain values always marshal
	}
	return record
}

// notFound renames the store's not_found, which speaks of clients.
func notFound(err error) error {
	if e, ok := errors.AsType[*modelgate.Error](err); ok && e.Kind == modelgate.NotFound && e.Message == "client not found" {
		return modelgate.Errorf(modelgate.NotFound, "organization not found")
	}
	return err
}
