// Package gateway is the way of a call: it admits it, resolves what it wants,
// forwards it to a provider, meters the reply as it passes and books the
// result. Model doors and provider proxy differ only in how they resolve.
package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/budget"
	"modelgate/internal/yield"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/ratelimit"
)

// Authenticator finds the caller of a presented secret; auth.Authenticator is one.
type Authenticator interface {
	Identify(ctx context.Context, secret string, from auth.Origin) (*modelgate.Caller, error)
}

// Books are where calls are recorded; spool.Calls is one. A call that cannot
// begin must not be made.
type Books interface {
	// Begin returns once the call survives the death of the process.
	Begin(*modelgate.CallBegin) error
	// Mark notes what a call has used so far; it never waits.
	Mark(modelgate.UUID, *modelgate.CallEnd)
	// End returns once the end is as durable as the configuration asks.
	End(modelgate.UUID, *modelgate.CallEnd) error
}

// Jobs is the ledger of asynchronous jobs; *store.DB is one.
type Jobs interface {
	// Job finds an organization's job, at any provider for "". Errors:
	// modelgate.ErrNoTask.
	Job(ctx context.Context, client modelgate.ClientID, provider string, task modelgate.TaskID) (*modelgate.Job, error)
	// FinishJobs ends those of the jobs that are pending, and returns them.
	FinishJobs(context.Context, []modelgate.JobFinal) (ended []modelgate.JobFinal, err error)
}

// Options are what a Gateway needs. All fields down to MaxBody are required; the
// others have defaults.
type Options struct {
	Live    func() *Snapshot
	Keys    Authenticator
	Limiter ratelimit.Limiter
	Books   Books
	Log     *slog.Logger
	Metrics *Metrics
	Jobs    Jobs
	// Flushed waits until the jobs that this instance has made are in the
	// ledger.
	Flushed func(context.Context) error
	MaxBody int64 // bytes of a request body

	// Lag is how long a job that another instance has made may take to be in
	// the ledger; 0 where there is no other.
	Lag time.Duration

	// Budgets reserves what calls cost of their caller's budgets; nil enforces
	// none.
	Budgets *budget.Enforcer

	// Tracing makes a trace of each call; nil makes none.
	Tracing *Tracing

	// Writes has calls that have come as far leave together; nil has each
	// leave at once.
	Writes *yield.WriteBatcher

	// Memory bounds the memory of request bodies; nil has no bound.
	Memory *httpx.MemoryQuota

	// MaxDrain replies at once are read on after their clients have left,
	// each for DrainFor at most; 256 and 60 s.
	MaxDrain int
	DrainFor time.Duration
	// Lifetime bounds an upstream call; one hour.
	Lifetime time.Duration
	// MaxReply bounds a reply, in bytes as they came; 1 GiB. What is longer is
	// cut.
	MaxReply int64
	// Stuck is how long a client may take nothing of a reply that has been
	// written; one minute. Then it has left.
	Stuck time.Duration
}

func (o Options) withDefaults() Options {
	o.MaxDrain = cmp.Or(o.MaxDrain, 256)
	o.DrainFor = cmp.Or(o.DrainFor, time.Minute)
	o.Lifetime = cmp.Or(o.Lifetime, time.Hour)
	o.MaxReply = cmp.Or(o.MaxReply, 1<<30)
	o.Stuck = cmp.Or(o.Stuck, time.Minute)
	return o
}

// Gateway serves doors and provider proxy. It is safe for concurrent use.
type Gateway struct {
	Options
	doors   map[string]*door
	recent  recent
	drains  *drains
	buffers sync.Pool // of *[copyBuffer]byte
	paces   sync.Pool // of *pace
	lives   *inFlight
	active  sync.WaitGroup

	warnings warnings
}

// New makes a gateway.
func New(o Options) *Gateway {
	o = o.withDefaults()
	y := &Gateway{Options: o, doors: make(map[string]*door), drains: newDrains(o.MaxDrain)}
	y.lives = newLives()
	y.paces.New = func() any { return new(stallTimer) }
	y.buffers.New = func() any { return new([copyBuffer]byte) }
	y.recent.routes = make(map[routeName]*sample)
	for i := range doors {
		y.doors[doors[i].path] = &doors[i]
	}
	return y
}

// Cut ends every call under way, for the end of a process. They are booked as
// far as they came.
func (g *Gateway) Cut() { g.lives.end(errEnding) }

// Wait returns when no call is under way. No new one may begin meanwhile.
func (g *Gateway) Wait() { g.active.Wait() }

// Door answers a request under /v1/ that is not a model list.
func (g *Gateway) Door(w http.ResponseWriter, r *http.Request) {
	g.serve(w, r, nil, g.resolveDoor)
}

// DoorFor is Door for a caller whose session has been checked; keys in the
// request's headers are not read.
func (g *Gateway) DoorFor(w http.ResponseWriter, r *http.Request, caller *modelgate.Caller) {
	g.serve(w, r, caller, g.resolveDoor)
}

// Proxy answers a request on the provider-prefixed route of p.
func (g *Gateway) Proxy(w http.ResponseWriter, r *http.Request, p *provider.Provider) {
	g.serve(w, r, nil, func(c *call) error { return g.resolveProxy(c, p) })
}

// serve is the one order of steps on every surface. The deferred exit closes
// the books whatever happens, panics included. caller is nil where it follows
// from the request's headers.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, caller *modelgate.Caller, resolve func(*call) error) {
	g.active.Add(1)
	defer g.active.Done()
	c := &call{w: w, r: r, id: httpx.RequestID(w), start: time.Now(), snapshot: g.Live(), caller: caller}
	defer g.finish(c)
	if err := g.run(c, resolve); err != nil {
		httpx.LogFault(g.Log, w, r, err)
		g.Metrics.refused(modelgate.KindOf(err))
		g.traceRefusal(c, err)
		httpx.WriteError(w, r, err, httpx.Inference)
	}
	c.reuse()
}

func (g *Gateway) run(c *call, resolve func(*call) error) error {
	if err := g.identify(c); err != nil {
		return err
	}
	if err := g.enter(c); err != nil {
		return err
	}
	if err := resolve(c); err != nil {
		return err
	}
	if c.jobRequest != nil {
		return g.runErrand(c)
	}
	if err := g.permit(c); err != nil {
		return g.refusalPrecedence(c, err)
	}
	if err := g.reserveBudget(c); err != nil {
		return err
	}
	return g.forward(c)
}
