package store

import (
	"database/sql"
	"sync"
	"testing"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// TestDeadlockIsTriedAgain has two transactions take two rows in opposite
// orders. PostgreSQL refuses one of them, which must then succeed all the
// same. SQLite has one writer and cannot get there.
func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "postgres"))
	a, b := createClient(t, db, 1), createClient(t, db, 2)
	const lock = "UPDATE client SET max_keys = max_keys WHERE id = $1"
	var both, done sync.WaitGroup // both: each transaction holds its first row
	both.Add(2)
	for _, order := range [][2]modelgate.ClientID{{a, b}, {b, a}} {
		done.Go(func() {
			arrive := sync.OnceFunc(func() { both.Done(); both.Wait() })
			err := db.update(t.Context(), "cross", func(tx *sql.Tx) error {
				if _, err := tx.ExecContext(t.Context(), lock, order[0]); err != nil {
					return err
				}
				arrive()
				if _, err := tx.ExecContext(t.Context(), lock, order[1]); err != nil {
					return err
				}
				return sqldb.RaiseControl(t.Context(), tx)
			})
			if err != nil {
				t.Errorf("update = %v", err)
			}
		})
	}
	done.Wait()
	if v, err := db.ControlVersion(t.Context()); v != 3 || err != nil {
		t.Errorf("ControlVersion = %d, %v, want 3: each transaction once", v, err)
	}
}
