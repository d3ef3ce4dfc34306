package store

import (
	"context"
	"database/sql"
	"fmt"

	"modelgate/internal/store/sqldb"
)

// runMany runs a statement for many tuples, in their order: with as many at
// once as the engine likes.
func (db *DB) runMany(ctx context.Context, tx *sql.Tx, m sqldb.BatchExec) error {
	if m.Fed != "" && db.feed != nil && m.N > 0 {
		return db.feed.runFed(ctx, tx, &m)
	}
	return m.Run(ctx, tx, db.engine.rowsPerInsert)
}

// usageInsert inserts rows and returns the ids of those that were new.
func usageInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO usage_row ("+usageColumns+")\nVALUES ", rows, usageColumnCount, 1) +
		"\nON CONFLICT (client_id, created_at, id) DO NOTHING\nRETURNING id\n-- usageInsert"
}

// spendInsert adds amounts to counters, in the order of the rows.
func spendInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO spend ("+spendColumns+")\nVALUES ", rows, spendColumnCount, 1) + spendConflict + "\n-- spendInsert"
}

const spendConflict = `
ON CONFLICT (client_id, scope, scope_id, period, period_start) DO UPDATE
SET settled = spend.settled + excluded.settled, held = spend.held + excluded.held`

// pulseInsert adds to the counts of calls, in the order of the rows.
func pulseInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO pulse ("+pulseColumns+")\nVALUES ", rows, pulseColumnCount, 1) + pulseConflict + "\n-- pulseInsert"
}

const pulseConflict = `
ON CONFLICT (client_id, scope, scope_id, hour, latency_class) DO UPDATE
SET requests = pulse.requests + excluded.requests, errors = pulse.errors + excluded.errors,
  total_tokens = pulse.total_tokens + excluded.total_tokens, cost = pulse.cost + excluded.cost,
  latency_ms = pulse.latency_ms + excluded.latency_ms`

// sliceSpend takes amounts off slices: client, scope, id, period, start,
// instance and amount of each. It returns what is left of those that are there.
func sliceSpend(rows int) string {
	b := []byte("UPDATE slice\nSET granted = slice.granted - v.column7\nFROM (VALUES ")
	for i := range rows {
		if i > 0 {
			b = append(b, ", "...)
		}
		n := 7*i + 1
		b = fmt.Appendf(b, "($%d, $%d, $%d, $%d, CAST($%d AS BIGINT), $%d, CAST($%d AS BIGINT))", n, n+1, n+2, n+3, n+4, n+5, n+6)
	}
	return string(b) + ") AS v\nWHERE " + sliceSpendRow + "\n-- sliceSpend"
}

const sliceSpendRow = `slice.client_id = v.column1 AND slice.scope = v.column2 AND slice.scope_id = v.column3
  AND slice.period = v.column4 AND slice.period_start = v.column5 AND slice.instance = v.column6
RETURNING slice.client_id, slice.scope, slice.scope_id, slice.period, slice.period_start, slice.granted`

// headInsert locks the heads of clients, in the order of the rows.
func headInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO usage_head (client_id, revision, rolled_from, pruned_before, pruned_rows, pruned_cost)\nVALUES ",
		rows, usageHeadColumnCount, 1) +
		"\nON CONFLICT (client_id) DO UPDATE SET revision = usage_head.revision + 1" +
		"\nRETURNING client_id, rolled_from, pruned_before\n-- headInsert"
}

// rollupInsert writes pages, new ones or in place of what was there.
func rollupInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO rollup ("+rollupColumns+")\nVALUES ", rows, rollupColumnCount, 1) +
		"\nON CONFLICT (client_id, sub_account_id, grain, dimension, start, part) DO UPDATE" +
		"\nSET data = excluded.data\n-- rollupInsert"
}

// rollupSelect reads pages by their keys. The first key says what type the
// others have.
func rollupSelect(rows int) string {
	head := "SELECT r.client_id, r.sub_account_id, r.grain, r.dimension, r.start, r.part, r.data\nFROM (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT))"
	if rows > 1 {
		head = sqldb.Tuples(head+", ", rows-1, rollupKeyCount, rollupKeyCount+1)
	}
	return head + ") AS k\nJOIN rollup r ON r.client_id = k.column1 AND r.sub_account_id = k.column2 AND r.grain = k.column3" +
		"\n  AND r.dimension = k.column4 AND r.start = k.column5 AND r.part = k.column6\n-- rollupSelect"
}

// headSelect reads the heads of clients.
func headSelect(rows int) string {
	return sqldb.Tuples("SELECT client_id, rolled_from\nFROM usage_head\nWHERE client_id IN ", 1, rows, 1) + "\n-- headSelect"
}

// deltaInsert adds to rollups.
func deltaInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO rollup_delta (client_id, sub_account_id, hour, id, data)\nVALUES ", rows, 5, 1) + "\n-- deltaInsert"
}

// deltaDelete deletes what was put into pages. The first key says what type
// the others have.
func deltaDelete(rows int) string {
	head := "DELETE FROM rollup_delta\nWHERE (client_id, sub_account_id, hour, id) IN (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT))"
	if rows > 1 {
		head = sqldb.Tuples(head+", ", rows-1, 4, 5)
	}
	return head + ")\n-- deltaDelete"
}
