package jobs

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
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
	countPause = 15 * time.Second
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
	// Polls are begun by enqueue alone, which claim calls in this goroutine: none
	// begins after the loop, so that Wait sees all, and nobody sends to finals then.
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
