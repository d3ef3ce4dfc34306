package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
)

const (
	// foldPause is between two looks for rollups that wait, foldRetry after one
	// that failed.
	foldPause = 2 * time.Second
	foldRetry = 10 * time.Second
	// foldClients and foldDeltas bound a transaction.
	foldClients = 64
	foldDeltas  = 400
)

// CompactionLedger is where rollups wait to be put into pages; *store.DB is one.
type CompactionLedger interface {
	DeltaClients(context.Context) ([]modelgate.ClientID, error)
	Fold(ctx context.Context, clients []modelgate.ClientID, most int) (more bool, err error)
}

// Compactor puts what batches add to rollups into pages, many batches together.
// Statistics are right without it, and slower the longer it does not run.
// Several instances may do so at once; they take turns.
type Compactor struct {
	Ledger CompactionLedger
	Log    *slog.Logger

	wait func(context.Context, time.Duration) error // nil: cancelctx.Sleep
}

// Run folds until the context ends.
func (f *Compactor) Run(ctx context.Context) {
	wait := f.wait
	if wait == nil {
		wait = cancelctx.Sleep
	}
	for pause := foldPause; wait(ctx, pause/2+rand.N(pause)) == nil; {
		pause = foldPause
		if err := f.look(ctx); err != nil && ctx.Err() == nil {
			f.Log.Warn("sums of calls wait, and statistics take longer meanwhile", "error", err)
			pause = foldRetry
		}
	}
}

// look folds what waits. A client whose pages are damaged keeps none of the
// others waiting.
func (f *Compactor) look(ctx context.Context) error {
	clients, err := f.Ledger.DeltaClients(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for some := range slices.Chunk(clients, foldClients) {
		if f.fold(ctx, some) == nil {
			continue
		}
		for _, client := range some {
			if err := f.fold(ctx, []modelgate.ClientID{client}); err != nil {
				failed = append(failed, fmt.Errorf("client %s: %w", client, err))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return errors.Join(failed...)
}

func (f *Compactor) fold(ctx context.Context, clients []modelgate.ClientID) error {
	for {
		more, err := f.Ledger.Fold(ctx, clients, foldDeltas)
		if err != nil || !more {
			return err
		}
	}
}
