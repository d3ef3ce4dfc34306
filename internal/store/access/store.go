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
	counted       Counted
	rules         rules        // of callers
	lineages      lineageCache // of keys
	rates         rateLimitCache
}

// Counted are the budgets and limits with counters of their own, and what they
// have in common with rate limits; *spend.Store is one.
type Counted interface {
	// RulesOf adds the rules of a caller to it, as of a version of its
	// organization's and one of the configuration file's; 0 is none.
	RulesOf(ctx context.Context, c *modelgate.Caller, version, file int64) error
	// PutLimit and DeleteLimit are PutRateLimit and DeleteRateLimit for limits
	// that are OnClock.
	PutLimit(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, l modelgate.RateLimit, a modelgate.Audit) error
	DeleteLimit(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, l modelgate.RateLimit, a modelgate.Audit) error
	// CheckRules fails where an owner has more rules and rate limits at a target
	// than it may have.
	CheckRules(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, of modelgate.Level, id string, owner modelgate.Owner) error
}

// NewStore is the access in a database.
func NewStore(db *sqldb.DB, record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error,
	switchBilling func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Billing, modelgate.Audit) error,
	counted Counted) *Store {
	return &Store{db: db, record: record, switchBilling: switchBilling, counted: counted}
}

// Statements are the statements of so many keys, by their names: a test
// prepares them.
func Statements(keys int) map[string]string {
	return map[string]string{"lineageSelect": lineageSelect(keys), "keyNames": keyNames(keys), "subAccountsByID": subAccountsByID(keys)}
}
