package testkit

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

// OpenSQLite opens the database file of a gateway that may be running. A
// statement waits up to five seconds for the gateway's own transactions, which
// would otherwise make it fail with "database is locked". The end of the test
// closes it.
func OpenSQLite(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
