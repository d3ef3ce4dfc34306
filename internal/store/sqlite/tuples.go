package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"modernc.org/sqlite/vtab"

	"modelgate/internal/store/sqldb"
	"modelgate/internal/yield"
)

// tupleModule names the module of feed_tuple.
const tupleModule = "modelgate_tuples"

// tupleColumns has as many columns as the widest tuple, called as those of
// VALUES are.
const tupleColumns = `CREATE TABLE feed_tuple (column1, column2, column3, column4, column5, column6, column7, column8, column9, column10)`

const sqlSQLiteFeedTuples = `CREATE VIRTUAL TABLE IF NOT EXISTS temp.feed_tuple USING ` + tupleModule + `
-- sqlSQLiteFeedTuples`

// Tuples hands tuples of one width to a statement, which reads them from the
// virtual table temp.feed_tuple in place of VALUES: column1, column2 and so on,
// at most ten. They have one user at a time: whoever has the writing
// transaction of the pool that has their Module.
type Tuples struct {
	yielder *yield.Yielder
	loop    yield.Loop // of the statement that is being run
	values  []any      // of all tuples, one after the other
	width   int        // columns of each
}

// NewTuples has no tuples. Statements that read them let others run by y, which
// may be nil.
func NewTuples(y *yield.Yielder) *Tuples { return &Tuples{yielder: y} }

// Module is for the pool in which the tuples are read.
func (t *Tuples) Module() Module {
	return Module{Name: tupleModule, Module: tupleMaker{t}, Tables: []string{sqlSQLiteFeedTuples}}
}

// fill takes in n tuples, in their order; args appends the columns of the i-th.
func (t *Tuples) fill(n int, args func(dst []any, i int) []any) error {
	for i := range n {
		start := len(t.values)
		t.values = args(t.values, i)
		t.width = len(t.values) - start
		for j := start; j < len(t.values); j++ {
			var err error
			if t.values[j], err = driver.DefaultParameterConverter.ConvertValue(t.values[j]); err != nil {
				return err
			}
		}
	}
	t.loop = t.yielder.Loop()
	return nil
}

// clear forgets what was handed over, also after a fill that failed.
func (t *Tuples) clear() { *t = Tuples{yielder: t.yielder} }

// Run runs a statement once for all its tuples: by its Fed.
func (t *Tuples) Run(ctx context.Context, tx *sql.Tx, m *sqldb.BatchExec) error {
	defer t.clear()
	if err := t.fill(m.N, m.Args); err != nil {
		return err
	}
	exec := func(ctx context.Context, args ...any) (sql.Result, error) { return tx.ExecContext(ctx, m.Fed, args...) }
	query := func(ctx context.Context, args ...any) (*sql.Rows, error) { return tx.QueryContext(ctx, m.Fed, args...) }
	return m.RunWith(ctx, exec, query, nil)
}

// tupleMaker makes the table in a connection.
type tupleMaker struct{ tuples *Tuples }

// Create implements vtab.Module.
func (m tupleMaker) Create(ctx vtab.Context, _ []string) (vtab.Table, error) {
	return tupleTable(m), ctx.Declare(tupleColumns)
}

// Connect implements vtab.Module.
func (m tupleMaker) Connect(ctx vtab.Context, args []string) (vtab.Table, error) {
	return m.Create(ctx, args)
}

// tupleTable is feed_tuple.
type tupleTable struct{ tuples *Tuples }

// BestIndex implements vtab.Table: there are few tuples, and each is to be
// looked at once.
func (t tupleTable) BestIndex(info *vtab.IndexInfo) error {
	info.EstimatedRows, info.EstimatedCost = 1, 1
	return nil
}

// Open implements vtab.Table.
func (t tupleTable) Open() (vtab.Cursor, error) { return &tupleCursor{tuples: t.tuples}, nil }

// Disconnect implements vtab.Table.
func (tupleTable) Disconnect() error { return nil }

// Destroy implements vtab.Table.
func (tupleTable) Destroy() error { return nil }

// tupleCursor walks over the tuples.
type tupleCursor struct {
	tuples *Tuples
	at     int
	rest   []any // from the present one on
}

// Filter implements vtab.Cursor.
func (c *tupleCursor) Filter(int, string, []vtab.Value) error {
	c.at, c.rest = 0, c.tuples.values
	return nil
}

// Next implements vtab.Cursor.
func (c *tupleCursor) Next() error {
	c.at++
	c.rest = c.rest[c.tuples.width:]
	c.tuples.loop.Step()
	return nil
}

// Eof implements vtab.Cursor.
func (c *tupleCursor) Eof() bool { return len(c.rest) == 0 }

// Column implements vtab.Cursor.
func (c *tupleCursor) Column(i int) (vtab.Value, error) {
	if i >= c.tuples.width {
		return nil, nil
	}
	return c.rest[i], nil
}

// Rowid implements vtab.Cursor.
func (c *tupleCursor) Rowid() (int64, error) { return int64(c.at), nil }

// Close implements vtab.Cursor.
func (c *tupleCursor) Close() error { return nil }
