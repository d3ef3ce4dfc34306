package store

import (
	"context"
	"database/sql"

	"modelgate/internal/store/sqldb"
)

// Statements that read the tuples of a feed in place of VALUES. OR FAIL: see
// sqlSQLiteFeed.
const (
	sqlSQLiteSpend = `INSERT OR FAIL INTO spend (` + spendColumns + `)
SELECT column1, column2, column3, column4, column5, column6, column7
FROM temp.feed_tuple
WHERE true` + spendConflict + `
-- sqlSQLiteSpend`

	sqlSQLiteLatencies = `INSERT OR FAIL INTO latency_histogram (` + latencyColumns + `)
SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10
FROM temp.feed_tuple
WHERE true` + latencyConflict + `
-- sqlSQLiteLatencies`

	sqlSQLiteSliceSpend = `UPDATE OR FAIL slice
SET granted = slice.granted - v.column7
FROM temp.feed_tuple AS v
WHERE ` + sliceSpendRow + `
-- sqlSQLiteSliceSpend`
)

// runFed runs a statement once for all its tuples.
func (f *usageFeed) runFed(ctx context.Context, tx *sql.Tx, m *sqldb.BatchExec) error {
	defer f.tuples.Clear()
	if err := f.tuples.Fill(m.N, m.Args); err != nil {
		return err
	}
	exec := func(ctx context.Context, args ...any) (sql.Result, error) { return tx.ExecContext(ctx, m.Fed, args...) }
	query := func(ctx context.Context, args ...any) (*sql.Rows, error) { return tx.QueryContext(ctx, m.Fed, args...) }
	return m.RunWith(ctx, exec, query, nil)
}
