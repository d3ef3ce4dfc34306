package spend

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlBudgets lists the budgets of one client, $1 and $5, or of all between
// them, each owner's; it walks the primary keys of owned_budget and budget. The
// caps of browser tokens are no budgets that anybody has set.
const sqlBudgets = `SELECT b.client_id, b.scope, b.scope_id, b.period, b.owner, b.amount, COALESCE(s.settled, 0), COALESCE(s.held, 0)
FROM (
  SELECT client_id, scope, scope_id, period, owner, amount
  FROM owned_budget
  WHERE client_id >= $1 AND client_id <= $5
  UNION ALL
  SELECT client_id, scope, scope_id, period, 'organization', amount
  FROM budget n
  WHERE client_id >= $1 AND client_id <= $5 AND period <> 'total' AND scope <> 'token' AND NOT EXISTS (
    SELECT 1
    FROM owned_budget o
    WHERE o.client_id = n.client_id AND o.scope = n.scope AND o.scope_id = n.scope_id AND o.period = n.period)) b
LEFT JOIN spend s ON s.client_id = b.client_id AND s.scope = b.scope AND s.scope_id = b.scope_id
  AND s.period = b.period AND s.period_start = CASE b.period WHEN 'day' THEN CAST($3 AS BIGINT) ELSE CAST($4 AS BIGINT) END
WHERE ($2 = '' OR b.scope = 'sub_account' AND b.scope_id = $2 OR b.scope = 'key' AND EXISTS (
    SELECT 1
    FROM api_key k
    WHERE k.id = b.scope_id AND k.client_id = b.client_id AND k.sub_account_id = $2))
ORDER BY b.client_id, b.scope, b.scope_id, b.period, b.owner
-- sqlBudgets`

// sqlAdoptBudget gives the organization what is in budget alone.
const sqlAdoptBudget = `INSERT INTO owned_budget (client_id, scope, scope_id, period, owner, amount)
SELECT client_id, scope, scope_id, period, 'organization', amount
FROM budget
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND NOT EXISTS (
    SELECT 1
    FROM owned_budget
    WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4)
-- sqlAdoptBudget`

const sqlPutOwned = `INSERT INTO owned_budget (client_id, scope, scope_id, period, owner, amount)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (client_id, scope, scope_id, period, owner) DO UPDATE
SET amount = excluded.amount
-- sqlPutOwned`

const sqlDeleteOwned = `DELETE FROM owned_budget
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND owner = $5
-- sqlDeleteOwned`

const sqlOwners = `SELECT owner
FROM owned_budget
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4
-- sqlOwners`

// sqlBindSmallest makes the smallest the one that binds.
const sqlBindSmallest = `INSERT INTO budget (client_id, scope, scope_id, period, amount, revision)
SELECT client_id, scope, scope_id, period, MIN(amount), CAST($5 AS BIGINT)
FROM owned_budget
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4
GROUP BY client_id, scope, scope_id, period
ON CONFLICT (client_id, scope, scope_id, period) DO UPDATE
SET amount = excluded.amount, revision = excluded.revision
-- sqlBindSmallest`

// sqlUnbind removes what nobody has set any more.
const sqlUnbind = `DELETE FROM budget
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND NOT EXISTS (
    SELECT 1
    FROM owned_budget
    WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4)
-- sqlUnbind`

// sqlBudgetTarget counts whether a target is the client's and, where $4 names
// a sub-account, that one's.
const sqlBudgetTarget = `SELECT
  (SELECT COUNT(*) FROM client WHERE $2 = 'client' AND id = $1 AND id = $3 AND $4 = '')
  + (SELECT COUNT(*) FROM sub_account WHERE $2 = 'sub_account' AND client_id = $1 AND id = $3 AND ($4 = '' OR id = $4))
  + (SELECT COUNT(*) FROM api_key WHERE $2 = 'key' AND client_id = $1 AND id = $3 AND ($4 = '' OR sub_account_id = $4))
-- sqlBudgetTarget`

