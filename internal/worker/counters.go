package worker

import (
	"context"
	"log/slog"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
)

// keepCounters is for how long what a budget or limit has counted outlives its
// window: longer than calls and their bookings take.
const keepCounters = 7 * 24 * time.Hour

// CounterStore is where budgets and limits count; *store.DB is one.
type CounterStore interface {
	ClientsWithRules(ctx context.Context) ([]modelgate.ClientID, error)
	ForgetCounters(ctx context.Context, client modelgate.ClientID, before time.Time, most int) (int64, error)
}

// CounterPruner deletes what limits by hour and day and budgets with match have
// counted in windows that ended a week ago: a budget for each end user would
// leave a counter of everyone and every window. Several instances may run it at
// once.
type CounterPruner struct {
	Store CounterStore
	Log   *slog.Logger
	Now   func() time.Time

	wait func(context.Context, time.Duration) error // see loop
}

// Run prunes once an hour until the context ends.
func (p *CounterPruner) Run(ctx context.Context) {
	if p.wait == nil {
		p.wait = cancelctx.Sleep
	}
	l := loop{first: pruneRetry, pause: prunePause, retry: pruneRetry, log: p.Log, wait: p.wait, trouble: "pruning of old counters failed; will retry"}
	l.run(ctx, p.round)
}

func (p *CounterPruner) round(ctx context.Context) error {
	clients, err := p.Store.ClientsWithRules(ctx)
	if err != nil {
		return err
	}
	before := p.Now().Add(-keepCounters)
	for _, client := range clients {
		for {
			n, err := p.Store.ForgetCounters(ctx, client, before, pruneRows)
			if err != nil {
				return err
			}
			if n < pruneRows {
				break
			}
			if err := p.wait(ctx, pruneStep); err != nil {
				return err
			}
		}
	}
	return nil
}
