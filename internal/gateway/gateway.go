// Package gateway serves calls of models. The steps of a call stand in run and
// serve:
//
//	enter      the caller behind the key, its scope, rate and concurrency
//	           (authorize.go), then the rate limits that need to know no more
//	           (rates.go)
//	resolve    the routes that may serve the call (door.go or proxy.go), by its
//	           body (body.go, check.go)
//	authorize  those of them that the caller may use (authorize.go)
//	rates      what the call will use of rate limits (rates.go)
//	reserve    money on the caller's budgets (reserve.go)
//	forward    BEGIN, then one attempt after another (forward.go)
//	stream     the reply, metered as it passes (stream.go)
//	finish     END, once: the usage row of the call (finish.go)
//
// Model doors and provider proxy differ only in how they resolve. Requests about
// existing jobs are handed to package jobs.
package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/budget"
	"modelgate/internal/httpx"
	"modelgate/internal/jobs"
	"modelgate/internal/provider"
	"modelgate/internal/ratelimit"
	"modelgate/internal/yield"
)

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

// Options are what a Gateway needs. All fields down to MaxBody are required; the
// others have defaults.
type Options struct {
	Live    func() *Snapshot
	Keys    auth.Identifier
	Limiter ratelimit.Limiter
	Rates   *ratelimit.Rates
	Books   Books
	Log     *slog.Logger
	Metrics *Metrics
	Jobs    jobs.Ledger
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

	// SharedRates are the buckets that requests with browser tokens share; nil is
	// none.
	SharedRates func(*http.Request, *modelgate.Caller) []ratelimit.Bucket

	// Tracing makes a trace of each call; nil makes none.
	Tracing *Tracing

	// Writes has calls that have come as far leave together; nil has each
	// leave at once.
	Writes *yield.WriteBatcher

	// Memory bounds the memory of request bodies; nil has no bound.
	Memory *httpx.MemoryQuota

	// NoCostHeaders ignores requests for the cost of a call on its answer.
	NoCostHeaders bool

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
	doors    map[string]*door
	jobs     *jobs.Handler
	recent   recentUsage
	texts    textRatios
	drains   *drains
	buffers  sync.Pool // of *[copyBuffer]byte
	timers   sync.Pool // of *stallTimer
	inFlight inFlight
	active   sync.WaitGroup

	warnings warnings
}

// New makes a gateway.
func New(o Options) *Gateway {
	o = o.withDefaults()
	g := &Gateway{Options: o, doors: make(map[string]*door), drains: newDrains(o.MaxDrain)}
	g.timers.New = func() any { return new(stallTimer) }
	g.buffers.New = func() any { return new([copyBuffer]byte) }
	g.recent.routes = make(map[routeName]*sample)
	for i := range doors {
		g.doors[doors[i].path] = &doors[i]
	}
	g.jobs = jobs.New(jobs.Options{
		Ledger: o.Jobs, Flushed: o.Flushed, Ended: g.JobEnded, Log: o.Log, Metrics: o.Metrics.jobs, MaxBody: o.MaxBody, Lag: o.Lag,
		Memory: o.Memory, Lifetime: o.Lifetime, MaxReply: o.MaxReply, Stuck: o.Stuck,
		Unreached: func(id modelgate.UUID, provider string, err error) { g.unreached(id, provider, nil, err) },
	})
	return g
}

// Cut ends every call under way, for the end of a process. They are booked as
// far as they came.
func (g *Gateway) Cut() {
	g.inFlight.cancel()
	g.jobs.Cut()
}

// Wait returns when no call is under way. No new one may begin meanwhile.
func (g *Gateway) Wait() { g.active.Wait() }

// Door answers a request under /v1/ that is not a model list.
func (g *Gateway) Door(w http.ResponseWriter, r *http.Request) { g.DoorFor(w, r, nil) }

// DoorFor is Door for a caller whose session has been checked: keys in the
// request's headers are not read. A nil caller is found by its key.
func (g *Gateway) DoorFor(w http.ResponseWriter, r *http.Request, caller *modelgate.Caller) {
	if len(r.URL.Path) > len(jobs.DoorPath) && strings.HasPrefix(r.URL.Path, jobs.DoorPath) {
		g.serveJob(w, r, caller, g.jobs.Door)
		return
	}
	g.serve(w, r, caller, nil, g.resolveDoor)
}

