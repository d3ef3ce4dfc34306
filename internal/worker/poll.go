package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

const (
	// pollPause is between two looks for jobs that are due, pollBatch how many
	// are taken at once, and pollQueue how many may wait: fewer than can be
	// asked for in pollLease, the least time for which a job is claimed.
	pollPause = time.Second
	pollBatch = 256
	pollQueue = 512
	pollLease = 5 * time.Second
	// pollConns bounds the polls at one time, lanePolls those of one provider,
	// so that one that hangs leaves room for the others.
	pollConns = 48
	lanePolls = 32
	pollTime  = 20 * time.Second
	// laneStall is how long a provider whose polls all hang keeps jobs waiting:
	// then they leave the queue to others, and come again with another claim.
	laneStall = time.Second
	// laneFaults in a row let a provider rest, from the first to the last of
	// these, each time for twice as long.
	laneFaults = 3
	firstRest  = 2 * time.Second
	lastRest   = time.Minute
	// finishBatch bounds a transaction that ends jobs.
	finishBatch = 64
	countPause  = 15 * time.Second
)

// JobLedger is where jobs are kept; *store.DB is one.
type JobLedger interface {
	ClaimJobs(ctx context.Context, most int) ([]modelgate.Job, error)
	FinishJobs(context.Context, []modelgate.JobFinal) (ended []modelgate.JobFinal, err error)
	PendingJobs(context.Context) (n int64, oldest time.Time, err error)
}

// JobProvider is asked about its jobs; *provider.Provider is one. The error is
// modelgate.ErrCredentialGone where nobody can ask for the job any more; any
// other passes.
type JobProvider interface {
	Ask(context.Context, *modelgate.Job) (modelgate.JobNews, error)
}

// Poller ends the jobs that nobody polls: it asks the providers for those that
// are due, and gives up those whose deadline has passed. Several instances
// share the work by claims; that a job is claimed twice costs a poll and
// nothing else. Run may be called once.
type Poller struct {
	Ledger JobLedger
	// Provider finds a provider of the running configuration, nil for none.
	Provider func(name string) JobProvider
	// Ended is told of every job that this poller has ended, Polled of every
	// poll: ended, runs or fault.
	Ended  func(*modelgate.JobFinal)
	Polled func(provider, outcome string)
	Now    func() time.Time
	Log    *slog.Logger

	slots  chan struct{}
	finals chan modelgate.JobFinal
	wake   chan struct{} // a token when there is room for more jobs
	asking sync.WaitGroup

	mu     sync.Mutex
	lanes  map[string]*lane
	queued int
	full   bool // at the last look there was no room, and jobs may be due

	pending atomic.Int64
	oldest  atomic.Int64 // unix microseconds; 0 without any
	claims  atomic.Int64
}

// lane is the jobs of one provider that wait to be asked for.
type lane struct {
	queue  []claimed
	busy   int
	moved  time.Time // when a poll last began or ended
	faults int
	rest   time.Duration
	until  time.Time // it rests until then
}

// claimed is a job and when it was claimed.
type claimed struct {
	job modelgate.Job
	at  time.Time
}

// PollerStats are figures of the moment.
type PollerStats struct {
	Pending int64         // jobs of all instances, as of some seconds ago
	Oldest  time.Duration // age of the oldest of them
	Claims  int64         // transactions that claimed jobs
}

// Stats are the poller's figures.
func (p *Poller) Stats() PollerStats {
	s := PollerStats{Pending: p.pending.Load(), Claims: p.claims.Load()}
	if at := p.oldest.Load(); at != 0 {
		s.Oldest = p.Now().Sub(time.UnixMicro(at))
	}
	return s
}

