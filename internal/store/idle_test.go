package store

import (
	"database/sql"
	"net/url"
	"testing"

	"modelgate/test/testkit"
)

// TestIdleTransactions: an instance that PostgreSQL hears nothing of in the
// middle of a transaction does not keep its locks, and what it tries then says
// that the database was away. A bound in the address stands.
func TestIdleTransactions(t *testing.T) {
	t.Parallel()
	address := testkit.Postgres(t)
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
	cutOff, other := open(t, Options{URL: idleAfter(t, address, "200")}), open(t, Options{URL: address})
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

// idleAfter is an address whose sessions end transactions that are idle for so
// many milliseconds.
func idleAfter(t *testing.T, address, milliseconds string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("idle_in_transaction_session_timeout", milliseconds)
	u.RawQuery = q.Encode()
	return u.String()
}

// TestLongReadingIsNotIdle copies into a database that takes longer for a row
// than the source keeps an idle transaction: the source waits. Its bound stands
// for other transactions.
func TestLongReadingIsNotIdle(t *testing.T) {
	t.Parallel()
	source := open(t, Options{URL: idleAfter(t, testkit.Postgres(t), "1000")})
	target := open(t, Options{URL: idleAfter(t, testkit.Postgres(t), "1000")})
	createClient(t, source, 1)
	for _, text := range []string{
		`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END $$`,
		`CREATE TRIGGER slow BEFORE INSERT ON client FOR EACH ROW EXECUTE FUNCTION dawdle()`,
	} {
		_, err := target.write.ExecContext(t.Context(), text)
		must(t, err)
	}
	_, err := source.Copy(t.Context(), target)
	must(t, err)
	for name, c := range map[string]struct {
		begin func(func(*sql.Tx) error) error
		want  string
	}{
		"a long reading": {func(fn func(*sql.Tx) error) error { return source.study(t.Context(), "", fn) }, "0"},
		"a reading":      {func(fn func(*sql.Tx) error) error { return source.snapshot(t.Context(), "", fn) }, "1s"},
		"a change":       {func(fn func(*sql.Tx) error) error { return source.update(t.Context(), "", fn) }, "1s"},
	} {
		must(t, c.begin(func(tx *sql.Tx) error {
			var got string
			err := tx.QueryRowContext(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&got)
			if err == nil && got != c.want {
				t.Errorf("%s: a bound of %s, want %s", name, got, c.want)
			}
			return err
		}))
	}
}
