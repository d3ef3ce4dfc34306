package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
)

const (
	// prunePause is between two rounds, pruneRetry after one that failed.
	prunePause = time.Hour
	pruneRetry = time.Minute
	// pruneRows bounds a transaction. Others may write for pruneStep before the
	// next one.
	pruneRows = 500
	pruneStep = 20 * time.Millisecond
)

// RetentionLedger is where usage is stored; *store.DB is one.
type RetentionLedger interface {
	Prunable(ctx context.Context, before time.Time) ([]modelgate.ClientID, error)
	Prune(ctx context.Context, client modelgate.ClientID, before time.Time, most int) (rows int64, more bool, err error)
}

// PruneFirst prunes something up to a cutoff. It returns the clients whose rows
// must stay because that failed.
type PruneFirst func(ctx context.Context, before time.Time) (spare map[modelgate.ClientID]error, err error)

// RetentionPruner deletes usage that is older than its retention, in small
// steps. Several instances may run it at once; they take turns.
type RetentionPruner struct {
	Ledger RetentionLedger
	Log    *slog.Logger
	Now    func() time.Time
	// Keep is the retention; 0 means for ever.
	Keep time.Duration
	// First are called with the cutoff before the first row is deleted: they
	// prune what must go before the rows. After an error no rows are deleted.
	First []PruneFirst
	// Pruned is called with the number of rows deleted, Done after a round
	// without errors.
	Pruned func(rows int64)
	Done   func()

	wait func(context.Context, time.Duration) error // see loop
}

// Run prunes until the context ends.
func (p *RetentionPruner) Run(ctx context.Context) {
	if p.wait == nil {
		p.wait = cancelctx.Sleep
	}
	l := loop{pause: prunePause, retry: pruneRetry, log: p.Log, wait: p.wait, trouble: "pruning of old usage failed; will retry"}
	l.run(ctx, func(ctx context.Context) error {
		if err := p.round(ctx); err != nil {
			return err
		}
		p.Done()
		return nil
	})
}

// round deletes what is too old. A client for which that fails does not delay
// the others.
func (p *RetentionPruner) round(ctx context.Context) error {
	if p.Keep == 0 {
		return nil
	}
	before := p.Now().Add(-p.Keep)
	spare := make(map[modelgate.ClientID]error)
	for _, first := range p.First {
		some, err := first(ctx, before)
		if err != nil {
			return err
		}
		maps.Copy(spare, some)
	}
	var failed []error
	for _, client := range slices.Sorted(maps.Keys(spare)) {
		failed = append(failed, fmt.Errorf("client %s: %w", client, spare[client]))
	}
	clients, err := p.Ledger.Prunable(ctx, before)
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	for _, client := range clients {
		for more := spare[client] == nil; more; {
			var rows int64
			rows, more, err = p.Ledger.Prune(ctx, client, before, pruneRows)
			p.Pruned(rows)
			if err == nil && more {
				err = p.wait(ctx, pruneStep)
			}
			if err != nil {
				return errors.Join(append(failed, err)...)
			}
		}
	}
	return errors.Join(failed...)
}
