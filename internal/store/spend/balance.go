package spend

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlHasClient = `SELECT EXISTS (
  SELECT 1
  FROM client
  WHERE id = $1)
-- sqlHasClient`

const sqlInsertEntry = `INSERT INTO balance_entry (id, client_id, at, amount, note)
VALUES ($1, $2, $3, $4, $5)
-- sqlInsertEntry`

const sqlAddCredit = `INSERT INTO budget (client_id, scope, scope_id, period, amount, revision)
VALUES ($1, 'client', $1, 'total', $2, $3)
ON CONFLICT (client_id, scope, scope_id, period) DO UPDATE
SET amount = budget.amount + excluded.amount, revision = excluded.revision
RETURNING amount
-- sqlAddCredit`

const sqlEntries = `SELECT id, at, amount, note
FROM balance_entry
WHERE client_id = $1
ORDER BY at DESC, id DESC
LIMIT $2
-- sqlEntries`

// sqlBalance takes what an invoiced client spends for no debit.
const sqlBalance = `SELECT
  COALESCE((SELECT amount FROM budget WHERE client_id = $1 AND scope = 'client' AND scope_id = $1 AND period = 'total'), 0),
  COALESCE((SELECT invoiced_spend FROM client WHERE id = $1 AND billing = 'invoiced'),
    (SELECT settled FROM spend WHERE client_id = $1 AND scope = 'client' AND scope_id = $1 AND period = 'total' AND period_start = 0), 0),
  COALESCE((SELECT held FROM spend WHERE client_id = $1 AND scope = 'client' AND scope_id = $1 AND period = 'total' AND period_start = 0), 0)
-- sqlBalance`

// BalanceEntry is a credit of a client's prepaid balance; below 0 it takes one
// back. Entries are never changed: the debits are the usage rows.
type BalanceEntry struct {
	ID     string         `json:"id"` // UUID
	At     time.Time      `json:"at"`
	Amount modelgate.Nano `json:"amount_usd"`
	Note   string         `json:"note"`
}

// Balance is a client's prepaid balance.
type Balance struct {
	Credited modelgate.Nano // the sum of all entries
	// Spent is the sum of the costs of all usage rows, of an invoiced client as
	// it was when the client began to be.
	Spent modelgate.Nano
	Held  modelgate.Nano // reserved by calls and instances
}

// Left is the balance: what was credited and is not spent.
func (b Balance) Left() modelgate.Nano { return b.Credited - b.Spent }

// Credit adds an entry to a client's balance. It raises the control version.
// Errors: not_found; conflict for an entry that is there already; bad_request
// for an amount of 0, or a sum that Nano cannot hold.
func (s *Store) Credit(ctx context.Context, client modelgate.ClientID, e BalanceEntry, a modelgate.Audit) error {
	if e.Amount == 0 || e.Amount > modelgate.MaxBudget || e.Amount < -modelgate.MaxBudget {
		return modelgate.Errorf(modelgate.BadRequest, "the amount must not be 0 and at most %s", modelgate.MaxBudget)
	}
	return s.db.Update(ctx, "credit balance", func(tx *sql.Tx) error { return s.credit(ctx, tx, client, e, a) })
}

// credit is Credit in a transaction.
func (s *Store) credit(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, e BalanceEntry, a modelgate.Audit) error {
	if err := hasClient(ctx, tx, client); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, sqlInsertEntry, e.ID, string(client), sqldb.Micros(e.At), int64(e.Amount), sqldb.Clean(e.Note))
	if sqldb.Duplicate(err) {
		return modelgate.Errorf(modelgate.Conflict, "balance entry %s exists already", e.ID)
	}
	if err != nil {
		return err
	}
	if err := s.record(ctx, tx, client, a); err != nil {
		return err
	}
	revision, err := sqldb.NextControl(ctx, tx)
	if err != nil {
		return err
	}
	var sum modelgate.Nano
	if err := tx.QueryRowContext(ctx, sqlAddCredit, string(client), int64(e.Amount), revision).Scan(&sum); err != nil {
		return err
	}
	if sum > 4*modelgate.MaxBudget || sum < -4*modelgate.MaxBudget {
		return modelgate.Errorf(modelgate.BadRequest, "the balance would be out of range")
	}
	return nil
}

// hasClient answers not_found where there is no such client.
func hasClient(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) error {
	var found bool
	err := tx.QueryRowContext(ctx, sqlHasClient, client).Scan(&found)
	if err == nil && !found {
		return modelgate.Errorf(modelgate.NotFound, "client not found")
	}
	return err
}

const sqlBecomeInvoiced = `UPDATE client
SET invoiced_spend = COALESCE((SELECT settled FROM spend
  WHERE client_id = client.id AND scope = 'client' AND scope_id = client.id AND period = 'total' AND period_start = 0), 0)
WHERE id = $1
-- sqlBecomeInvoiced`

const sqlSpentInvoiced = `SELECT COALESCE((SELECT settled FROM spend
  WHERE client_id = client.id AND scope = 'client' AND scope_id = client.id AND period = 'total' AND period_start = 0), 0) - invoiced_spend
FROM client
WHERE id = $1
-- sqlSpentInvoiced`

// SwitchBilling keeps what a client spends while it is invoiced out of its
// balance: when it becomes a manual one that is credited. It raises the
// control version.
func (s *Store) SwitchBilling(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, to modelgate.Billing, a modelgate.Audit) error {
	if to == modelgate.Invoiced {
		if _, err := tx.ExecContext(ctx, sqlBecomeInvoiced, string(client)); err != nil {
			return err
		}
		return sqldb.RaiseControl(ctx, tx)
	}
	var spent int64
	if err := tx.QueryRowContext(ctx, sqlSpentInvoiced, string(client)).Scan(&spent); err != nil {
		return err
	}
	revision, err := sqldb.NextControl(ctx, tx)
	if err != nil || spent == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, sqlInsertEntry, a.ID, string(client), sqldb.Micros(s.db.Now()), spent, "spent while invoiced")
	if err != nil {
		return err
	}
	var sum modelgate.Nano
	return tx.QueryRowContext(ctx, sqlAddCredit, string(client), spent, revision).Scan(&sum)
}

// Balance reads a client's balance and its newest entries, at most limit; 0
// means all. Errors: not_found.
func (s *Store) Balance(ctx context.Context, client modelgate.ClientID, limit int) (Balance, []BalanceEntry, error) {
	var b Balance
	var entries []BalanceEntry
	err := s.db.Snapshot(ctx, "read balance", func(tx *sql.Tx) error {
		if err := hasClient(ctx, tx, client); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, sqlBalance, string(client)).Scan(&b.Credited, &b.Spent, &b.Held)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		most := int64(sqldb.Never)
		if limit > 0 {
			most = int64(limit)
		}
		entries, err = sqldb.List(ctx, tx, func(s sqldb.Scanner) (BalanceEntry, error) {
			var e BalanceEntry
			err := s.Scan(&e.ID, sqldb.Moment{Into: &e.At}, &e.Amount, &e.Note)
			return e, err
		}, sqlEntries, string(client), most)
		return err
	})
	return b, entries, err
}