// Proxy answers a request on the provider-prefixed route of p.
func (g *Gateway) Proxy(w http.ResponseWriter, r *http.Request, p *provider.Provider) {
	path, route, captures := proxyRoute(r, p)
	if route != nil && route.Async != "" && route.Async != provider.AsyncCreate && r.Header.Get("Upgrade") == "" {
		g.serveJob(w, r, nil, func(q *jobs.Request) error { return g.jobs.Proxy(q, p, route, captures) })
		return
	}
	g.serve(w, r, nil, p, func(c *call) error { return g.resolveProxy(c, p, path, route, captures) })
}

// inbound is what calls and requests about jobs have in common.
type inbound struct {
	w        http.ResponseWriter
	r        *http.Request
	id       modelgate.UUID
	start    time.Time // with a monotonic reading
	snapshot *Snapshot
	caller   *modelgate.Caller // nil until it is identified
	surface  string            // the door's path, or the pattern of a proxy path; "" until it is resolved
	// awsErrors: the client reads the kind of an error out of a header of AWS's.
	awsErrors bool
}

func (g *Gateway) receive(w http.ResponseWriter, r *http.Request, caller *modelgate.Caller) inbound {
	return inbound{w: w, r: r, id: httpx.RequestID(w), start: time.Now(), snapshot: g.Live(), caller: caller}
}

// refuse answers a request with an error. model is what it called, nil where
// that is unknown.
func (g *Gateway) refuse(in *inbound, model *modelgate.Model, err error) {
	httpx.LogFault(g.Log, in.w, in.r, err)
	g.Metrics.refused(modelgate.KindOf(err))
	g.traceRefusal(in, model, err)
	if in.awsErrors {
		in.w.Header().Set("X-Amzn-Errortype", awsError(modelgate.KindOf(err)))
		in.w.Header().Set("X-Amzn-Requestid", in.id.String())
	}
	httpx.WriteError(in.w, in.r, err, httpx.Inference)
}

// serve runs a call. The deferred finish writes its END and releases what it
// holds, whatever happens, panics included. proxied is the provider whose own path
// was called; nil for a door.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, caller *modelgate.Caller, proxied *provider.Provider, resolve func(*call) error) {
	g.active.Add(1)
	defer g.active.Done()
	c := &call{inbound: g.receive(w, r, caller), texts: &g.texts}
	c.awsErrors = proxied != nil && proxied.AWSErrors()
	defer g.finish(c)
	if err := g.run(c, resolve); err != nil {
		g.refuse(&c.inbound, c.model, err)
	}
	c.reuse()
}

// run is the one order of steps on every surface.
func (g *Gateway) run(c *call, resolve func(*call) error) (err error) {
	if c.pass, err = g.enter(&c.inbound); err != nil {
		return err
	}
	if c.entryRates, err = g.enterRates(&c.inbound); err != nil {
		return err
	}
	if err := resolve(c); err != nil {
		return err
	}
	if err := g.authorize(c); err != nil {
		return g.refusalPrecedence(c, err)
	}
	if err := g.limitRates(c); err != nil {
		return err
	}
	if err := g.reserveBudget(c); err != nil {
		return err
	}
	return g.forward(c)
}

// serveJob serves a request about an existing job, which is not a call: nothing
// is reserved or booked.
func (g *Gateway) serveJob(w http.ResponseWriter, r *http.Request, caller *modelgate.Caller, serve func(*jobs.Request) error) {
	g.active.Add(1)
	defer g.active.Done()
	in := g.receive(w, r, caller)
	pass, err := g.enter(&in)
	defer pass.Release()
	var entered ratelimit.Taken
	if err == nil {
		entered, err = g.enterRates(&in)
		defer entered.End()
	}
	if err == nil {
		q := &jobs.Request{W: w, R: r, ID: in.id, Caller: in.caller, Catalog: in.snapshot.Catalog, Providers: in.snapshot.Providers}
		err = serve(q)
		in.surface = q.Surface
	}
	if err == nil {
		entered.Keep()
	} else {
		g.refuse(&in, nil, err)
	}
}

// JobEnded notes a job that has ended, whoever noticed.
func (g *Gateway) JobEnded(f *modelgate.JobFinal) {
	g.Metrics.jobs.Ended(f)
	if f.Status == modelgate.JobSucceeded {
		end := modelgate.CallEnd{StatusCode: http.StatusOK, Cost: f.Cost, Usage: f.Usage}
		g.recent.note(routeName{f.Job.Provider, f.Job.Model}, f.Job.Kind, &end, false)
	}
}
