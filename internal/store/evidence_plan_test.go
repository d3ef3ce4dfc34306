package store

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/sqldb"
)

// fillChunks gives a client chunks of ten records each, one a second from 1970
// on. There are no records in them.
func fillChunks(t *testing.T, db *DB, client modelgate.ClientID, n int) {
	t.Helper()
	numbers := "generate_series(1, CAST(%d AS BIGINT)) AS g(n)"
	if db.engine.folder == "sqlite" {
		numbers = "(WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < %d) SELECT n FROM g) AS g"
	}
	_, err := db.write.ExecContext(t.Context(), fmt.Sprintf(
		"INSERT INTO evidence_chunk (client_id, first_seq, last_seq, prev, hash, first_at, last_at, batch_id) SELECT $1, n * 10, n * 10 + 9, $2, $2, n * 1000000, n * 1000000, 'b' || n FROM "+numbers, n),
		string(client), make([]byte, 32))
	must(t, err)
}

// TestEvidenceIsFoundByTheNearerEnd holds for a long chain, before the engines
// have figures about it and after.
func TestEvidenceIsFoundByTheNearerEnd(t *testing.T) {
	t.Parallel()
	all := queries(t)
	early, late := all["sqlEvidenceSinceEarly"], all["sqlEvidenceSinceLate"]
	each(t, func(t *testing.T, db *DB) {
		const chunks, second = 5000, 1_000_000
		client := createClient(t, db, 1)
		fillChunks(t, db, client, chunks)
		for _, figures := range []bool{false, true} {
			if figures {
				_, err := db.write.ExecContext(t.Context(), "ANALYZE evidence_chunk")
				must(t, err)
			}
			for _, c := range []struct {
				name, query string
				args        []any
				sqlite, pg  string
			}{
				{"since, early", early, []any{string(client), 10 * second, 1}, "PRIMARY KEY (client_id=?)", "evidence_chunk_pkey"},
				{"since, late", late, []any{string(client), (chunks - 10) * second, 1}, "evidence_chunk_time (client_id=? AND last_at>?)", "evidence_chunk_time"},
				{"kept", all["sqlEvidenceKept"], []any{string(client), 10 * second}, "PRIMARY KEY (client_id=?)", "evidence_chunk_pkey"},
			} {
				want, explain := c.sqlite, "EXPLAIN QUERY PLAN "
				if db.engine.folder == "postgres" {
					want, explain = c.pg, "EXPLAIN "
				}
				if plan := strings.Join(explained(t, db, explain+c.query, c.args...), "\n"); !strings.Contains(plan, want) {
					t.Errorf("%s, figures %t: the plan does not rest on %s:\n%s", c.name, figures, want, plan)
				}
			}
		}
		for at, want := range map[int64]string{0: early, 10: early, chunks - 10: late, 2 * chunks: late} {
			must(t, db.snapshot(t.Context(), "", func(tx *sql.Tx) error {
				query, err := evidence.Nearer(t.Context(), tx, client, sqldb.Instant(at*second))
				if query != want {
					t.Errorf("since second %d of %d: %s", at, chunks, query)
				}
				return err
			}))
		}
	})
}