// BudgetSpend is a budget and what is spent of it.
type BudgetSpend struct {
	modelgate.Budget
	ClientID modelgate.ClientID
	Spend    modelgate.Nano // settled in the current period
	Held     modelgate.Nano // reserved by calls and instances
	// Values are the dearest counters of a match of each value, at most
	// maxListedValues. Spend and Held are the sums of all.
	Values []modelgate.ValueSpend
}

// BudgetList selects budgets; zero fields select nothing away.
type BudgetList struct {
	// SubAccountID restricts the list to a sub-account and its keys.
	SubAccountID modelgate.SubAccountID
	At           time.Time // the instant whose periods are shown; zero is now
	// Limits adds the rate limits over an hour or a day.
	Limits bool
}

// Budgets lists the budgets of an organization, or with "" of all, with what
// is spent of them.
func (s *Store) Budgets(ctx context.Context, client modelgate.ClientID, l BudgetList) ([]BudgetSpend, error) {
	if l.At.IsZero() {
		l.At = s.db.Now()
	}
	last := string(client)
	if client == "" {
		last = "~" // behind every id
	}
	out, err := sqldb.List(ctx, s.db.Read, func(s sqldb.Scanner) (BudgetSpend, error) {
		var b BudgetSpend
		err := s.Scan(&b.ClientID, &b.Level, &b.ID, &b.Period, &b.Owner, &b.Limit, &b.Spend, &b.Held)
		return b, err
	}, sqlBudgets, string(client), string(l.SubAccountID),
		modelgate.Day.Start(l.At).UnixMicro(), modelgate.Month.Start(l.At).UnixMicro(), last)
	if err != nil {
		return nil, sqldb.Wrap("list budgets", err)
	}
	rules, err := s.listRules(ctx, client, last, &l)
	if err != nil || len(rules) == 0 {
		return out, sqldb.Wrap("list budgets", err)
	}
	out = append(out, rules...)
	slices.SortStableFunc(out, func(a, b BudgetSpend) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.Level, b.Level), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// PutBudget sets a budget, in place of one of the same owner, target, period and
// match. Where within names a sub-account, a target that is not that one or a
// key of it is not_found. It raises the control version, and notes alerts where the limit lies below what is spent:
// there may be no call any more that would. Errors: conflict for too many
// budgets that are not plain; unavailable where the calls so far are too many to
// be counted.
func (s *Store) PutBudget(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, b modelgate.Budget, a modelgate.Audit) error {
	if err := b.Validate(); err != nil {
		return err
	}
	return s.changeBudget(ctx, "put budget", client, within, b, a, func(tx *sql.Tx, b *modelgate.Budget, version int64) error {
		if b.IsPlain() {
			if _, err := s.deleteRule(ctx, tx, client, b); err != nil {
				return err
			}
			return putOwned(ctx, tx, client, b)
		}
		if sharesName(b) {
			if _, err := deleteOwned(ctx, tx, client, b); err != nil {
				return err
			}
		}
		if err := s.putRule(ctx, tx, client, b, version); err != nil {
			return err
		}
		return s.alertRule(ctx, tx, client, b)
	})
}

// ownerOf is who a budget's owner is stored as.
func ownerOf(b *modelgate.Budget) string { return string(cmp.Or(b.Owner, modelgate.OwnerOrganization)) }

// plainName is the identity of a plain budget without its owner.
func plainName(client modelgate.ClientID, b *modelgate.Budget) []any {
	return []any{string(client), string(b.Level), b.ID, string(b.Period)}
}

func putOwned(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget) error {
	_, err := tx.ExecContext(ctx, sqlPutOwned, append(plainName(client, b), ownerOf(b), int64(b.Limit))...)
	return err
}

// deleteOwned removes a plain budget; false where there is none.
func deleteOwned(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget) (bool, error) {
	n, err := sqldb.Affected(ctx, tx, sqlDeleteOwned, append(plainName(client, b), ownerOf(b))...)
	return n > 0, err
}

// DeleteBudget removes a budget of its owner, plain or not. What is spent of a
// target goes on being counted. It raises the control version. Within is as for
// PutBudget. Errors: not_found; forbidden where only somebody above the owner
// has set one.
func (s *Store) DeleteBudget(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, b modelgate.Budget, a modelgate.Audit) error {
	if b.IsBalance() {
		return modelgate.Errorf(modelgate.NotFound, "budget not found")
	}
	return s.changeBudget(ctx, "delete budget", client, within, b, a, func(tx *sql.Tx, b *modelgate.Budget, _ int64) error {
		if found, err := s.deleteRule(ctx, tx, client, b); err != nil || found {
			return err
		}
		if sharesName(b) {
			if found, err := deleteOwned(ctx, tx, client, b); err != nil || found {
				return err
			}
		}
		return notOwn(ctx, tx, client, b)
	})
}

// sharesName reports whether the budget has the identity of a plain one.
func sharesName(b *modelgate.Budget) bool {
	return b.Unit == "" && b.Match == nil && (b.Period == modelgate.Day || b.Period == modelgate.Month)
}

// changeBudget changes what an owner has set and then what binds. The head of
// the client's rules keeps two changes apart, and changes from bookings.
func (s *Store) changeBudget(ctx context.Context, op string, client modelgate.ClientID, within modelgate.SubAccountID, b modelgate.Budget, a modelgate.Audit,
	change func(tx *sql.Tx, b *modelgate.Budget, version int64) error) error {
	return s.db.Update(ctx, op, func(tx *sql.Tx) error {
		b := b // of this attempt
		if err := budgetTarget(ctx, tx, client, within, &b); err != nil {
			return err
		}
		var version int64
		if err := tx.QueryRowContext(ctx, sqlRaiseHead, string(client)).Scan(&version); err != nil {
			return err
		}
		name := plainName(client, &b)
		name = name[:len(name):len(name)]
		if sharesName(&b) {
			if _, err := tx.ExecContext(ctx, sqlAdoptBudget, name...); err != nil {
				return err
			}
		}
		if err := change(tx, &b, version); err != nil {
			return err
		}
		if err := s.record(ctx, tx, client, a); err != nil {
			return err
		}
		revision, err := sqldb.NextControl(ctx, tx)
		if err != nil || !sharesName(&b) {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlBindSmallest, append(name, revision)...); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlUnbind, name...); err != nil {
			return err
		}
		target := counter{modelgate.Counter{ClientID: client, Level: b.Level, ID: b.ID}}
		return s.noteAlertsOf(ctx, tx, s.db.Now(), []counter{target})
	})
}

