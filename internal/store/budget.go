package store

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
)

// sqlBudgets lists the budgets of one client, $1 and $5, or of all between
// them; it walks the primary key of budget.
const sqlBudgets = `SELECT b.client_id, b.scope, b.scope_id, b.period, b.amount, b.revision, COALESCE(s.settled, 0), COALESCE(s.held, 0)
FROM budget b
LEFT JOIN spend s ON s.client_id = b.client_id AND s.scope = b.scope AND s.scope_id = b.scope_id
  AND s.period = b.period AND s.period_start = CASE b.period WHEN 'day' THEN CAST($3 AS BIGINT) ELSE CAST($4 AS BIGINT) END
WHERE b.client_id >= $1 AND b.client_id <= $5
  AND b.period <> 'total'
  AND ($2 = '' OR b.scope = 'sub_account' AND b.scope_id = $2 OR b.scope = 'key' AND EXISTS (
    SELECT 1
    FROM api_key k
    WHERE k.id = b.scope_id AND k.client_id = b.client_id AND k.sub_account_id = $2))
ORDER BY b.client_id, b.scope, b.scope_id, b.period
-- sqlBudgets`

const sqlPutBudget = `INSERT INTO budget (client_id, scope, scope_id, period, amount, revision)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (client_id, scope, scope_id, period) DO UPDATE
SET amount = excluded.amount, revision = excluded.revision
-- sqlPutBudget`

const sqlDeleteBudget = `DELETE FROM budget
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4
-- sqlDeleteBudget`

// sqlBudgetTarget counts whether a target is the client's and, where $4 names
// a sub-account, that one's.
const sqlBudgetTarget = `SELECT
  (SELECT COUNT(*) FROM client WHERE $2 = 'client' AND id = $1 AND id = $3 AND $4 = '')
  + (SELECT COUNT(*) FROM sub_account WHERE $2 = 'sub_account' AND client_id = $1 AND id = $3 AND ($4 = '' OR id = $4))
  + (SELECT COUNT(*) FROM api_key WHERE $2 = 'key' AND client_id = $1 AND id = $3 AND ($4 = '' OR sub_account_id = $4))
-- sqlBudgetTarget`

// sqlNextControl raises the control version and takes it as the revision of
// a budget.
const sqlNextControl = `UPDATE control
SET version = version + 1
WHERE id = 1
RETURNING version
-- sqlNextControl`

// BudgetSpend is a budget and what is spent of it.
type BudgetSpend struct {
	modelgate.Budget
	ClientID modelgate.ClientID
	Spend    modelgate.Nano // settled in the current period
	Held     modelgate.Nano // reserved by calls and instances
}

// BudgetList selects budgets; zero fields select nothing away.
type BudgetList struct {
	// SubAccountID restricts the list to a sub-account and its keys.
	SubAccountID modelgate.SubAccountID
	At           time.Time // the instant whose periods are shown; zero is now
}

// Budgets lists the budgets of an organization, or with "" of all, with what
// is spent of them. (spec: GET /gw/budgets)
func (db *DB) Budgets(ctx context.Context, client modelgate.ClientID, l BudgetList) ([]BudgetSpend, error) {
	if l.At.IsZero() {
		l.At = db.now()
	}
	last := string(client)
	if client == "" {
		last = "~" // behind every id
	}
	out, err := list(ctx, db.read, func(s scanner) (BudgetSpend, error) {
		var b BudgetSpend
		err := s.Scan(&b.ClientID, &b.Level, &b.ID, &b.Period, &b.Limit, &b.Revision, &b.Spend, &b.Held)
		return b, err
	}, sqlBudgets, string(client), string(l.SubAccountID),
		modelgate.Day.Start(l.At).UnixMicro(), modelgate.Month.Start(l.At).UnixMicro(), last)
	return out, wrap("list budgets", err)
}

// PutBudget sets a budget, in place of one of the same target and period. A
// key or sub-account outside the scope is not_found. It raises the control
// version, and notes alerts where the limit lies below what is spent: there
// may be no call any more that would. (spec: PUT /gw/budgets)
func (db *DB) PutBudget(ctx context.Context, client modelgate.ClientID, s KeyScope, b modelgate.Budget, a modelgate.Audit) error {
	if err := b.Validate(); err != nil {
		return err
	}
	return db.update(ctx, "put budget", func(tx *sql.Tx) error {
		if err := budgetTarget(ctx, tx, client, s, &b); err != nil {
			return err
		}
		if err := db.record(ctx, tx, client, a); err != nil {
			return err
		}
		revision, err := nextControl(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sqlPutBudget, string(client), string(b.Level), b.ID, string(b.Period), int64(b.Limit), revision)
		if err != nil {
			return err
		}
		target := counter{modelgate.Counter{ClientID: client, Level: b.Level, ID: b.ID}}
		return db.noteAlertsOf(ctx, tx, db.now(), []counter{target})
	})
}

// DeleteBudget removes a budget. What is spent goes on being counted. It
// raises the control version. Errors: not_found.
func (db *DB) DeleteBudget(ctx context.Context, client modelgate.ClientID, s KeyScope, b modelgate.Budget, a modelgate.Audit) error {
	if b.IsBalance() {
		return modelgate.Errorf(modelgate.NotFound, "budget not found")
	}
	return db.update(ctx, "delete budget", func(tx *sql.Tx) error {
		if err := budgetTarget(ctx, tx, client, s, &b); err != nil {
			return err
		}
		if err := db.record(ctx, tx, client, a); err != nil {
			return err
		}
		if err := raiseControl(ctx, tx); err != nil {
			return err
		}
		r, err := tx.ExecContext(ctx, sqlDeleteBudget, string(client), string(b.Level), b.ID, string(b.Period))
		if err != nil {
			return err
		}
		return oneRow(r, "budget")
	})
}

func budgetTarget(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, s KeyScope, b *modelgate.Budget) error {
	var found int
	err := tx.QueryRowContext(ctx, sqlBudgetTarget, string(client), string(b.Level), b.ID, string(s.SubAccountID)).Scan(&found)
	if err == nil && found == 0 {
		return modelgate.Errorf(modelgate.NotFound, "budget target not found")
	}
	return err
}

func nextControl(ctx context.Context, tx *sql.Tx) (version int64, err error) {
	err = tx.QueryRowContext(ctx, sqlNextControl).Scan(&version)
	return version, err
}
