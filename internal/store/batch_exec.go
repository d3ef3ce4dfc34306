package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/bits"
	"strconv"
)

// batchExec is a statement that is to be run for many tuples.
type batchExec struct {
	text func(tuples int) string
	n    int
	args func(dst []any, i int) []any // appends those of the i-th
	scan func(scanner) error          // nil where the statement returns nothing
	// fresh is the engine's freshPlan, or nil.
	fresh []any
	// fed is the statement for SQLite's writing connection, which reads all
	// tuples from feed_tuple; empty where text serves that too, one by one.
	fed string
}

// runMany runs a statement for many tuples, in their order: with as many at
// once as the engine likes.
func (db *DB) runMany(ctx context.Context, tx *sql.Tx, m batchExec) error {
	if m.n == 0 {
		return nil
	}
	if m.fed != "" && db.feed != nil {
		return db.feed.runFed(ctx, tx, &m)
	}
	if db.engine.rowsPerInsert == 1 {
		stmt, err := tx.PrepareContext(ctx, m.text(1))
		if err != nil {
			return err
		}
		defer stmt.Close()
		var args []any
		still := context.WithoutCancel(ctx) // watching it would take a goroutine for each tuple
		for i := range m.n {
			if err := ctx.Err(); err != nil {
				return err
			}
			args = m.args(args[:0], i)
			if err := m.run(still, stmt.ExecContext, stmt.QueryContext, args); err != nil {
				return err
			}
		}
		return nil
	}
	var args []any
	for i := 0; i < m.n; {
		rows := statementRows(m.n-i, db.engine.rowsPerInsert)
		args = append(args[:0], m.fresh...)
		for end := i + rows; i < end; i++ {
			args = m.args(args, i)
		}
		text := m.text(rows)
		exec := func(ctx context.Context, args ...any) (sql.Result, error) { return tx.ExecContext(ctx, text, args...) }
		query := func(ctx context.Context, args ...any) (*sql.Rows, error) { return tx.QueryContext(ctx, text, args...) }
		if err := m.run(ctx, exec, query, args); err != nil {
			return err
		}
	}
	return nil
}

func (m *batchExec) run(ctx context.Context, exec func(context.Context, ...any) (sql.Result, error),
	query func(context.Context, ...any) (*sql.Rows, error), args []any) error {
	if m.scan == nil {
		_, err := exec(ctx, args...)
		return err
	}
	rows, err := query(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := m.scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Statements of many rows are the only ones that are not constants. Their
// numbers of rows are powers of two, so that there are few different texts
// and each connection keeps them prepared.

// statementRows is how many of n rows the next statement takes: the largest
// power of two that is neither above n nor above most.
func statementRows(n, most int) int {
	return 1 << (bits.Len(uint(min(n, most))) - 1)
}

// usageInsert inserts rows and returns the ids of those that were new.
func usageInsert(rows int) string {
	return tuples("INSERT INTO usage_row ("+usageColumns+")\nVALUES ", rows, usageColumnCount, 1) +
		"\nON CONFLICT (client_id, created_at, id) DO NOTHING\nRETURNING id\n-- usageInsert"
}

// spendInsert adds amounts to counters, in the order of the rows.
func spendInsert(rows int) string {
	return tuples("INSERT INTO spend ("+spendColumns+")\nVALUES ", rows, spendColumnCount, 1) + spendConflict + "\n-- spendInsert"
}

const spendConflict = `
ON CONFLICT (client_id, scope, scope_id, period, period_start) DO UPDATE
SET settled = spend.settled + excluded.settled, held = spend.held + excluded.held`

// pulseInsert adds to the counts of calls, in the order of the rows.
func pulseInsert(rows int) string {
	return tuples("INSERT INTO pulse ("+pulseColumns+")\nVALUES ", rows, pulseColumnCount, 1) + pulseConflict + "\n-- pulseInsert"
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

// tuples appends ($1, $2), ($3, $4), … to head, counting from first.
func tuples(head string, rows, columns, first int) string {
	b := make([]byte, 0, len(head)+rows*columns*7)
	b = append(b, head...)
	for i := range rows * columns {
		switch {
		case i == 0:
			b = append(b, '(')
		case i%columns == 0:
			b = append(b, "), ("...)
		default:
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(b, '$'), int64(i+first), 10)
	}
	return string(append(b, ')'))
}

// headInsert locks the heads of clients, in the order of the rows.
func headInsert(rows int) string {
	return tuples("INSERT INTO usage_head (client_id, revision, rolled_from, pruned_before, pruned_rows, pruned_cost)\nVALUES ",
		rows, usageHeadColumnCount, 1) +
		"\nON CONFLICT (client_id) DO UPDATE SET revision = usage_head.revision + 1" +
		"\nRETURNING client_id, rolled_from, pruned_before\n-- headInsert"
}

// rollupInsert writes pages, new ones or in place of what was there.
func rollupInsert(rows int) string {
	return tuples("INSERT INTO rollup ("+rollupColumns+")\nVALUES ", rows, rollupColumnCount, 1) +
		"\nON CONFLICT (client_id, sub_account_id, grain, dimension, start, part) DO UPDATE" +
		"\nSET data = excluded.data\n-- rollupInsert"
}

// rollupSelect reads pages by their keys. The first key says what type the
// others have.
func rollupSelect(rows int) string {
	head := "SELECT r.client_id, r.sub_account_id, r.grain, r.dimension, r.start, r.part, r.data\nFROM (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT))"
	if rows > 1 {
		head = tuples(head+", ", rows-1, rollupKeyCount, rollupKeyCount+1)
	}
	return head + ") AS k\nJOIN rollup r ON r.client_id = k.column1 AND r.sub_account_id = k.column2 AND r.grain = k.column3" +
		"\n  AND r.dimension = k.column4 AND r.start = k.column5 AND r.part = k.column6\n-- rollupSelect"
}

// headSelect reads the heads of clients.
func headSelect(rows int) string {
	return tuples("SELECT client_id, rolled_from\nFROM usage_head\nWHERE client_id IN ", 1, rows, 1) + "\n-- headSelect"
}

// deltaInsert adds to rollups.
func deltaInsert(rows int) string {
	return tuples("INSERT INTO rollup_delta (client_id, sub_account_id, hour, id, data)\nVALUES ", rows, 5, 1) + "\n-- deltaInsert"
}

// deltaDelete deletes what was put into pages. The first key says what type
// the others have.
func deltaDelete(rows int) string {
	head := "DELETE FROM rollup_delta\nWHERE (client_id, sub_account_id, hour, id) IN (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT))"
	if rows > 1 {
		head = tuples(head+", ", rows-1, 4, 5)
	}
	return head + ")\n-- deltaDelete"
}
