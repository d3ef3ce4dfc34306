package store

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"modernc.org/sqlite/vtab"
)

// feedTupleTable has as many columns as the widest tuple, called as those of
// VALUES are.
const feedTupleTable = `CREATE TABLE feed_tuple (column1, column2, column3, column4, column5, column6, column7, column8, column9, column10)`

const sqlSQLiteFeedTuples = `CREATE VIRTUAL TABLE IF NOT EXISTS temp.feed_tuple USING ` + feedModule + `(tuple)
-- sqlSQLiteFeedTuples`

// Statements that read the tuples of a feed in place of VALUES. OR FAIL: see
// sqlSQLiteFeed.
const (
	sqlSQLiteSpend = `INSERT OR FAIL INTO spend (` + spendColumns + `)
SELECT column1, column2, column3, column4, column5, column6, column7
FROM temp.feed_tuple
WHERE true` + spendConflict + `
-- sqlSQLiteSpend`

	sqlSQLitePulse = `INSERT OR FAIL INTO pulse (` + pulseColumns + `)
SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10
FROM temp.feed_tuple
WHERE true` + pulseConflict + `
-- sqlSQLitePulse`

	sqlSQLiteSliceSpend = `UPDATE OR FAIL slice
SET granted = slice.granted - v.column7
FROM temp.feed_tuple AS v
WHERE ` + sliceSpendRow + `
-- sqlSQLiteSliceSpend`
)

// many runs a statement once for all its tuples.
func (f *feed) many(ctx context.Context, tx *sql.Tx, m *batchExec) error {
	defer f.clear()
	for i := range m.n {
		start := len(f.tuples)
		f.tuples = m.args(f.tuples, i)
		f.width = len(f.tuples) - start
		for j := start; j < len(f.tuples); j++ {
			var err error
			if f.tuples[j], err = driver.DefaultParameterConverter.ConvertValue(f.tuples[j]); err != nil {
				return err
			}
		}
	}
	f.work = f.way.Work()
	exec := func(ctx context.Context, args ...any) (sql.Result, error) { return tx.ExecContext(ctx, m.fed, args...) }
	query := func(ctx context.Context, args ...any) (*sql.Rows, error) { return tx.QueryContext(ctx, m.fed, args...) }
	return m.run(ctx, exec, query, nil)
}

// feedTupleTables is feed_tuple.
type feedTupleTables struct{ feedTable }

// BestIndex implements vtab.Table: there are few tuples, and each is to be
// looked at once.
func (t feedTupleTables) BestIndex(info *vtab.IndexInfo) error {
	info.EstimatedRows, info.EstimatedCost = 1, 1
	return nil
}

// Open implements vtab.Table.
func (t feedTupleTables) Open() (vtab.Cursor, error) { return &feedTuples{feed: t.feed}, nil }

// feedTuples walks over the tuples.
type feedTuples struct {
	feed *feed
	at   int
	rest []any // from the present one on
}

// Filter implements vtab.Cursor.
func (c *feedTuples) Filter(int, string, []vtab.Value) error {
	c.at, c.rest = 0, c.feed.tuples
	return nil
}

// Next implements vtab.Cursor.
func (c *feedTuples) Next() error {
	c.at++
	c.rest = c.rest[c.feed.width:]
	c.feed.work.Step()
	return nil
}

// Eof implements vtab.Cursor.
func (c *feedTuples) Eof() bool { return len(c.rest) == 0 }

// Column implements vtab.Cursor.
func (c *feedTuples) Column(i int) (vtab.Value, error) {
	if i >= c.feed.width {
		return nil, nil
	}
	return c.rest[i], nil
}

// Rowid implements vtab.Cursor.
func (c *feedTuples) Rowid() (int64, error) { return int64(c.at), nil }

// Close implements vtab.Cursor.
func (c *feedTuples) Close() error { return nil }
