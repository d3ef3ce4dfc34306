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
	return m.Run(ctx, tx, db.handle.RowsPerInsert)
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
