// Package wallet keeps the prepaid balances of sub-accounts, in billed dollars:
// what they were credited with, in which order it is used, and what expires. What
// calls are debited is counted by package spend, in the counter that a wallet
// shares with its budget.
package wallet

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Store keeps the wallets of all organizations. Safe for concurrent use.
type Store struct {
	db  *sqldb.DB
	ids *modelgate.IDs
	// record writes the audit of a change in the change's own transaction.
	record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error
}

// NewStore is the wallets in a database.
func NewStore(db *sqldb.DB, record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error) *Store {
	return &Store{db, modelgate.NewIDs(db.Now), record}
}

// ID names a wallet.
type ID struct {
	ClientID     modelgate.ClientID
	SubAccountID modelgate.SubAccountID
}

func (id ID) compare(o ID) int {
	return cmp.Or(cmp.Compare(id.ClientID, o.ClientID), cmp.Compare(id.SubAccountID, o.SubAccountID))
}

// args are the leading arguments of most statements.
func (id ID) args(more ...any) []any {
	return append([]any{string(id.ClientID), string(id.SubAccountID)}, more...)
}

// MaxAmount is the largest amount of an entry, and the largest credit line.
const MaxAmount = 1_000_000 * modelgate.USD

// Settings are what a reseller sets about a wallet.
type Settings struct {
	Enabled    bool            `json:"enabled"`
	CreditLine modelgate.Nano  `json:"credit_line_usd"` // from 0 to MaxAmount
	LowBalance *modelgate.Nano `json:"low_balance_usd"` // nil: no alert
	// Blocked refuses all calls. A chargeback sets it where OnChargeback says
	// block; only the reseller lifts it.
	Blocked      bool         `json:"blocked"`
	OnChargeback OnChargeback `json:"on_chargeback,omitzero"` // "" hides it
	Checkout     Checkout     `json:"checkout"`
}

// OnChargeback says what a chargeback does beside taking its amount off.
type OnChargeback string

// The values of OnChargeback.
const (
	Block OnChargeback = "block"
	Debit OnChargeback = "debit"
)

// Checkout says whether customers may pay in, and how much at once.
type Checkout struct {
	Enabled bool           `json:"enabled"`
	Min     modelgate.Nano `json:"min_usd"`
	Max     modelgate.Nano `json:"max_usd"`
}

// Wallet is a sub-account's prepaid balance in billed dollars.
type Wallet struct {
	SubAccountID modelgate.SubAccountID `json:"sub_account_id"`
	Settings
	Balance   modelgate.Nano `json:"balance_usd"` // may lie below 0
	Held      modelgate.Nano `json:"held_usd"`    // reserved by calls and instances
	Available modelgate.Nano `json:"available_usd"`
	Grants    []Grant        `json:"grants"` // credits that are not used up, in the order of use

	// credited is the sum of the credits and settled that of the debits and of the
	// negative entries. allocated is how much of settled was taken off what
	// remains of the credits.
	credited, settled, allocated modelgate.Nano
	lowNoted, spentNoted         bool
}

// Grant is a credit of which something remains.
type Grant struct {
	ID        string         `json:"id"`
	Kind      Kind           `json:"kind"`
	Amount    modelgate.Nano `json:"amount_usd"`
	Remaining modelgate.Nano `json:"remaining_usd"`
	ExpiresAt *time.Time     `json:"expires_at"` // nil: never
	CreatedAt time.Time      `json:"created_at"`

	orderID string
}

// Limit is what may be debited altogether, now and in the past; while the wallet is
// blocked nothing can be.
func (w *Wallet) Limit() modelgate.Nano { return w.credited + w.CreditLine }

// Kind is the kind of an entry.
type Kind string

// The kinds. Usage is what calls of one UTC day were debited; the others are
// stored.
const (
	Purchase           Kind = "purchase"
	GrantKind          Kind = "grant"
	Adjustment         Kind = "adjustment"
	Refund             Kind = "refund"
	RefundReversed     Kind = "refund_reversed"
	Chargeback         Kind = "chargeback"
	ChargebackReversed Kind = "chargeback_reversed"
	Expiry             Kind = "expiry"
	Usage              Kind = "usage"
)

// Maker is who made an entry.
type Maker string

// The makers of entries.
const (
	ByReseller  Maker = "reseller"
	ByCustomer  Maker = "customer"
	ByProcessor Maker = "processor"
	BySystem    Maker = "system"
)

// Entry is a change of a wallet. It is final when it is written. One of the kind
// usage has a kind, a day and an amount only.
type Entry struct {
	ID         string         `json:"id,omitzero"` // UUID
	At         time.Time      `json:"at,omitzero"`
	Kind       Kind           `json:"kind"`
	Day        string         `json:"day,omitzero"` // YYYY-MM-DD
	Amount     modelgate.Nano `json:"amount_usd"`   // below 0 for what is taken off
	ExpiresAt  *time.Time     `json:"expires_at,omitzero"`
	Note       *string        `json:"note,omitzero"`
	ExternalID string         `json:"external_id,omitzero"`
	OrderID    string         `json:"order_id,omitzero"`
	By         Maker          `json:"by,omitzero"`

	ref     string
	claimed modelgate.Nano // of a refund or dispute, what it claims of its order
}

// Statements are the statements of so many rows, by their names: a test
// prepares them.
func Statements(rows int) map[string]string {
	return map[string]string{"dayDebits": dayDebits(rows), "fallen": fallen(rows)}
}
