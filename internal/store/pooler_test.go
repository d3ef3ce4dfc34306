package store

import (
	"database/sql"
	"modelgate/internal/store/sqldb"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestPoolerUnannounced: named statements and a pooler do not go together, and
// the error says what to set.
func TestPoolerUnannounced(t *testing.T) {
	t.Parallel()
	pool, err := sql.Open("pgx", testkit.Pooler(t, testkit.Postgres(t)))
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	faults := make(chan error, 8)
	for range cap(faults) {
		go func() {
			var err error
			for range 100 {
				var n int
				if err = pool.QueryRowContext(t.Context(), "SELECT $1::int", 1).Scan(&n); err != nil {
					break
				}
			}
			faults <- err
		}()
	}
	failed := 0
	for range cap(faults) {
		if err := <-faults; err != nil {
			failed++
			if !strings.Contains(sqldb.Wrap("read", err).Error(), "database.pooler: transaction") {
				t.Errorf("%v does not say what to do", err)
			}
		}
	}
	if failed == 0 {
		t.Error("nothing failed")
	}
}

// TestPooledSettings: what a session would be set to holds in every
// transaction, and nothing of it stays.
func TestPooledSettings(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "pooler"))
	const settings = "SELECT current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('jit')"
	var inside, outside string
	for range 5 {
		must(t, db.update(t.Context(), "read settings", func(tx *sql.Tx) error {
			return tx.QueryRowContext(t.Context(), settings).Scan(&inside)
		}))
		must(t, db.read.QueryRowContext(t.Context(), settings).Scan(&outside))
		if inside != "10s off" || outside != "0 on" {
			t.Errorf("in a transaction %s, between them %s", inside, outside)
		}
	}
}
