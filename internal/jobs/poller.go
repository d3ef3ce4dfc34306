package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/store"
)

const (
	// pollPause is the time between two claims of due jobs, pollBatch the size of
	// a claim, and pollQueue how many claimed jobs may wait: fewer than can be
	// polled within pollLease, the least time for which a job is claimed.
	pollPause = time.Second
	pollBatch = 256
	pollQueue = 512
	pollLease = 5 * time.Second
	// pollConns bounds the polls at one time, queuePolls those of one provider,
	// so that one that hangs leaves room for the others.
	pollConns  = 48
	queuePolls = 32
	pollTime   = 20 * time.Second
	// queueStall is how long a provider whose polls all hang keeps its jobs
	// queued. Then they are dropped, and come again with another claim.
	queueStall = time.Second
	// After queueFaults failed polls in a row a provider is not polled for
	// firstRest, then for twice as long each time, up to lastRest.
	queueFaults = 3
	firstRest   = 2 * time.Second
	lastRest    = time.Minute
	// finishBatch bounds a transaction that ends jobs.
	finishBatch   = 64
	finishTimeout = 15 * time.Second
	countPause    = 15 * time.Second
)

// PollLedger is the ledger of a Poller; *store.DB is one.
type PollLedger interface {
	ClaimJobs(ctx context.Context, most int) ([]modelgate.Job, error)
	FinishJobs(context.Context, []modelgate.JobFinal) (ended []modelgate.JobFinal, err error)
	PendingJobs(context.Context) (n int64, oldest time.Time, err error)
}

// Prober polls a job at its provider; Client is one. Errors:
// modelgate.ErrCredentialGone where nobody can ask for the job any more; any
// other is temporary.
type Prober interface {
	Poll(context.Context, *modelgate.Job) (modelgate.JobNews, error)
}

// Poller ends the jobs that no client polls: it polls those that are due, and
// gives up those whose deadline has passed. Several instances share the work by
// claims; a job that is claimed twice costs a poll and nothing else. Run may be
// called once.
type Poller struct {
	Ledger PollLedger
	// Provider finds a provider of the running configuration, nil for none.
	Provider func(name string) Prober
	// Ended is called with every job that this poller has ended, Polled after
	// every poll with its outcome: ended, runs or fault.
	Ended  func(*modelgate.JobFinal)
	Polled func(provider, outcome string)
	Now    func() time.Time
	Log    *slog.Logger

	slots   chan struct{}
	finals  chan modelgate.JobFinal
	wake    chan struct{} // a token when there is room for more jobs
	polling sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*providerQueue
	queued int
	full   bool // at the last look there was no room, and jobs may be due

	pending atomic.Int64
	oldest  atomic.Int64 // unix microseconds; 0 without any
	claims  atomic.Int64
}

// providerQueue holds the claimed jobs of one provider.
type providerQueue struct {
	waiting []claimed
	polls   int       // under way
	moved   time.Time // when a poll last began or ended
	faults  int       // failed polls in a row
	rest    time.Duration
	until   time.Time // the provider is not polled until then
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
	p.queues = make(map[string]*providerQueue)
	p.slots, p.finals, p.wake = make(chan struct{}, pollConns), make(chan modelgate.JobFinal, pollConns), make(chan struct{}, 1)
	var finisher sync.WaitGroup
	finisher.Go(func() { p.recordEnds(ctx) })
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	var counted time.Time
	for ctx.Err() == nil {
		p.dropStalled()
		for p.claim(ctx) {
		}
		if now := p.Now(); now.Sub(counted) >= countPause {
			p.countPending(ctx)
			counted = now
		}
		select {
		case <-tick.C:
		case <-p.wake:
		case <-ctx.Done():
		}
	}
	p.polling.Wait()
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

// stalls reports whether all polls of the provider hang.
func (q *providerQueue) stalls(now time.Time) bool {
	return q.polls == queuePolls && now.Sub(q.moved) > queueStall
}

// dropStalled drops the waiting jobs of providers whose polls all hang.
func (p *Poller) dropStalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	for _, q := range p.queues {
		if q.stalls(now) {
			p.queued -= len(q.waiting)
			q.waiting = nil
		}
	}
}

