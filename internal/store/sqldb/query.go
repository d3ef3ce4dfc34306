package sqldb

import (
	"context"
	"database/sql"
)

// List collects the rows of a query. The scan function reads one row.
func List[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), text string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// Querier is what *sql.DB and *sql.Tx have in common for reading.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Scanner is what *sql.Row and *sql.Rows have in common.
type Scanner interface{ Scan(dest ...any) error }
