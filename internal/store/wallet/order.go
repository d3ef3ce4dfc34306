package wallet

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const orderColumns = `id, client_id, sub_account_id, amount, status, session_id, payment_id, created_at, expires_at`

// sqlNewTopUp makes an order where the wallet offers payments and has few that are
// open.
const sqlNewTopUp = `INSERT INTO wallet_order (` + orderColumns + `, paid_at)
SELECT $3, client_id, sub_account_id, CAST($4 AS BIGINT), 'open', '', '', CAST($5 AS BIGINT), CAST($6 AS BIGINT), 0
FROM wallet w
WHERE client_id = $1 AND sub_account_id = $2 AND enabled AND checkout AND CAST($7 AS BIGINT) > (
    SELECT COUNT(*)
    FROM wallet_order o
    WHERE o.client_id = $1 AND o.sub_account_id = $2 AND o.status = 'open' AND o.expires_at > CAST($5 AS BIGINT))
-- sqlNewTopUp`

const sqlSetTopUpSession = `UPDATE wallet_order
SET session_id = $3, expires_at = $4
WHERE client_id = $1 AND id = $2 AND session_id = ''
-- sqlSetTopUpSession`

const sqlTopUp = `SELECT ` + orderColumns + `
FROM wallet_order
WHERE client_id = $1 AND id = $2
-- sqlTopUp`

const sqlTopUpByPayment = `SELECT ` + orderColumns + `
FROM wallet_order
WHERE client_id = $1 AND payment_id = $2 AND payment_id <> ''
-- sqlTopUpByPayment`

const sqlPayTopUp = `UPDATE wallet_order
SET status = 'paid', session_id = $3, payment_id = $4, paid_at = $5
WHERE client_id = $1 AND id = $2 AND status <> 'paid' AND session_id IN ('', $3)
-- sqlPayTopUp`

const sqlCloseTopUp = `UPDATE wallet_order
SET status = 'closed'
WHERE client_id = $1 AND id = $2 AND status = 'open'
-- sqlCloseTopUp`

// sqlClaims are what refunds and disputes of an order claim, less those that were
// reversed, and what was taken off for them.
const sqlClaims = `SELECT CAST(COALESCE(SUM(claimed), 0) AS BIGINT), CAST(COALESCE(-SUM(amount), 0) AS BIGINT)
FROM wallet_entry
WHERE client_id = $1 AND sub_account_id = $2 AND order_id = $3 AND kind <> 'purchase'
-- sqlClaims`

// OrderStatus is the state of a payment into a wallet.
type OrderStatus string

// The states of an order. Paid never changes.
const (
	OrderOpen   OrderStatus = "open"
	OrderPaid   OrderStatus = "paid"
	OrderClosed OrderStatus = "closed" // its session has expired, or its payment failed
)

// Order is a payment into a wallet that was begun.
type Order struct {
	ID                   string // UUID
	Wallet               ID
	Amount               modelgate.Nano // whole cents
	Status               OrderStatus
	SessionID            string // the processor's; "" until it has answered
	PaymentID            string // what paid it; "" until it is paid
	CreatedAt, ExpiresAt time.Time
}

// maxOpenOrders is how many payments of a wallet may be open at once.
const maxOpenOrders = 10

// CreateTopUp notes that a payment is about to begin. Errors: forbidden where
// payments are not offered; rate_limited where too many are open.
func (s *Store) CreateTopUp(ctx context.Context, o Order, a modelgate.Audit) error {
	return s.db.Update(ctx, "create order of a wallet", func(tx *sql.Tx) error {
		w, err := scanWallet(tx.QueryRowContext(ctx, sqlOneWallet, o.Wallet.args()...))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err != nil || !w.Enabled || !w.Checkout.Enabled {
			return modelgate.Errorf(modelgate.Forbidden, "payments are not offered to this customer")
		}
		if o.Amount < w.Checkout.Min || o.Amount > w.Checkout.Max {
			return modelgate.Errorf(modelgate.BadRequest, "amount_usd must be from %s to %s in whole cents", w.Checkout.Min, w.Checkout.Max)
		}
		made, err := sqldb.Affected(ctx, tx, sqlNewTopUp, o.Wallet.args(o.ID, int64(o.Amount), sqldb.Micros(o.CreatedAt), sqldb.Micros(o.ExpiresAt), maxOpenOrders)...)
		if err != nil {
			return err
		}
		if made == 0 {
			return modelgate.Errorf(modelgate.RateLimited, "%d payments are open; complete one or wait until it expires", maxOpenOrders)
		}
		return s.record(ctx, tx, o.Wallet.ClientID, a)
	})
}

// SetTopUpSession notes the processor's session of an order, once.
func (s *Store) SetTopUpSession(ctx context.Context, client modelgate.ClientID, order, session string, expires time.Time) error {
	_, err := s.db.Write.ExecContext(ctx, sqlSetTopUpSession, string(client), order, session, sqldb.Micros(expires))
	return sqldb.Wrap("set session of a wallet's order", err)
}

// TopUp reads an order. Errors: not_found.
func (s *Store) TopUp(ctx context.Context, client modelgate.ClientID, id string) (Order, error) {
	return s.topUp(ctx, sqlTopUp, client, id)
}

// TopUpByPayment reads the order that a payment has paid. Errors: not_found.
func (s *Store) TopUpByPayment(ctx context.Context, client modelgate.ClientID, payment string) (Order, error) {
	return s.topUp(ctx, sqlTopUpByPayment, client, payment)
}

