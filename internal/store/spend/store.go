// Package spend counts what organizations, sub-accounts and keys spend, holds it
// against their budgets and prepaid balances, and lends instances parts of what
// is left: all of it in the transaction that books the usage rows, or in one of
// its own.
package spend

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Store keeps the spending of all clients. Safe for concurrent use.
type Store struct {
	db *sqldb.DB
	// record writes the audit of a change in the change's own transaction.
	record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error
	// heartbeats tell for how long instances have been silent.
	heartbeats heartbeats
	rules      ruleCache
}

// NewStore is the spending in a database.
func NewStore(db *sqldb.DB, record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error) *Store {
	return &Store{db: db, record: record}
}
