package wallet

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlLockWallet takes the lock of a wallet: that of its counter, which bookings
// take too.
const sqlLockWallet = `UPDATE spend
SET held = held
WHERE client_id = $1 AND scope = 'sub_account' AND scope_id = $2 AND period = 'total' AND period_start = 0
RETURNING settled
-- sqlLockWallet`

const sqlOneWallet = walletSelect + `w.sub_account_id = $2
-- sqlOneWallet`

const sqlNewWallet = `INSERT INTO wallet (client_id, sub_account_id, enabled, blocked, credit_line, low_balance, on_chargeback, checkout, checkout_min, checkout_max,
  credited, allocated, low_noted, spent_noted)
SELECT client_id, id, $3, $4, CAST($5 AS BIGINT), CAST($6 AS BIGINT), $7, $8, CAST($9 AS BIGINT), CAST($10 AS BIGINT), 0, 0, CAST($6 AS BIGINT) IS NOT NULL, CAST($5 AS BIGINT) = 0
FROM sub_account
WHERE client_id = $1 AND id = $2
ON CONFLICT (client_id, sub_account_id) DO NOTHING
-- sqlNewWallet`

const sqlNewWalletSpend = `INSERT INTO spend (client_id, scope, scope_id, period, period_start, settled, held)
VALUES ($1, 'sub_account', $2, 'total', 0, 0, 0)
ON CONFLICT (client_id, scope, scope_id, period, period_start) DO NOTHING
-- sqlNewWalletSpend`

const sqlSaveWallet = `UPDATE wallet
SET enabled = $3, blocked = $4, credit_line = $5, low_balance = $6, on_chargeback = $7, checkout = $8, checkout_min = $9, checkout_max = $10,
  credited = $11, allocated = $12
WHERE client_id = $1 AND sub_account_id = $2
-- sqlSaveWallet`

const sqlSaveSettled = `UPDATE spend
SET settled = settled + $3
WHERE client_id = $1 AND scope = 'sub_account' AND scope_id = $2 AND period = 'total' AND period_start = 0
-- sqlSaveSettled`

const sqlSaveRemaining = `UPDATE wallet_entry
SET remaining = $2
WHERE id = $1
-- sqlSaveRemaining`

const sqlInsertWalletEntry = `INSERT INTO wallet_entry (client_id, sub_account_id, ` + entryColumns + `, remaining)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
-- sqlInsertWalletEntry`

const sqlPutWalletLimit = `INSERT INTO budget (client_id, scope, scope_id, period, amount, revision)
VALUES ($1, 'sub_account', $2, 'total', $3, $4)
ON CONFLICT (client_id, scope, scope_id, period) DO UPDATE
SET amount = excluded.amount, revision = excluded.revision
-- sqlPutWalletLimit`

const sqlDropWalletLimit = `DELETE FROM budget
WHERE client_id = $1 AND scope = 'sub_account' AND scope_id = $2 AND period = 'total'
-- sqlDropWalletLimit`

// The refs of entries begin with what they are of.
const external = "x:"

// maxSum bounds the sums of entries; blockedLimit lies below every sum of debits.
const (
	maxSum       = 4 * modelgate.MaxBudget
	blockedLimit = -maxSum
)

// errRange answers an entry that the sums have no room for.
var errRange = &modelgate.Error{Kind: modelgate.BadRequest, Message: "the balance would be out of range"}

// ledger is a wallet that is locked and being changed in a transaction.
type ledger struct {
	*Store
	ctx context.Context
	tx  *sql.Tx
	id  ID
	Wallet
	before  map[string]modelgate.Nano // what remained of credits
	fresh   []Entry
	audits  []modelgate.Audit
	alerts  []alert
	taken   modelgate.Nano // what the negative entries come to
	changed bool
}

// change locks a wallet, hands out what calls were debited meanwhile, and changes
// it. Errors: not_found.
func (s *Store) change(ctx context.Context, op string, id ID, do func(*ledger) error) error {
	return s.db.Update(ctx, op, func(tx *sql.Tx) error { return s.changeIn(ctx, tx, id, do) })
}

