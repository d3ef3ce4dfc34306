package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
)

// TestTurns has clients ask for more than there is.
func TestTurns(t *testing.T) {
	t.Parallel()
	long := newTurns(12) // six at once, three of a client
	var running, most atomic.Int64
	var ofClient, mostOfClient [4]atomic.Int64
	raise := func(now, most *atomic.Int64) {
		for n := now.Add(1); ; {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				return
			}
		}
	}
	var asking sync.WaitGroup
	for n := range 200 {
		asking.Go(func() {
			i := n % len(ofClient)
			err := long.run(t.Context(), modelgate.ClientID(rune('a'+i)), func() error {
				raise(&running, &most)
				raise(&ofClient[i], &mostOfClient[i])
				time.Sleep(100 * time.Microsecond)
				ofClient[i].Add(-1)
				running.Add(-1)
				return nil
			})
			if err != nil {
				t.Errorf("run = %v", err)
			}
		})
	}
	asking.Wait()
	if most.Load() > 6 {
		t.Errorf("%d ran at once, want at most 6", most.Load())
	}
	for i := range mostOfClient {
		if n := mostOfClient[i].Load(); n > 3 {
			t.Errorf("%d of client %d ran at once, want at most 3", n, i)
		}
	}
	if len(long.of) != 0 || len(long.all) != 0 {
		t.Errorf("%d clients and %d places are left", len(long.of), len(long.all))
	}
}

// TestStatisticsTakeTurns: while an organization's statistics take their time,
// its next ones wait, and those of others and all else do not.
func TestStatisticsTakeTurns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		db.long = newTurns(sqliteReaders)
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		q := StatsQuery{GroupBy: modelgate.ByProvider, Since: noon.Add(-time.Hour)}
		must(t, db.long.run(t.Context(), client, func() error {
			for name, ask := range map[string]func(context.Context) error{
				"Stats":    func(ctx context.Context) error { _, err := db.Stats(ctx, client, q); return err },
				"Evidence": func(ctx context.Context) error { _, err := db.Evidence(ctx, client, EvidenceRange{}); return err },
				"StatsSpans": func(ctx context.Context) error {
					_, err := db.StatsSpans(ctx, client, SpanQuery{StatsQuery: q, Step: time.Hour, Most: 1})
					return err
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || !Unreachable(err) {
					t.Errorf("%s = %v, want it to wait", name, err)
				}
				cancel()
			}
			if _, _, err := db.Usage(t.Context(), client, UsageList{}); err != nil {
				return err
			}
			_, err := db.Stats(t.Context(), other, q)
			return err
		}))
		_, err := db.Stats(t.Context(), client, q)
		must(t, err)
	})
}
