package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/sqldb"
)

// TestStatisticsTakeTurns: while an organization's statistics take their time,
// its next ones wait, and those of others and all else do not.
func TestStatisticsTakeTurns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		db.handle.Long = sqldb.NewSemaphore(sqliteReaders)
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		q := StatsQuery{GroupBy: modelgate.ByProvider, Since: noon.Add(-time.Hour)}
		must(t, db.handle.Long.Run(t.Context(), client, func() error {
			for name, ask := range map[string]func(context.Context) error{
				"Stats":    func(ctx context.Context) error { _, err := db.Stats(ctx, client, q); return err },
				"Evidence": func(ctx context.Context) error { _, err := db.Evidence(ctx, client, evidence.Range{}); return err },
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