func (s *Store) topUp(ctx context.Context, query string, client modelgate.ClientID, name string) (Order, error) {
	var o Order
	err := s.db.Read.QueryRowContext(ctx, query, string(client), name).Scan(&o.ID, &o.Wallet.ClientID, &o.Wallet.SubAccountID, &o.Amount, &o.Status,
		&o.SessionID, &o.PaymentID, sqldb.Moment{Into: &o.CreatedAt}, sqldb.Moment{Into: &o.ExpiresAt})
	return o, sqldb.Wrap("read order of a wallet", sqldb.Missing(err, "order"))
}

// CloseTopUp notes that an open order will not be paid, and reports whether this
// call did it.
func (s *Store) CloseTopUp(ctx context.Context, client modelgate.ClientID, id string) (closed bool, err error) {
	err = s.db.Update(ctx, "close order of a wallet", func(tx *sql.Tx) error {
		n, err := sqldb.Affected(ctx, tx, sqlCloseTopUp, string(client), id)
		closed = n > 0
		return err
	})
	return closed && err == nil, err
}

// PayTopUp credits the wallet with an order's amount, once, and reports whether
// this call did it. A payment that has paid another order is a conflict.
func (s *Store) PayTopUp(ctx context.Context, o Order, session, payment string, a modelgate.Audit) (paid bool, err error) {
	err = s.change(ctx, "pay order of a wallet", o.Wallet, func(l *ledger) error {
		n, err := sqldb.Affected(ctx, l.tx, sqlPayTopUp, string(o.Wallet.ClientID), o.ID, session, payment, sqldb.Micros(s.db.Now()))
		if sqldb.Duplicate(err) {
			return modelgate.Errorf(modelgate.Conflict, "the payment has paid another order")
		}
		if paid = n > 0; err != nil || !paid {
			return err
		}
		l.add(&Entry{Kind: Purchase, Amount: o.Amount, OrderID: o.ID, By: ByCustomer, ref: "o:" + o.ID})
		l.audits = append(l.audits, a)
		return nil
	})
	return paid && err == nil, err
}

// Claim is a refund or a dispute of a paid order, as the processor knows it now.
type Claim struct {
	ID      string // the processor's
	Dispute bool
	Amount  modelgate.Nano
	// Reversed: the refund has failed, or the dispute was won. Reinstated besides
	// says that the amount was surely taken before.
	Reversed, Reinstated bool
}

// Apply books a claim as far as that is not done: its amount is taken off once and,
// if it is reversed, comes back once, whatever is delivered how often and in which
// order. What comes back is what was taken, also where the claim names another amount by now. All claims of an order together take at most what it has paid, first of
// its own credit. It reports whether this call changed anything.
func (s *Store) Apply(ctx context.Context, o Order, c Claim, audit func(action string) modelgate.Audit) (changed bool, err error) {
	err = s.change(ctx, "book a claim against a wallet", o.Wallet, func(l *ledger) error {
		changed = false
		prefix, reverse, taken, back, action := "r:", "R:", Refund, RefundReversed, "wallet.refund"
		if c.Dispute {
			prefix, reverse, taken, back, action = "d:", "D:", Chargeback, ChargebackReversed, "wallet.chargeback"
		}
		_, undone, err := l.claimed(reverse + c.ID)
		if err != nil || undone {
			return err
		}
		amount, known, err := l.claimed(prefix + c.ID)
		if err != nil {
			return err
		}
		if !known && (!c.Reversed || c.Reinstated) {
			if err := l.claim(&o, Entry{Kind: taken, claimed: c.Amount, ref: prefix + c.ID}); err != nil {
				return err
			}
			l.audits = append(l.audits, audit(action))
			amount, known, changed = c.Amount, true, true
			if c.Dispute && l.OnChargeback == Block && !l.Blocked {
				l.Blocked = true
				l.alert(modelgate.WalletBlocked, c.Amount)
			}
		}
		if !known || !c.Reversed {
			return nil
		}
		changed = true
		l.audits = append(l.audits, audit(action+"_reversed"))
		return l.claim(&o, Entry{Kind: back, claimed: -amount, ref: reverse + c.ID})
	})
	return changed && err == nil, err
}

// claimed is what the entry with a ref claims, and whether there is one.
func (l *ledger) claimed(ref string) (modelgate.Nano, bool, error) {
	e, err := scanEntry(l.tx.QueryRowContext(l.ctx, sqlEntryByRef, l.id.args(ref)...))
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return e.claimed, err == nil, err
}

// claim adds the entry of a claim or its reversal: what brings all that was taken
// to what is claimed in sum, at most the order's amount.
func (l *ledger) claim(o *Order, e Entry) error {
	var claimed, taken modelgate.Nano
	if err := l.tx.QueryRowContext(l.ctx, sqlClaims, l.id.args(o.ID)...).Scan(&claimed, &taken); err != nil {
		return err
	}
	for _, f := range l.fresh {
		if f.OrderID == o.ID {
			claimed, taken = claimed+f.claimed, taken-f.Amount
		}
	}
	e.Amount, e.OrderID, e.By = taken-min(o.Amount, claimed+e.claimed), o.ID, ByProcessor
	for i := range l.Grants {
		if g := &l.Grants[i]; g.orderID == o.ID && g.Kind == Purchase {
			l.use(g, -e.Amount)
		}
	}
	l.add(&e)
	return nil
}
