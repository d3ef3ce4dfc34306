package sqldb

import (
	"context"
	"database/sql"

	"modelgate"
)

// List collects the rows of a query. The scan function reads one row.
func List[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), text string, args ...any) ([]T, error) {
	out := []T{}
	err := Each(ctx, q, func(s Scanner) error {
		v, err := scan(s)
		out = append(out, v)
		return err
	}, text, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Querier is what *sql.DB and *sql.Tx have in common for reading.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Scanner is what *sql.Row and *sql.Rows have in common.
type Scanner interface{ Scan(dest ...any) error }

// ScanText reads a row of one text.
func ScanText(s Scanner) (text string, err error) {
	err = s.Scan(&text)
	return text, err
}

// Affected runs a statement and returns how many rows it has changed.
func Affected(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	r, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Each runs a query and calls scan for each of its rows.
func Each(ctx context.Context, q Querier, scan func(Scanner) error, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ScanClientID reads a row of one client's id.
func ScanClientID(s Scanner) (id modelgate.ClientID, err error) {
	err = s.Scan(&id)
	return id, err
}