// countPending refreshes the figures.
func (p *Poller) countPending(ctx context.Context) {
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

// enqueue adds a job to its provider's queue, and starts a goroutine that polls
// where fewer than queuePolls run.
func (p *Poller) enqueue(ctx context.Context, c claimed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[c.job.Provider]
	if q == nil {
		q = new(providerQueue)
		p.queues[c.job.Provider] = q
	}
	if q.stalls(p.Now()) {
		return
	}
	q.waiting = append(q.waiting, c)
	p.queued++
	if q.polls < queuePolls {
		q.moved = p.Now()
		q.polls++
		p.polling.Go(func() { p.serve(ctx, q) })
	}
}

// next takes a job out of a queue; false where there is none. Jobs are dropped
// while the provider rests, and when their claim has run out: they come again
// with another claim.
func (p *Poller) next(q *providerQueue) (claimed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wakeClaimer()
	now := p.Now()
	q.moved = now
	for len(q.waiting) > 0 {
		c := q.waiting[0]
		q.waiting = q.waiting[1:]
		p.queued--
		overdue := !now.Before(c.job.Deadline)
		if overdue || now.Sub(c.at) < pollLease && !now.Before(q.until) {
			return c, true
		}
	}
	q.polls--
	return claimed{}, false
}

// wakeClaimer has more jobs claimed once there is room for them again. Where
// there always was room the next tick is early enough: a query for each job that
// was polled would be too many.
func (p *Poller) wakeClaimer() {
	if !p.full || pollQueue-p.queued < pollBatch {
		return
	}
	p.full = false
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// serve polls the jobs of a queue, one after the other, until it is empty.
func (p *Poller) serve(ctx context.Context, q *providerQueue) {
	for {
		c, ok := p.next(q)
		if !ok {
			return
		}
		if ctx.Err() != nil {
			continue // empties the queue
		}
		news := p.outcome(ctx, q, &c.job)
		if final, ok := pricing.FinishJob(&c.job, news); ok {
			p.finals <- final
		}
	}
}

// outcome polls a job, unless its provider rests. A job whose deadline has
// passed is over, whatever the provider says.
func (p *Poller) outcome(ctx context.Context, q *providerQueue, j *modelgate.Job) modelgate.JobNews {
	news, err := p.poll(ctx, q, j)
	switch {
	case errors.Is(err, modelgate.ErrCredentialGone):
		return modelgate.JobNews{Event: modelgate.JobLost}
	case ctx.Err() != nil:
		return modelgate.JobNews{}
	case err != nil:
		p.Log.Debug("a job's provider could not be asked", "provider", j.Provider, "task_id", j.TaskID, "error", err)
	}
	if _, ends := j.Next(news.Event); !ends && !p.Now().Before(j.Deadline) {
		return modelgate.JobNews{Event: modelgate.JobOverdue}
	}
	return news
}

// errResting says that a provider is not polled at the moment.
var errResting = errors.New("the provider rests after faults")

// errNoProvider says that there is no such provider any more.
var errNoProvider = errors.New("the provider is not configured")

func (p *Poller) poll(ctx context.Context, q *providerQueue, j *modelgate.Job) (modelgate.JobNews, error) {
	at := p.Provider(j.Provider)
	if at == nil {
		return modelgate.JobNews{}, errNoProvider
	}
	if p.resting(q) {
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
	news, err := at.Poll(limited, j)
	gone := errors.Is(err, modelgate.ErrCredentialGone)
	p.notePoll(q, err == nil || gone || errors.Is(err, modelgate.ErrCredential) || errors.Is(err, modelgate.ErrCredentialNewer))
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

func (p *Poller) resting(q *providerQueue) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Now().Before(q.until)
}

// notePoll lets a provider rest that fails again and again.
func (p *Poller) notePoll(q *providerQueue, fine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fine {
		q.faults, q.rest = 0, 0
		return
	}
	if q.faults++; q.faults < queueFaults || p.Now().Before(q.until) {
		return
	}
	q.rest = min(max(2*q.rest, firstRest), lastRest)
	q.until = p.Now().Add(q.rest)
}

// recordEnds ends jobs in the ledger, many in one transaction. While the
// database does not answer, a batch is tried once, and not again after the
// context has ended: its jobs stay pending, and come again.
func (p *Poller) recordEnds(ctx context.Context) {
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
		failed = p.recordBatch(ctx, batch)
		if failed == nil || len(batch) == 1 || store.Unreachable(failed) {
			continue
		}
		for i := range batch { // one of them may be to blame
			_ = p.recordBatch(ctx, batch[i:i+1]) // is logged, and comes again
		}
	}
}

// recordBatch ends a batch of jobs.
func (p *Poller) recordBatch(ctx context.Context, batch []modelgate.JobFinal) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
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
