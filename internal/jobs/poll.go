package jobs

import (
	"context"
	"errors"

	"modelgate"
	"modelgate/internal/pricing"
)

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

// outcome polls a job, unless its provider rests. Past its deadline a job is asked
// about once more: an end that the provider states counts, anything else is
// JobOverdue.
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
