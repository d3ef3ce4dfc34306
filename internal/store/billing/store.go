// Package billing keeps the events by which usage is billed to the end customers
// of organizations: queued in the transaction that books their usage rows, and
// sent later to the organization's payment processor, one customer at a time.
package billing

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Store keeps the billing events of all organizations. Safe for concurrent use.
type Store struct {
	db *sqldb.DB
	// record writes the audit of a change in the change's own transaction.
	record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error
}

// NewStore is the billing events in a database.
func NewStore(db *sqldb.DB, record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error) *Store {
	return &Store{db, record}
}

// Statements are the statements of so many rows, by their names: a test
// prepares them.
func Statements(rows int) map[string]string {
	return map[string]string{
		"billedTo": billedTo(rows), "eventInsert": eventInsert(rows), "eventTries": eventTries(rows), "eventSettlements": eventSettlements(rows),
		"carryLocks": carryLocks(rows), "carrySaves": carrySaves(rows), "queueWakes": queueWakes(rows),
	}
}