// notOwn is why an owner has no budget to remove.
func notOwn(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget) error {
	owners, err := sqldb.List(ctx, tx, sqldb.ScanText, sqlRuleOwners, append(ruleName(client, b)[:5], string(b.Unit))...)
	if err != nil {
		return err
	}
	if sharesName(b) {
		plain, err := sqldb.List(ctx, tx, sqldb.ScanText, sqlOwners, plainName(client, b)...)
		if err != nil {
			return err
		}
		owners = append(owners, plain...)
	}
	has := func(o modelgate.Owner) bool { return slices.Contains(owners, string(o)) }
	switch modelgate.Owner(ownerOf(b)) {
	case modelgate.OwnerSubAccount:
		if has(modelgate.OwnerOperator) || has(modelgate.OwnerOrganization) {
			return modelgate.ErrResellersBudget
		}
	case modelgate.OwnerOrganization:
		if has(modelgate.OwnerOperator) {
			return modelgate.ErrOperatorsBudget
		}
	}
	return modelgate.Errorf(modelgate.NotFound, "%s not found", noun(b))
}

// noun is what a client calls it.
func noun(b *modelgate.Budget) string {
	if b.Unit != "" {
		return "limit"
	}
	return "budget"
}

func budgetTarget(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, within modelgate.SubAccountID, b *modelgate.Budget) error {
	var found int
	err := tx.QueryRowContext(ctx, sqlBudgetTarget, string(client), string(b.Level), b.ID, string(within)).Scan(&found)
	if err == nil && found == 0 {
		return modelgate.Errorf(modelgate.NotFound, "%s target not found", noun(b))
	}
	return err
}
