package prove

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/work"
)

// TestHistoryWrites books rows as fast as they go, with everything that is
// kept about them: beside it run the loops that put sums into rollups and
// records into chains, and the clock stops when they have caught up.
func TestHistoryWrites(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		rows, want := size(5_000, 300_000), 10_000
		if database == "" {
			want = 4_000
		}
		h := newHistory(t, database, 1)
		batches := h.batches(rows, 2000)
		finish := h.loops()
		began, used := time.Now(), processorTime(t)
		for i, batch := range batches {
			n, err := h.db.Record(t.Context(), store.Batch{Instance: "history", Rows: batch, Progress: store.Position{Offset: int64(i + 1)}})
			if err != nil || n != len(batch) {
				t.Fatalf("Record = %d, %v", n, err)
			}
		}
		booked := time.Since(began)
		finish()
		took := time.Since(began)
		rate := float64(rows) / took.Seconds()
		fmt.Fprintf(t.Output(), "%s: %.0f rows/s, %.0f until all was rolled up and chained; %.0f µs of this process a row; 3 attribution pairs of %d values\n",
			h.world.driver, float64(rows)/booked.Seconds(), rate, float64((processorTime(t)-used).Microseconds())/float64(rows), historyValues)
		if *full && rate < float64(want) {
			t.Errorf("%.0f rows/s, want at least %d", rate, want)
		}
		found, err := h.db.Reconcile(t.Context(), h.world.client)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if d.What != "unknown_key" { // made up, as the sub-accounts are
				t.Errorf("difference %+v", d)
			}
		}
	})
}

// batches are calls as the shipper books them.
func (h *history) batches(rows, size int) (all [][]modelgate.UsageRow) {
	random := rand.New(rand.NewPCG(1, 2))
	for made := 0; made < rows; {
		batch := make([]modelgate.UsageRow, 0, size)
		for range min(size, rows-made) {
			batch = append(batch, h.call(h.now.Add(time.Duration(made)*time.Millisecond), random))
			made++
		}
		all = append(all, batch)
	}
	return all
}

// loops starts what a gateway runs beside the booking. What it returns does
// the rest of the work and stops them.
func (h *history) loops() (finish func()) {
	ctx, stop := context.WithCancel(h.t.Context())
	var running sync.WaitGroup
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	sequencer := work.Sequencer{Ledger: h.db, Instance: "history", Now: time.Now, Log: log}
	running.Go(func() { sequencer.Run(ctx) })
	running.Go(func() { (&work.Folder{Ledger: h.db, Log: log}).Run(ctx) })
	return func() {
		h.t.Helper()
		stop()
		running.Wait()
		h.fold()
		if err := h.db.ChainAllEvidence(h.t.Context(), h.world.client); err != nil {
			h.t.Fatal(err)
		}
	}
}

// fold puts all that waits into pages.
func (h *history) fold() {
	h.t.Helper()
	for more := true; more; {
		var err error
		if more, err = h.db.Fold(h.t.Context(), []modelgate.ClientID{h.world.client}, 400); err != nil {
			h.t.Fatal(err)
		}
	}
}

// processorTime is what this process has used; a database server's is not in it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