// changeIn is change in a transaction that holds no other lock of the money.
func (s *Store) changeIn(ctx context.Context, tx *sql.Tx, id ID, do func(*ledger) error) error {
	l := &ledger{Store: s, ctx: ctx, tx: tx, id: id, before: make(map[string]modelgate.Nano)}
	if err := l.lock(); err != nil {
		return err
	}
	if err := do(l); err != nil || !l.changed {
		return err
	}
	return l.save()
}

// lock reads the wallet once nobody else can change it.
func (l *ledger) lock() error {
	var settled int64
	err := l.tx.QueryRowContext(l.ctx, sqlLockWallet, l.id.args()...).Scan(&settled)
	if err == nil {
		l.Wallet, err = scanWallet(l.tx.QueryRowContext(l.ctx, sqlOneWallet, l.id.args()...))
	}
	if errors.Is(err, sql.ErrNoRows) {
		return errNoWallet
	}
	if err != nil {
		return err
	}
	left, err := creditsLeft(l.ctx, l.tx, l.id)
	l.Grants = left[l.id.SubAccountID]
	for _, g := range l.Grants {
		l.before[g.ID] = g.Remaining
	}
	l.spread()
	return err
}

// add adds an entry, and fills in what the entry does not say. A negative one is
// settled like a debit: whoever reserves is judged under the counter's lock, and
// by the limit only where that has grown.
func (l *ledger) add(e *Entry) {
	e.ID, e.At = l.ids.New().String(), sqldb.Stored(l.db.Now())
	if e.ref == "" {
		e.ref = "e:" + e.ID
	}
	if e.Note == nil {
		e.Note = new(string)
	}
	l.changed = true
	if e.Amount > 0 {
		l.credited += e.Amount
		l.Grants = append(l.Grants, Grant{ID: e.ID, Kind: e.Kind, Amount: e.Amount, Remaining: e.Amount, ExpiresAt: e.ExpiresAt, CreatedAt: e.At, orderID: e.OrderID})
		slices.SortFunc(l.Grants, inOrderOfUse)
		l.alert(modelgate.WalletCredited, e.Amount)
	} else {
		l.settled -= e.Amount
		l.taken -= e.Amount
	}
	l.fresh = append(l.fresh, *e)
}

// save writes what was changed. The control version comes last but for the
// budget, which takes it as its revision: instances then return what lies idle.
func (l *ledger) save() error {
	l.spread()
	if l.Limit() > maxSum || l.settled > maxSum {
		return errRange
	}
	remaining := make(map[string]modelgate.Nano, len(l.Grants))
	for _, g := range l.Grants {
		remaining[g.ID] = g.Remaining
	}
	for _, e := range l.fresh {
		if err := l.exec(sqlInsertWalletEntry, l.id.args(e.ID, sqldb.Micros(e.At), string(e.Kind), int64(e.Amount), micros(e.ExpiresAt), *e.Note, e.ref,
			e.OrderID, int64(e.claimed), string(e.By), int64(remaining[e.ID]))...); err != nil {
			return err
		}
	}
	for id, before := range l.before {
		if before != remaining[id] {
			if err := l.exec(sqlSaveRemaining, id, int64(remaining[id])); err != nil {
				return err
			}
		}
	}
	if err := l.exec(sqlSaveWallet, l.id.args(append(l.Settings.args(), int64(l.credited), int64(l.allocated))...)...); err != nil {
		return err
	}
	if l.taken != 0 {
		if err := l.exec(sqlSaveSettled, l.id.args(int64(l.taken))...); err != nil {
			return err
		}
	}
	return l.publish()
}

