// Package evidence keeps the records of evidence: in compressed batches, noted in
// the transaction that they are about, then numbered and hashed into the chain of
// their client, read, checked and pruned.
package evidence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modelgate"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/yield"
)

// Store keeps the evidence of all clients. Records are noted in the transaction
// that they are about and put into their client's chain later. Safe for
// concurrent use.
type Store struct {
	db       *sqldb.DB
	pack     *Packer
	ids      *modelgate.IDs // of batches
	software string         // the version of the program, as records name it
	// yielder lets calls run between the records of a batch; nil where none are
	// served.
	yielder *yield.Yielder
}

// NewStore is the evidence in a database.
func NewStore(db *sqldb.DB, software string, y *yield.Yielder) (*Store, error) {
	pack, err := NewPacker()
	return &Store{db, pack, modelgate.NewIDs(db.Now), software, y}, err
}

// AddAudit records something that changes nothing but is to be known.
func (s *Store) AddAudit(ctx context.Context, client modelgate.ClientID, a modelgate.Audit) error {
	return s.db.Update(ctx, "record an audit", func(tx *sql.Tx) error { return s.RecordAudit(ctx, tx, client, a) })
}

const sqlInsertAudit = `INSERT INTO audit (id, at, client_id, action, actor, target_type, target_id, change, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
-- sqlInsertAudit`

// RecordAudit writes the audit of a change in the change's own transaction, and
// its record for the evidence. A client or time that the caller left out is
// filled in. A record without id, action or exactly one actor is refused.
func (s *Store) RecordAudit(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, a modelgate.Audit) error {
	if a.ID == "" || a.Action == "" {
		return errors.New("an audit record needs an id and an action")
	}
	if !a.Actor.Valid() {
		return fmt.Errorf("the audit record %s needs one actor, and has %+v", a.Action, a.Actor)
	}
	if a.ClientID == "" {
		a.ClientID = client
	}
	if a.At.IsZero() {
		a.At = s.db.Now()
	}
	actor, err := sqldb.JSON(a.Actor)
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
	return s.pendAudit(ctx, tx, &a)
}
