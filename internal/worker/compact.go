package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"modelgate"
)

const (
	// compactPause is between two rounds, compactRetry after one that failed.
	compactPause = 2 * time.Second
	compactRetry = 10 * time.Second
	// compactClients and compactDeltas bound a transaction.
	compactClients = 64
	compactDeltas  = 400
)

// CompactionLedger is where rollups wait to be merged; *store.DB is one.
type CompactionLedger interface {
	DeltaClients(context.Context) ([]modelgate.ClientID, error)
	CompactRollups(ctx context.Context, clients []modelgate.ClientID, most int) (more bool, err error)
}

// Compactor merges what batches of rows add to rollups, many batches at once.
// Statistics are right without it, and slower the longer it does not run.
// Several instances may run it at once; they take turns.
type Compactor struct {
	Ledger CompactionLedger
	Log    *slog.Logger

	wait func(context.Context, time.Duration) error // see loop
}

// Run compacts until the context ends.
func (c *Compactor) Run(ctx context.Context) {
	l := loop{first: compactPause, pause: compactPause, retry: compactRetry, log: c.Log, wait: c.wait,
		trouble: "sums of calls wait, and statistics take longer meanwhile"}
	l.run(ctx, c.round)
}

// round compacts what waits. A client with damaged pages does not delay the
// others.
func (c *Compactor) round(ctx context.Context) error {
	clients, err := c.Ledger.DeltaClients(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for some := range slices.Chunk(clients, compactClients) {
		if c.compact(ctx, some) == nil {
			continue
		}
		for _, client := range some {
			if err := c.compact(ctx, []modelgate.ClientID{client}); err != nil {
				failed = append(failed, fmt.Errorf("client %s: %w", client, err))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return errors.Join(failed...)
}

func (c *Compactor) compact(ctx context.Context, clients []modelgate.ClientID) error {
	for {
		more, err := c.Ledger.CompactRollups(ctx, clients, compactDeltas)
		if err != nil || !more {
			return err
		}
	}
}
