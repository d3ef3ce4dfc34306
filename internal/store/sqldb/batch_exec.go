package sqldb

import (
	"context"
	"database/sql"
	"math/bits"
	"strconv"
)

// BatchExec is a statement that is to be run for many tuples.
type BatchExec struct {
	Text func(tuples int) string
	N    int
	Args func(dst []any, i int) []any // appends those of the i-th
	Scan func(Scanner) error          // nil where the statement returns nothing
	// Fresh leads the arguments of each statement; nil for nothing.
	Fresh []any
	// Fed is the statement for SQLite's writing connection, which reads all
	// tuples from feed_tuple; empty where text serves that too, one by one.
	Fed string
}

// Run runs the statement for all tuples, in their order: rowsPerStatement at
// once, a power of two. Without tuples it does nothing.
func (m *BatchExec) Run(ctx context.Context, tx *sql.Tx, rowsPerStatement int) error {
	if m.N == 0 {
		return nil
	}
	if rowsPerStatement == 1 {
		stmt, err := tx.PrepareContext(ctx, m.Text(1))
		if err != nil {
			return err
		}
		defer stmt.Close()
		var args []any
		still := context.WithoutCancel(ctx) // watching it would take a goroutine for each tuple
		for i := range m.N {
			if err := ctx.Err(); err != nil {
				return err
			}
			args = m.Args(args[:0], i)
			if err := m.RunWith(still, stmt.ExecContext, stmt.QueryContext, args); err != nil {
				return err
			}
		}
		return nil
	}
	var args []any
	for i := 0; i < m.N; {
		rows := StatementRows(m.N-i, rowsPerStatement)
		args = append(args[:0], m.Fresh...)
		for end := i + rows; i < end; i++ {
			args = m.Args(args, i)
		}
		text := m.Text(rows)
		exec := func(ctx context.Context, args ...any) (sql.Result, error) { return tx.ExecContext(ctx, text, args...) }
		query := func(ctx context.Context, args ...any) (*sql.Rows, error) { return tx.QueryContext(ctx, text, args...) }
		if err := m.RunWith(ctx, exec, query, args); err != nil {
			return err
		}
	}
	return nil
}

// RunWith runs the statement once by exec, or by query where there is a Scan.
func (m *BatchExec) RunWith(ctx context.Context, exec func(context.Context, ...any) (sql.Result, error),
	query func(context.Context, ...any) (*sql.Rows, error), args []any) error {
	if m.Scan == nil {
		_, err := exec(ctx, args...)
		return err
	}
	rows, err := query(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := m.Scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Statements of many rows are the only ones that are not constants. Their
// numbers of rows are powers of two, so that there are few different texts
// and each connection keeps them prepared.

// StatementRows is how many of n rows the next statement takes: the largest
// power of two that is neither above n nor above most.
func StatementRows(n, most int) int {
	return 1 << (bits.Len(uint(min(n, most))) - 1)
}

// Tuples appends ($1, $2), ($3, $4), … to head, counting from first.
func Tuples(head string, rows, columns, first int) string {
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
