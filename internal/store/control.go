package store

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlControlVersion = `SELECT version
FROM control
WHERE id = 1
-- sqlControlVersion`

const sqlRaiseControl = `UPDATE control
SET version = version + 1
WHERE id = 1
-- sqlRaiseControl`

// ControlVersion is a number that grows whenever a cached Caller may have
// become wrong: a key was revoked, a sub-account suspended, or limits,
// markups, ceilings or clients changed. Reading it is cheap enough to be done
// every second.
func (db *DB) ControlVersion(ctx context.Context) (int64, error) {
	var v int64
	err := db.read.QueryRowContext(ctx, sqlControlVersion).Scan(&v)
	return v, sqldb.Wrap("read control version", err)
}

// raiseControl comes last in a transaction: every change of the kind meets in
// this one row, and whoever holds it should be about to commit.
func raiseControl(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, sqlRaiseControl)
	return err
}

// record is evidence.Store.RecordAudit.
func (db *DB) record(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, a modelgate.Audit) error {
	return db.RecordAudit(ctx, tx, client, a)
}
