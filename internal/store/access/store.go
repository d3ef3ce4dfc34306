// Package access keeps who may call and manage: organizations, sub-accounts, keys
// with their rights and ancestors, sessions of the dashboard, and the branding of
// portals.
package access

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Store keeps the access of all clients. Safe for concurrent use.
type Store struct {
	db *sqldb.DB
	// record writes the audit of a change in the change's own transaction.
	record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error
	// switchBilling is spend.Store.SwitchBilling.
	switchBilling func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Billing, modelgate.Audit) error
	// rulesOf is spend.Store.RulesOf.
	rulesOf  func(ctx context.Context, c *modelgate.Caller, version int64) error
	rules    rules        // of callers
	lineages lineageCache // of keys
	rates    rateLimitCache
}

// NewStore is the access in a database.
func NewStore(db *sqldb.DB, record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error,
	switchBilling func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Billing, modelgate.Audit) error,
	rulesOf func(context.Context, *modelgate.Caller, int64) error) *Store {
	return &Store{db: db, record: record, switchBilling: switchBilling, rulesOf: rulesOf}
}

// Statements are the statements of so many keys, by their names: a test
// prepares them.
func Statements(keys int) map[string]string {
	return map[string]string{"lineageSelect": lineageSelect(keys), "keyNames": keyNames(keys)}
}
