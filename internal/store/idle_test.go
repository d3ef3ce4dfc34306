package store

import (
	"database/sql"
	"net/url"
	"testing"

	"modelgate/internal/gatetest"
)

// TestIdleTransactions: an instance that PostgreSQL hears nothing of in the
// middle of a transaction does not keep its locks, and what it tries then says
// that the database was away. A bound in the address stands.
func TestIdleTransactions(t *testing.T) {
	t.Parallel()
	address := gatetest.Postgres(t)
	bound := func(db *DB) (text string) {
		t.Helper()
		if err := db.read.QueryRowContext(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := bound(open(t, Options{URL: address})); got != "10s" {
		t.Errorf("idle_in_transaction_session_timeout = %s, want 10s", got)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("idle_in_transaction_session_timeout", "200")
	u.RawQuery = q.Encode()
	cutOff, other := open(t, Options{URL: u.String()}), open(t, Options{URL: address})
	if got := bound(cutOff); got != "200ms" {
		t.Errorf("idle_in_transaction_session_timeout = %s, want the address's 200ms", got)
	}
	client := createClient(t, other, 1)
	lock := func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE client SET name = name WHERE id = $1", client)
		return err
	}
	silent, err := cutOff.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Rollback()
	if err := lock(silent); err != nil {
		t.Fatal(err)
	}
	waiting, err := other.write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Rollback()
	if err := lock(waiting); err != nil {
		t.Errorf("behind a silent transaction: %v", err)
	}
	if err := lock(silent); !Unreachable(err) {
		t.Errorf("the silent transaction goes on with %v, want it unreachable", err)
	}
}