// publish notes alerts and audits, and sets the limit.
func (l *ledger) publish() error {
	if err := l.noteFallen(l.ctx, l.tx, []ID{l.id}); err != nil {
		return err
	}
	for _, a := range l.alerts {
		if err := l.note(l.ctx, l.tx, l.id, a); err != nil {
			return err
		}
	}
	for _, a := range l.audits {
		if err := l.record(l.ctx, l.tx, l.id.ClientID, a); err != nil {
			return err
		}
	}
	revision, err := sqldb.NextControl(l.ctx, l.tx)
	if err != nil {
		return err
	}
	if !l.Enabled {
		return l.exec(sqlDropWalletLimit, l.id.args()...)
	}
	limit := l.Limit()
	if l.Blocked {
		limit = blockedLimit
	}
	return l.exec(sqlPutWalletLimit, l.id.args(int64(limit), revision)...)
}

func (l *ledger) exec(query string, args ...any) error {
	_, err := l.tx.ExecContext(l.ctx, query, args...)
	return err
}

func micros(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return sqldb.Micros(*t)
}

// args are the columns of the settings.
func (s *Settings) args() []any {
	var low any
	if s.LowBalance != nil {
		low = int64(*s.LowBalance)
	}
	return []any{s.Enabled, s.Blocked, int64(s.CreditLine), low, string(s.OnChargeback), s.Checkout.Enabled, int64(s.Checkout.Min), int64(s.Checkout.Max)}
}

// PutWallet sets what a reseller sets about a wallet; blocked stays as it is where
// that is nil. Enabling counts from the next admitted call on, and disabling keeps
// the balance. Errors: not_found for a sub-account that is not the organization's.
func (s *Store) PutWallet(ctx context.Context, id ID, to Settings, blocked *bool, a modelgate.Audit) error {
	return s.db.Update(ctx, "put wallet", func(tx *sql.Tx) error {
		to := to // of this attempt
		if blocked != nil {
			to.Blocked = *blocked
		}
		made, err := sqldb.Affected(ctx, tx, sqlNewWallet, id.args(to.args()...)...)
		if err != nil {
			return err
		}
		if made > 0 {
			if _, err := tx.ExecContext(ctx, sqlNewWalletSpend, id.args()...); err != nil {
				return err
			}
		}
		err = s.changeIn(ctx, tx, id, func(l *ledger) error {
			if blocked == nil {
				to.Blocked = l.Blocked
			}
			if to.Blocked && !l.Blocked && made == 0 {
				l.alert(modelgate.WalletBlocked, 0)
			}
			l.Settings, l.changed = to, true
			l.audits = append(l.audits, a)
			return nil
		})
		if errors.Is(err, errNoWallet) {
			return modelgate.Errorf(modelgate.NotFound, "sub-account not found")
		}
		return err
	})
}

// errReused answers an external id that stands for another entry.
var errReused = &modelgate.Error{Kind: modelgate.Conflict, Message: "external_id was used for another entry"}

// AddEntry adds an entry of a reseller: a purchase, a grant or an adjustment. The
// same external id with the same content is answered with the entry that it made
// before. Errors: not_found; conflict for other content; bad_request for a grant
// that has expired, or a sum out of range.
func (s *Store) AddEntry(ctx context.Context, id ID, e Entry, a modelgate.Audit) (Entry, error) {
	e.ref, e.By = external+e.ExternalID, ByReseller
	var out Entry
	err := s.change(ctx, "add wallet entry", id, func(l *ledger) error {
		known, err := scanEntry(l.tx.QueryRowContext(ctx, sqlEntryByRef, id.args(e.ref)...))
		switch {
		case err == nil && (known.Kind != e.Kind || known.Amount != e.Amount || *known.Note != *e.Note || micros(known.ExpiresAt) != micros(e.ExpiresAt)):
			return errReused
		case err == nil:
			out = known
			return nil
		case !errors.Is(err, sql.ErrNoRows):
			return err
		case e.ExpiresAt != nil && !e.ExpiresAt.After(l.db.Now()):
			return modelgate.Errorf(modelgate.BadRequest, "expires_at must lie in the future")
		}
		out = e
		l.add(&out)
		l.audits = append(l.audits, a)
		return nil
	})
	return out, err
}
