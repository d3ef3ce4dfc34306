package jobs

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

const (
	// finishBatch bounds a transaction that ends jobs.
	finishBatch   = 64
	finishTimeout = 15 * time.Second
)

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
