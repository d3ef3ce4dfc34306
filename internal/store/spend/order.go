package spend

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const orderColumns = `id, client_id, amount, status, session_id, payment_id, created_at, paid_at`

const sqlInsertOrder = `INSERT INTO checkout_order (` + orderColumns + `)
SELECT $1, id, $3, 'open', '', '', $4, 0
FROM client
WHERE id = $2 AND billing = 'manual'
-- sqlInsertOrder`

const sqlSetSession = `UPDATE checkout_order
SET session_id = $2
WHERE id = $1 AND session_id = ''
-- sqlSetSession`

const sqlOrder = `SELECT ` + orderColumns + `
FROM checkout_order
WHERE id = $1
-- sqlOrder`

const sqlPayOrder = `UPDATE checkout_order
SET status = 'paid', session_id = $2, payment_id = $3, paid_at = $4
WHERE id = $1 AND status = 'open' AND session_id IN ('', $2)
RETURNING client_id, amount
-- sqlPayOrder`

// OrderStatus is the state of a payment into a balance.
type OrderStatus string

// The states of an order.
const (
	OrderOpen OrderStatus = "open"
	OrderPaid OrderStatus = "paid"
)

// Order is a payment into a prepaid balance that was begun.
type Order struct {
	ID        string // UUID; also that of the balance entry
	ClientID  modelgate.ClientID
	Amount    modelgate.Nano // whole cents
	Status    OrderStatus
	SessionID string // the processor's; "" until it has answered
	PaymentID string // what paid it; "" while open
	CreatedAt time.Time
	PaidAt    time.Time
}

// CreateOrder notes that a payment is about to begin. Errors: bad_request for
// an organization without a prepaid balance.
func (s *Store) CreateOrder(ctx context.Context, o Order, a modelgate.Audit) error {
	return s.db.Update(ctx, "create order", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlInsertOrder, o.ID, o.ClientID, int64(o.Amount), sqldb.Micros(o.CreatedAt))
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			return modelgate.Errorf(modelgate.BadRequest, "this organization is invoiced; only prepaid balances are topped up")
		}
		return s.record(ctx, tx, o.ClientID, a)
	})
}

// SetOrderSession notes the processor's session of an order, once.
func (s *Store) SetOrderSession(ctx context.Context, id, session string) error {
	_, err := s.db.Write.ExecContext(ctx, sqlSetSession, id, session)
	return sqldb.Wrap("set order's session", err)
}

// Order reads an order. Errors: not_found.
func (s *Store) Order(ctx context.Context, id string) (Order, error) {
	var o Order
	err := s.db.Read.QueryRowContext(ctx, sqlOrder, id).Scan(&o.ID, &o.ClientID, &o.Amount, &o.Status, &o.SessionID, &o.PaymentID,
		sqldb.Moment{Into: &o.CreatedAt}, sqldb.Moment{Into: &o.PaidAt})
	return o, sqldb.Wrap("read order", sqldb.Missing(err, "order"))
}

// Payment is what paid an order.
type Payment struct {
	OrderID   string
	SessionID string
	PaymentID string
}

// PayOrder credits the balance with an order's amount, once: the order moves
// from open to paid in the transaction that adds the entry. It reports whether
// this call did it. A payment that has paid another order already is a
// conflict.
func (s *Store) PayOrder(ctx context.Context, p Payment, a modelgate.Audit) (paid bool, err error) {
	err = s.db.Update(ctx, "pay order", func(tx *sql.Tx) error {
		paid = false
		now := s.db.Now()
		var client modelgate.ClientID
		e := BalanceEntry{ID: p.OrderID, At: now, Note: "checkout"}
		found, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
			return struct{}{}, s.Scan(&client, &e.Amount)
		}, sqlPayOrder, p.OrderID, p.SessionID, p.PaymentID, sqldb.Micros(now))
		if sqldb.Duplicate(err) {
			return modelgate.Errorf(modelgate.Conflict, "the payment has paid another order")
		}
		if err != nil || len(found) == 0 {
			return err
		}
		paid = true
		return s.credit(ctx, tx, client, e, a)
	})
	return paid && err == nil, err
}
