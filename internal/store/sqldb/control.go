package sqldb

import (
	"context"
	"database/sql"
)

const sqlNextControl = `UPDATE control
SET version = version + 1
WHERE id = 1
RETURNING version
-- sqlNextControl`

// NextControl raises the control version, which tells instances that a cached
// Caller may have become wrong, and returns it: a budget takes it as its
// revision.
func NextControl(ctx context.Context, tx *sql.Tx) (version int64, err error) {
	err = tx.QueryRowContext(ctx, sqlNextControl).Scan(&version)
	return version, err
}

// RaiseControl is NextControl where nobody wants the version. It comes last in a
// transaction: every change of the kind meets in this one row, and whoever holds
// it should be about to commit.
func RaiseControl(ctx context.Context, tx *sql.Tx) error {
	_, err := NextControl(ctx, tx)
	return err
}
