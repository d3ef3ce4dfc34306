package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
)

const (
	// keepPause is between two looks at what is too old, keepRetry after one
	// that failed.
	keepPause = time.Hour
	keepRetry = time.Minute
	// pruneRows and rollRows bound a transaction, keepStep is how long others
	// may write before the next one.
	pruneRows = 500
	rollRows  = 2000
	keepStep  = 20 * time.Millisecond
)

// RetentionLedger is where usage is kept; *store.DB is one.
type RetentionLedger interface {
	UnrolledClients(context.Context) ([]modelgate.ClientID, error)
	RollUp(ctx context.Context, client modelgate.ClientID, most int) (more bool, err error)
	Prunable(ctx context.Context, before time.Time) ([]modelgate.ClientID, error)
	Prune(ctx context.Context, client modelgate.ClientID, before time.Time, most int) (rows int64, more bool, err error)
}

// PruneFirst prunes something up to a cutoff, and says whose rows are to stay
// because it could not be pruned.
type PruneFirst func(ctx context.Context, before time.Time) (spare map[modelgate.ClientID]error, err error)

// RetentionPruner keeps usage for as long as it is to be kept, and deletes it then, in
// small steps. Before, it counts rows that were booked by a version without
// rollups. Several instances may do so at once; they take turns.
type RetentionPruner struct {
	Ledger RetentionLedger
	Log    *slog.Logger
	Now    func() time.Time
	// Keep is how long usage is kept; 0 means for ever.
	Keep time.Duration
	// First are called with the cutoff before the first row goes: they prune
	// what has to go before. An error keeps the rows: all, or those of a client
	// that is to be spared.
	First []PruneFirst
	// Pruned is told how many rows went, Done that a look ended well.
	Pruned func(rows int64)
	Done   func()

	wait func(context.Context, time.Duration) error // nil: cancelctx.Sleep
}

// Run keeps usage until the context ends.
func (k *RetentionPruner) Run(ctx context.Context) {
	for {
		pause := keepPause
		if err := k.look(ctx); err == nil {
			k.Done()
		} else if ctx.Err() == nil {
			k.Log.Warn("usage that is too old stays for now", "error", err)
			pause = keepRetry
		}
		if k.rest(ctx, pause/2+rand.N(pause/2)) != nil {
			return
		}
	}
}

func (k *RetentionPruner) rest(ctx context.Context, d time.Duration) error {
	if k.wait != nil {
		return k.wait(ctx, d)
	}
	return cancelctx.Sleep(ctx, d)
}

// look does what there is to do.
func (k *RetentionPruner) look(ctx context.Context) error {
	clients, err := k.Ledger.UnrolledClients(ctx)
	if err != nil {
		return err
	}
	for _, client := range clients {
		err := k.steps(ctx, func() (bool, error) { return k.Ledger.RollUp(ctx, client, rollRows) })
		if err != nil {
			return err
		}
	}
	if k.Keep == 0 {
		return nil
	}
	return k.prune(ctx, k.Now().Add(-k.Keep))
}

// prune deletes what is too old. A client for which that fails keeps none of
// the others waiting.
func (k *RetentionPruner) prune(ctx context.Context, before time.Time) error {
	spare := make(map[modelgate.ClientID]error)
	for _, first := range k.First {
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
	clients, err := k.Ledger.Prunable(ctx, before)
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	for _, client := range clients {
		if spare[client] != nil {
			continue
		}
		err := k.steps(ctx, func() (bool, error) {
			rows, more, err := k.Ledger.Prune(ctx, client, before, pruneRows)
			k.Pruned(rows)
			return more, err
		})
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}

// steps takes one after the other, with a rest between them.
func (k *RetentionPruner) steps(ctx context.Context, step func() (more bool, err error)) error {
	for {
		more, err := step()
		if err != nil || !more {
			return err
		}
		if err := k.rest(ctx, keepStep); err != nil {
			return err
		}
	}
}