// Run polls until the context ends.
func (p *Poller) Run(ctx context.Context) {
	p.lanes = make(map[string]*lane)
	p.slots, p.finals, p.wake = make(chan struct{}, pollConns), make(chan modelgate.JobFinal, pollConns), make(chan struct{}, 1)
	var finisher sync.WaitGroup
	finisher.Go(func() { p.finish(ctx) })
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	var counted time.Time
	for ctx.Err() == nil {
		p.clear()
		for p.claim(ctx) {
		}
		if now := p.Now(); now.Sub(counted) >= countPause {
			p.count(ctx)
			counted = now
		}
		select {
		case <-tick.C:
		case <-p.wake:
		case <-ctx.Done():
		}
	}
	p.asking.Wait()
	close(p.finals)
	finisher.Wait()
}

// claim takes a batch where there is room for one. It reports whether there
// may be more to take at once.
func (p *Poller) claim(ctx context.Context) bool {
	if !p.room() {
		return false
	}
	now := p.Now()
	jobs, err := p.Ledger.ClaimJobs(ctx, pollBatch)
	if err != nil {
		if ctx.Err() == nil {
			p.Log.Warn("jobs wait for the database", "error", err)
		}
		return false
	}
	if len(jobs) > 0 {
		p.claims.Add(1)
	}
	for i := range jobs {
		p.enqueue(ctx, claimed{jobs[i], now})
	}
	return len(jobs) == pollBatch
}

// room reports whether there is room for a batch, and remembers that there
// was none.
func (p *Poller) room() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = pollQueue-p.queued < pollBatch
	return !p.full
}

// stalls reports whether all of a lane's polls hang.
func (l *lane) stalls(now time.Time) bool { return l.busy == lanePolls && now.Sub(l.moved) > laneStall }

// clear takes the jobs of providers that hang out of the queue.
func (p *Poller) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	for _, l := range p.lanes {
		if l.stalls(now) {
			p.queued -= len(l.queue)
			l.queue = nil
		}
	}
}

// count refreshes the figures.
func (p *Poller) count(ctx context.Context) {
	n, oldest, err := p.Ledger.PendingJobs(ctx)
	if err != nil {
		return // they stay as they are; claiming says that the database is away
	}
	p.pending.Store(n)
	p.oldest.Store(0)
	if n > 0 {
		p.oldest.Store(oldest.UnixMicro())
	}
}

// enqueue gives a job to its provider's lane, and starts one who asks.
func (p *Poller) enqueue(ctx context.Context, c claimed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[c.job.Provider]
	if l == nil {
		l = new(lane)
		p.lanes[c.job.Provider] = l
	}
	if l.stalls(p.Now()) {
		return
	}
	l.queue = append(l.queue, c)
	p.queued++
	if l.busy < lanePolls {
		l.moved = p.Now()
		l.busy++
		p.asking.Go(func() { p.serve(ctx, l) })
	}
}

// next takes a job out of a lane; false where there is none. The rest is
// dropped while the provider rests, and when a claim has run out: they come
// again with another claim.
func (p *Poller) next(l *lane) (claimed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.makeRoom()
	now := p.Now()
	l.moved = now
	for len(l.queue) > 0 {
		c := l.queue[0]
		l.queue = l.queue[1:]
		p.queued--
		overdue := !now.Before(c.job.Deadline)
		if overdue || now.Sub(c.at) < pollLease && !now.Before(l.until) {
			return c, true
		}
	}
	l.busy--
	return claimed{}, false
}

