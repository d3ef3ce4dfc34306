package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

func testPool(t *testing.T) *sql.DB {
	t.Helper()
	pool, err := OpenPool(filepath.Join(t.TempDir(), "cache.db"), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	mustRun(t, pool, "CREATE TABLE t (a INTEGER)")
	mustRun(t, pool, "INSERT INTO t VALUES (1), (2), (3)")
	return pool
}

func mustRun(t *testing.T, pool interface {
	Exec(string, ...any) (sql.Result, error)
}, text string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// The same text runs inside of itself: a statement that is in use is nobody
// else's.
func TestCachedStatementInItself(t *testing.T) {
	t.Parallel()
	tx, err := testPool(t).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	const text = "SELECT a FROM t WHERE a > $1 ORDER BY a"
	var seen []string
	for range 3 { // what the first time keeps, the others use
		seen = seen[:0]
		outer, err := tx.Query(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for outer.Next() {
			var a, b int
			if err := outer.Scan(&a); err != nil {
				t.Fatal(err)
			}
			inner, err := tx.Query(text, a)
			if err != nil {
				t.Fatal(err)
			}
			for inner.Next() {
				if err := inner.Scan(&b); err != nil {
					t.Fatal(err)
				}
				seen = append(seen, fmt.Sprint(a, b))
			}
			if err := inner.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := outer.Close(); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(seen); got != "[1 2 1 3 2 3]" {
			t.Fatalf("pairs: %s", got)
		}
	}
}

// What is kept follows the schema, survives a failure and is bounded.
func TestCachedStatements(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	columns := func() int {
		rows, err := pool.Query("SELECT * FROM t")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		types, err := rows.ColumnTypes()
		if err != nil || types[0].DatabaseTypeName() != "INTEGER" {
			t.Fatalf("types: %v, %v", types, err)
		}
		return len(names)
	}
	if got := columns(); got != 1 {
		t.Errorf("%d columns", got)
	}
	mustRun(t, pool, "ALTER TABLE t ADD COLUMN b TEXT")
	if got := columns(); got != 2 {
		t.Errorf("%d columns after one more", got)
	}

	mustRun(t, pool, "CREATE UNIQUE INDEX once ON t (a)")
	const insert = "INSERT INTO t (a) VALUES ($1)"
	for i := range 3 {
		if _, err := pool.Exec(insert, 1); err == nil {
			t.Error("a second 1")
		}
		mustRun(t, pool, insert, 10+i)
	}
	for i := range 3 * cachedStatements {
		mustRun(t, pool, fmt.Sprintf("UPDATE t SET b = $1 WHERE a = %d", i), "x")
	}
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(c any) error {
		k := c.(*cachingConn)
		if len(k.free) != cachedStatements || k.byUse.Len() != cachedStatements {
			t.Errorf("%d and %d statements are kept", len(k.free), k.byUse.Len())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
