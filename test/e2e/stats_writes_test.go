package e2e

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
	"modelgate/internal/worker"
)

// TestHistoryWrites books rows as fast as they go, with everything that is
// kept about them: beside it run the loops that put sums into rollups and
// records into chains, and the clock stops when they have caught up.
func TestHistoryWrites(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		rows, want := size(5_000, 200_000), 10_000
		if database == "" {
			want = 4_000
		}
		h := newHistory(t, database, 1)
		h.write(rows, 1, want)
		if database != "" {
			h.write(rows, 2, want)
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

// write books rows for so many instances at once.
func (h *history) write(rows, instances, want int) {
	h.t.Helper()
	batches := make(chan []modelgate.UsageRow, rows)
	for _, batch := range h.batches(rows, 4000) {
		batches <- batch
	}
	close(batches)
	finish := h.loops()
	began, used := time.Now(), processorTime(h.t)
	var booking sync.WaitGroup
	for i := range instances {
		booking.Go(func() {
			b := store.Batch{Instance: fmt.Sprint("history-", instances, "-", i)}
			for b.Rows = range batches {
				b.Progress.Offset++
				if n, err := h.db.Record(h.t.Context(), b); err != nil || n != len(b.Rows) {
					h.t.Errorf("Record = %d, %v", n, err)
				}
			}
		})
	}
	booking.Wait()
	booked := time.Since(began)
	finish()
	rate := float64(rows) / time.Since(began).Seconds()
	fmt.Fprintf(h.t.Output(), "%s, %d instances: %.0f rows/s, %.0f until all was rolled up and chained; %.0f µs of this process a row; 3 attribution pairs of %d values\n",
		h.world.driver, instances, float64(rows)/booked.Seconds(), rate, float64((processorTime(h.t)-used).Microseconds())/float64(rows), historyValues)
	if *full && rate < float64(want) {
		h.t.Errorf("%.0f rows/s, want at least %d", rate, want)
	}
}

// batches are calls as the shipper books them, none of them made before.
func (h *history) batches(rows, size int) (all [][]modelgate.UsageRow) {
	random := rand.New(rand.NewPCG(1, uint64(h.rows)))
	h.rows += rows
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
	sequencer := worker.Sequencer{Ledger: h.db, Instance: "history", Now: time.Now, Log: log}
	running.Go(func() { sequencer.Run(ctx) })
	running.Go(func() { (&worker.Compactor{Ledger: h.db, Log: log}).Run(ctx) })
	return func() {
		h.t.Helper()
		stop()
		running.Wait()
		h.compact()
		if err := h.db.ChainAllEvidence(h.t.Context(), h.world.client); err != nil {
			h.t.Fatal(err)
		}
	}
}

// compact merges all deltas into pages.
func (h *history) compact() {
	h.t.Helper()
	for more := true; more; {
		var err error
		if more, err = h.db.CompactRollups(h.t.Context(), []modelgate.ClientID{h.world.client}, 400); err != nil {
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
