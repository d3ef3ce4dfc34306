package store

import (
	"context"
	"database/sql"
	"errors"

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

const sqlInsertAudit = `INSERT INTO audit (id, at, client_id, action, actor, target_type, target_id, change, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
-- sqlInsertAudit`

// ControlVersion is a number that grows whenever a cached Caller may have
// become wrong: a key was revoked, a sub-account suspended, or limits,
// markups, ceilings or clients changed. Reading it is cheap enough to be done
// every second.
func (db *DB) ControlVersion(ctx context.Context) (int64, error) {
	var v int64
	err := db.read.QueryRowContext(ctx, sqlControlVersion).Scan(&v)
	return v, wrap("read control version", err)
}

// raiseControl comes last in a transaction: every change of the kind meets in
// this one row, and whoever holds it should be about to commit.
func raiseControl(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, sqlRaiseControl)
	return err
}

// record writes the audit of a change in the change's own transaction, and
// its record for the evidence. A client or time that the caller left out is filled in.
func (db *DB) record(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, a modelgate.Audit) error {
	if a.ID == "" || a.Action == "" {
		return errors.New("an audit record needs an id and an action")
	}
	if a.ClientID == "" {
		a.ClientID = client
	}
	if a.At.IsZero() {
		a.At = db.now()
	}
	actor, err := text(a.Actor)
	if err != nil {
		return err
	}
	var change any
	if len(a.Change) > 0 {
		change = string(a.Change)
	}
	_, err = tx.ExecContext(ctx, sqlInsertAudit, a.ID, sqldb.Micros(a.At), string(a.ClientID), a.Action, actor,
		a.TargetType, a.TargetID, change, a.RequestID)
	if err != nil {
		return err
	}
	return db.pendAudit(ctx, tx, &a)
}
