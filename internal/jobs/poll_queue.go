package jobs

import (
	"context"
	"time"

	"modelgate"
)

const (
	// queueStall is how long a provider whose polls all hang keeps its jobs
	// queued. Then they are dropped, and come again with another claim.
	queueStall = time.Second
	// After queueFaults failed polls in a row a provider is not polled for
	// firstRest, then for twice as long each time, up to lastRest.
	queueFaults = 3
	firstRest   = 2 * time.Second
	lastRest    = time.Minute
)

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
// with another claim. One whose deadline has passed is taken all the same: it ends
// without a poll while the provider rests, which would otherwise put its end off.
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
