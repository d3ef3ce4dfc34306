package operator

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/store"
)

const (
	// recently is the time that a provider's state is judged by.
	recently = 5 * time.Minute
	// failuresSince is how far back failures are listed, and shownFailures how many.
	failuresSince = time.Hour
	shownFailures = 50
	// fewCalls is how many calls, or failures, say nothing yet.
	fewCalls = 5
	// testPatience bounds a test of a provider.
	testPatience = 10 * time.Second
)

// providerState is how a provider's calls fare.
type providerState string

const (
	providerIdle     providerState = "idle"     // no calls
	providerDown     providerState = "down"     // no call was served
	providerDegraded providerState = "degraded" // a tenth or more failed
	providerOK       providerState = "ok"
)

// providerView is a provider of the configuration with the calls of the last five
// minutes, those of all instances.
type providerView struct {
	Name   string        `json:"name"`
	Status providerState `json:"status"`
	Models int           `json:"models"` // routes of the catalog that lead there
	Calls  providerCalls `json:"calls"`
	Last   *time.Time    `json:"last_call_at"` // null for no calls
}

// providerCalls counts calls by what came of them. Failures are all but served
// calls and faults of clients.
type providerCalls struct {
	All         int64 `json:"all"`
	Served      int64 `json:"served"`
	ClientFault int64 `json:"client_fault"`
	Credential  int64 `json:"credential"`
	Throttled   int64 `json:"throttled"`
	Timeout     int64 `json:"timeout"`
	Failed      int64 `json:"failed"`
}

// failureClass says what a status of a call tells of its provider.
type failureClass string

const (
	noFailure         failureClass = ""
	clientFault       failureClass = "client_fault"
	credentialFailure failureClass = "credential"
	throttledFailure  failureClass = "throttled"
	timeoutFailure    failureClass = "timeout"
	otherFailure      failureClass = "failed" // not reached, or an error of its own
)

func classOf(status int) failureClass {
	switch {
	case status < 400:
		return noFailure
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return credentialFailure
	case status == http.StatusTooManyRequests:
		return throttledFailure
	case status == http.StatusGatewayTimeout:
		return timeoutFailure
	case status >= 500:
		return otherFailure
	}
	return clientFault
}

// failures are the statuses of all failures.
func failures() []store.StatusRange {
	return []store.StatusRange{{Least: 401, Most: 401}, {Least: 403, Most: 403}, {Least: 429, Most: 429}, {Least: 500, Most: 599}}
}

func (c *providerCalls) add(status int, calls int64) {
	c.All += calls
	switch classOf(status) {
	case noFailure:
		c.Served += calls
	case clientFault:
		c.ClientFault += calls
	case credentialFailure:
		c.Credential += calls
	case throttledFailure:
		c.Throttled += calls
	case timeoutFailure:
		c.Timeout += calls
	default:
		c.Failed += calls
	}
}

// state judges calls. One that its client has spoiled says nothing of the provider.
func (c *providerCalls) state() providerState {
	judged := c.All - c.ClientFault
	failed := judged - c.Served
	switch {
	case c.All == 0:
		return providerIdle
	case judged >= fewCalls && c.Served == 0:
		return providerDown
	case failed >= fewCalls && failed*10 >= judged:
		return providerDegraded
	}
	return providerOK
}

// providers lists the providers of the configuration, by name.
func (a *API) providers(ctx context.Context, x *exchange) (any, error) {
	if err := x.ready(); err != nil {
		return nil, err
	}
	return a.providerViews(ctx)
}

func (a *API) providerViews(ctx context.Context) ([]providerView, error) {
	counts, err := a.Store.ProviderCalls(ctx, a.Now().Add(-recently))
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*providerView)
	for name := range a.Providers() {
		byName[name] = &providerView{Name: name, Models: len(a.nativeModels(name))}
	}
	for i := range counts {
		c := &counts[i]
		v := byName[c.Provider]
		if v == nil {
			continue // the configuration has it no more
		}
		if v.Calls.add(c.Status, c.Calls); v.Last == nil || c.Last.After(*v.Last) {
			v.Last = &c.Last
		}
	}
	views := []providerView{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		v := byName[name]
		v.Status = v.Calls.state()
		views = append(views, *v)
	}
	return views, nil
}

// nativeModels are the models of the catalog that lead to a provider, as it names
// them.
func (a *API) nativeModels(name string) []string {
	seen := map[string]bool{}
	for _, model := range a.Catalog().ServedBy(name) {
		for i := range model.Routes {
			if model.Routes[i].Provider == name {
				seen[model.Routes[i].Model] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// named is the provider in the path. Errors: not_found.
func (a *API) named(x *exchange) (*provider.Provider, error) {
	if p := a.Providers()[x.r.PathValue("name")]; p != nil {
		return p, nil
	}
	return nil, modelgate.Errorf(modelgate.NotFound, "provider not found")
}

// providerFailure is a call that failed: nothing of its body, nor of what the
// provider said.
type providerFailure struct {
	At           time.Time          `json:"at"`
	Organization modelgate.ClientID `json:"organization_id"`
	Model        string             `json:"model"`
	Status       int                `json:"status"`
	Class        failureClass       `json:"class"`
	RequestID    string             `json:"request_id"` // and the id of its usage row
}

// providerErrors lists the last failures of a provider, the newest first.
func (a *API) providerErrors(ctx context.Context, x *exchange) (any, error) {
	p, err := a.named(x)
	if err != nil {
		return nil, err
	}
	if err := x.ready(); err != nil {
		return nil, err
	}
	rows, _, err := a.Store.Calls(ctx, store.CallList{
		CallFilter: store.CallFilter{Everyone: true, From: a.Now().Add(-failuresSince), Providers: []string{p.Name()}, Statuses: failures()}, Limit: shownFailures,
	})
	list := []providerFailure{}
	for i := range rows {
		r := &rows[i]
		list = append(list, providerFailure{r.At, r.ClientID, r.CallBegin.Model, r.StatusCode, classOf(r.StatusCode), r.ID.String()})
	}
	return list, err
}

// testProvider makes one free request to a provider; it is no tenant's call.
func (a *API) testProvider(ctx context.Context, x *exchange) (any, error) {
	p, err := a.named(x)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(x.ready(), httpx.SkipBody(x.r, x.maxBody)); err != nil {
		return nil, err
	}
	if _, busy := a.testing.LoadOrStore(p.Name(), true); busy {
		return nil, modelgate.Errorf(modelgate.RateLimited, "one test of a provider at a time")
	}
	defer a.testing.Delete(p.Name())
	if err := a.Store.AddAudit(ctx, "", a.audit(x, "", "provider.test", "provider", p.Name(), nil)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, testPatience)
	defer cancel()
	return p.Probe(ctx, a.nativeModels(p.Name())), nil
}