// makeRoom has more jobs claimed once there is room for them again. Where there
// always was, the next tick is early enough: a look at the ledger for each job
// that was polled would be many.
func (p *Poller) makeRoom() {
	if !p.full || pollQueue-p.queued < pollBatch {
		return
	}
	p.full = false
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// serve asks for the jobs of a lane, one after the other.
func (p *Poller) serve(ctx context.Context, l *lane) {
	for {
		c, ok := p.next(l)
		if !ok {
			return
		}
		if ctx.Err() != nil {
			continue // empties the lane
		}
		news := p.ask(ctx, l, &c.job)
		if final, ok := c.job.Finish(news); ok {
			p.finals <- final
		}
	}
}

// ask polls a job, unless its provider rests. A job whose deadline has passed
// is over, whatever was answered.
func (p *Poller) ask(ctx context.Context, l *lane, j *modelgate.Job) modelgate.JobNews {
	news, err := p.poll(ctx, l, j)
	switch {
	case errors.Is(err, modelgate.ErrCredentialGone):
		return modelgate.JobNews{Event: modelgate.JobLost}
	case ctx.Err() != nil:
		return modelgate.JobNews{}
	case err != nil:
		p.Log.Debug("a job's provider could not be asked", "provider", j.Provider, "task_id", j.TaskID, "error", err)
	}
	if _, _, ends := modelgate.Next(j.Status, news.Event); !ends && !p.Now().Before(j.Deadline) {
		return modelgate.JobNews{Event: modelgate.JobOverdue}
	}
	return news
}

// errResting says that a provider is not asked for the moment.
var errResting = errors.New("the provider rests after faults")

// errNotConfigured says that there is no such provider any more.
var errNotConfigured = errors.New("the provider is not configured")

func (p *Poller) poll(ctx context.Context, l *lane, j *modelgate.Job) (modelgate.JobNews, error) {
	at := p.Provider(j.Provider)
	if at == nil {
		return modelgate.JobNews{}, errNotConfigured
	}
	if p.resting(l) {
		return modelgate.JobNews{}, errResting
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return modelgate.JobNews{}, ctx.Err()
	}
	defer func() { <-p.slots }()
	limited, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	news, err := at.Ask(limited, j)
	gone := errors.Is(err, modelgate.ErrCredentialGone)
	p.note(l, err == nil || gone || errors.Is(err, modelgate.ErrCredential) || errors.Is(err, modelgate.ErrCredentialNewer))
	switch {
	case err != nil && !gone:
		p.Polled(j.Provider, "fault")
	case news.Event == modelgate.JobRuns && !gone:
		p.Polled(j.Provider, "runs")
	default:
		p.Polled(j.Provider, "ended")
	}
	return news, err
}

func (p *Poller) resting(l *lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Now().Before(l.until)
}

// note lets a provider rest that fails again and again.
func (p *Poller) note(l *lane, fine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fine {
		l.faults, l.rest = 0, 0
		return
	}
	if l.faults++; l.faults < laneFaults || p.Now().Before(l.until) {
		return
	}
	l.rest = min(max(2*l.rest, firstRest), lastRest)
	l.until = p.Now().Add(l.rest)
}

// finish ends jobs, as many at once as there are. A database that does not
// answer is not asked for each of them, and not again once the poller is to
// end: what is left stays pending, and comes again.
func (p *Poller) finish(ctx context.Context) {
	var failed error
	for first := range p.finals {
		batch := []modelgate.JobFinal{first}
	gather:
		for len(batch) < finishBatch {
			select {
			case f, ok := <-p.finals:
				if !ok {
					break gather
				}
				batch = append(batch, f)
			default:
				break gather
			}
		}
		if failed != nil && ctx.Err() != nil {
			continue
		}
		failed = p.end(ctx, batch)
		if failed == nil || len(batch) == 1 || store.Unreachable(failed) {
			continue
		}
		for i := range batch { // one of them may be to blame
			_ = p.end(ctx, batch[i:i+1]) // is logged, and comes again
		}
	}
}

// end ends a batch. What could not be ended stays pending and comes again.
func (p *Poller) end(ctx context.Context, batch []modelgate.JobFinal) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shipTimeout)
	defer cancel()
	ended, err := p.Ledger.FinishJobs(ctx, batch)
	if err != nil {
		p.Log.Warn("the end of jobs cannot be recorded; they stay pending", "jobs", len(batch), "error", err)
		return err
	}
	for i := range ended {
		p.Ended(&ended[i])
	}
	return nil
}
