package spend

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlRaiseHeld is the one statement that reserves money: its WHERE clause is judged
// under the lock of the row, so that nothing passes a limit unseen. $7 is what
// must still be left for that: $6 itself, less to admit the one call that
// crosses the limit, or more for a lease that is given of plenty only.
const sqlRaiseHeld = `UPDATE spend
SET held = held + $6
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
  AND settled + held + $7 <= (
    SELECT amount
    FROM budget
    WHERE budget.client_id = spend.client_id AND budget.scope = spend.scope
      AND budget.scope_id = spend.scope_id AND budget.period = spend.period)
RETURNING settled + held, (
    SELECT amount
    FROM budget
    WHERE budget.client_id = spend.client_id AND budget.scope = spend.scope
      AND budget.scope_id = spend.scope_id AND budget.period = spend.period)
-- sqlRaiseHeld`

// sqlRaiseRule is sqlRaiseHeld for the counter of the rule $8 of $9.
const sqlRaiseRule = `UPDATE spend
SET held = held + $6
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
  AND settled + held + $7 <= (
    SELECT amount
    FROM rule
    WHERE rule.client_id = $9 AND rule.number = $8)
RETURNING settled + held, (
    SELECT amount
    FROM rule
    WHERE rule.client_id = $9 AND rule.number = $8)
-- sqlRaiseRule`

// sqlLowerHeld also serves to lock the row, with 0.
const sqlLowerHeld = `UPDATE spend
SET held = held - $6
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
RETURNING settled + held
-- sqlLowerHeld`

// sqlLeft locks the row of a budget that refused.
const sqlLeft = `UPDATE spend
SET held = held
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
RETURNING settled + held, COALESCE((
    SELECT amount
    FROM budget
    WHERE budget.client_id = spend.client_id AND budget.scope = spend.scope
      AND budget.scope_id = spend.scope_id AND budget.period = spend.period), 0)
-- sqlLeft`

// sqlLeftOfRule is sqlLeft for the counter of the rule $6 of $7.
const sqlLeftOfRule = `UPDATE spend
SET held = held
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
RETURNING settled + held, COALESCE((
    SELECT amount
    FROM rule
    WHERE rule.client_id = $7 AND rule.number = $6), 0)
-- sqlLeftOfRule`

// sqlNewRuleSpend is sqlNewSpend for the counter of the rule $6 of $7, if there still
// is one: who deletes a rule deletes its counters too.
const sqlNewRuleSpend = `INSERT INTO spend (` + spendColumns + `)
SELECT $1, $2, $3, $4, CAST($5 AS BIGINT), 0, 0
FROM rule
WHERE client_id = $7 AND number = $6
ON CONFLICT (client_id, scope, scope_id, period, period_start) DO NOTHING
-- sqlNewRuleSpend`

const sqlNewSpend = `INSERT INTO spend (` + spendColumns + `)
VALUES ($1, $2, $3, $4, $5, 0, 0)
ON CONFLICT (client_id, scope, scope_id, period, period_start) DO NOTHING
-- sqlNewSpend`

// sqlChangeLease changes nothing when the change was made before.
const sqlChangeLease = `INSERT INTO slice (client_id, scope, scope_id, period, period_start, instance, granted, seq, amount)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $7)
ON CONFLICT (client_id, scope, scope_id, period, period_start, instance) DO UPDATE
SET granted = slice.granted + excluded.granted, seq = excluded.seq, amount = excluded.amount
WHERE slice.seq < excluded.seq
RETURNING granted
-- sqlChangeLease`

const sqlMadeChange = `SELECT amount
FROM slice
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5 AND instance = $6 AND seq = $7
-- sqlMadeChange`

const sqlEndLease = `DELETE FROM slice
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5 AND instance = $6
RETURNING granted
-- sqlEndLease`

const sqlLeasesOfInstance = `SELECT client_id, scope, scope_id, period, period_start
FROM slice
WHERE instance = $1
-- sqlLeasesOfInstance`

// errRefused ends a transaction in which a budget has said no.
var errRefused = errors.New("a budget is used up")

// Lease reserves money for an instance on several counters, on all of them or
// on none: where one answer is a refusal, nothing was granted. The answers are
// in the order of the asks.
func (s *Store) Lease(ctx context.Context, instance string, asks []modelgate.Ask) ([]modelgate.Held, error) {
	var answers []modelgate.Held
	order := inOrder(asks, func(a *modelgate.Ask) counter { return counter{a.Counter} })
	err := s.db.Update(ctx, "lease budgets", func(tx *sql.Tx) error {
		answers = make([]modelgate.Held, len(asks))
		refused := false
		for _, i := range order {
			var err error
			if answers[i], err = lease(ctx, tx, instance, &asks[i]); err != nil {
				return err
			}
			refused = refused || answers[i].Granted == 0 && !answers[i].Gone
		}
		if refused {
			return errRefused
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRefused) {
		return nil, err
	}
	return answers, nil
}

// inOrder is the order in which the counters' rows are taken.
func inOrder[T any](list []T, key func(*T) counter) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return key(&list[a]).compare(key(&list[b])) })
	return order
}

func lease(ctx context.Context, tx *sql.Tx, instance string, a *modelgate.Ask) (modelgate.Held, error) {
	k := counter{a.Counter}
	granted, left, err := guard(ctx, tx, k, a)
	if errors.Is(err, sql.ErrNoRows) {
		h, missing := refusal(ctx, tx, k, instance, a.Seq)
		if !errors.Is(missing, sql.ErrNoRows) && (missing != nil || h.Granted > 0 || h.Gone || h.Left < a.Room) {
			return h, missing
		}
		if missing != nil {
			// There is no row, as in a period without any spending yet.
			text, args := k.ofRule(sqlNewSpend, sqlNewRuleSpend)
			if _, err = tx.ExecContext(ctx, text, args...); err != nil {
				return modelgate.Held{}, err
			}
		} // else somebody has made the row or given back in between, and it is locked now
		granted, left, err = guard(ctx, tx, k, a)
	}
	if errors.Is(err, sql.ErrNoRows) {
		h, err := refusal(ctx, tx, k, instance, a.Seq)
		if k.Rule != 0 && errors.Is(err, sql.ErrNoRows) {
			return modelgate.Held{Gone: true}, nil
		}
		return h, err
	}
	if err != nil {
		return modelgate.Held{}, err
	}
	deficit, err := changeLease(ctx, tx, k, instance, granted, a.Seq)
	if errors.Is(err, sql.ErrNoRows) { // made before
		if err := correct(ctx, tx, k, granted); err != nil {
			return modelgate.Held{}, err
		}
		left += granted
		granted, err = madeChange(ctx, tx, k, instance, a.Seq)
	}
	return modelgate.Held{Granted: granted, Left: left + deficit}, err
}

// ofRule is the statement for the counter and its first arguments: the key, and
// for a rule's counter those given, the number and whose rule it is.
func (c counter) ofRule(plain, rule string, more ...any) (text string, args []any) {
	args = append(c.args(nil), more...)
	if c.Rule == 0 {
		return plain, args
	}
	owner := c.ClientID
	if c.Rule < 0 {
		owner = modelgate.FileClient
	}
	return rule, append(args, c.Rule, string(owner))
}

// guard takes the most of an ask, else the least; sql.ErrNoRows refuses.
func guard(ctx context.Context, tx *sql.Tx, k counter, a *modelgate.Ask) (granted, left modelgate.Nano, err error) {
	var used, limit modelgate.Nano
	if a.Most > a.Least {
		text, args := k.ofRule(sqlRaiseHeld, sqlRaiseRule, int64(a.Most), int64(max(a.Most, a.Plenty)))
		err = tx.QueryRowContext(ctx, text, args...).Scan(&used, &limit)
		if !errors.Is(err, sql.ErrNoRows) {
			return a.Most, limit - used, err
		}
	}
	text, args := k.ofRule(sqlRaiseHeld, sqlRaiseRule, int64(a.Least), int64(a.Room))
	err = tx.QueryRowContext(ctx, text, args...).Scan(&used, &limit)
	return a.Least, limit - used, err
}

// refusal tells how much is left of a budget that refused, unless it did so
// because it had granted the same ask before. sql.ErrNoRows: nothing was ever
// spent or held of it.
func refusal(ctx context.Context, tx *sql.Tx, k counter, instance string, seq int64) (modelgate.Held, error) {
	var h modelgate.Held
	var used, limit modelgate.Nano
	text, args := k.ofRule(sqlLeft, sqlLeftOfRule)
	err := tx.QueryRowContext(ctx, text, args...).Scan(&used, &limit)
	if err != nil {
		return h, err
	}
	h.Left = limit - used
	h.Granted, err = madeChange(ctx, tx, k, instance, seq)
	h.Gone = h.Granted == 0 && limit == 0 && k.Period != modelgate.Total
	return h, err
}

// madeChange is the amount of a lease's last change where that has the
// number, else 0.
func madeChange(ctx context.Context, tx *sql.Tx, k counter, instance string, seq int64) (modelgate.Nano, error) {
	var amount modelgate.Nano
	err := tx.QueryRowContext(ctx, sqlMadeChange, append(k.args(nil), instance, seq)...).Scan(&amount)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return amount, err
}

// changeLease adds to an instance's lease of a counter whose row of spend is
// locked and has the amount in held already. Where the lease was below 0 a
// part of the amount only made up for that, and held gives it back: deficit.
// sql.ErrNoRows says that the change was made before.
func changeLease(ctx context.Context, tx *sql.Tx, k counter, instance string, amount modelgate.Nano, seq int64) (deficit modelgate.Nano, err error) {
	var now modelgate.Nano
	if err = tx.QueryRowContext(ctx, sqlChangeLease, append(k.args(nil), instance, int64(amount), seq)...).Scan(&now); err != nil {
		return 0, err
	}
	deficit = amount - (max(now, 0) - max(now-amount, 0))
	return deficit, correct(ctx, tx, k, deficit)
}

// correct takes an amount off held.
func correct(ctx context.Context, tx *sql.Tx, k counter, amount modelgate.Nano) error {
	if amount == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, sqlLowerHeld, append(k.args(nil), int64(amount))...)
	return err
}

// settleLeases takes what was settled off the leases it was reserved from. The rows
// of spend are locked and have it taken off held; where the lease is gone, or
// has not as much, held gets the rest back.
func (s *Store) settleLeases(ctx context.Context, tx *sql.Tx, instance string, keys []counter, a amounts) error {
	leased := slices.DeleteFunc(slices.Clone(keys), func(k counter) bool { return a[k].Leased == 0 })
	left := make(map[counter]modelgate.Nano, len(leased)) // of the leases that are there
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: leaseSpend, Fed: sqlSQLiteLeaseSpend, N: len(leased),
		Args: func(dst []any, i int) []any {
			return append(leased[i].args(dst), instance, int64(a[leased[i]].Leased))
		},
		Scan: func(s sqldb.Scanner) error {
			var k counter
			var now modelgate.Nano
			if err := s.Scan(&k.ClientID, &k.Level, &k.ID, &k.Period, &k.Start, &now); err != nil {
				return err
			}
			err := k.split()
			left[k] = now
			return err
		},
	})
	if err != nil {
		return err
	}
	for _, k := range leased {
		spent, taken := a[k].Leased, modelgate.Nano(0)
		if now, ok := left[k]; ok {
			taken = max(now+spent, 0) - max(now, 0)
		}
		if err := correct(ctx, tx, k, taken-spent); err != nil {
			return err
		}
	}
	return nil
}

// GiveBack returns money that an instance holds and does not need.
func (s *Store) GiveBack(ctx context.Context, instance string, returns []modelgate.Return) error {
	order := inOrder(returns, func(r *modelgate.Return) counter { return counter{r.Counter} })
	return s.db.Update(ctx, "give back budgets", func(tx *sql.Tx) error {
		for _, i := range order {
			r := &returns[i]
			var err error
			if r.Close {
				err = endLease(ctx, tx, counter{r.Counter}, instance)
			} else {
				err = giveBack(ctx, tx, instance, r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func giveBack(ctx context.Context, tx *sql.Tx, instance string, r *modelgate.Return) error {
	k := counter{r.Counter}
	var used modelgate.Nano
	err := tx.QueryRowContext(ctx, sqlLowerHeld, append(k.args(nil), int64(r.Amount))...).Scan(&used)
	if k.Rule != 0 && errors.Is(err, sql.ErrNoRows) {
		return nil // the rule was deleted, and its counters with it
	}
	if err != nil {
		return err
	}
	_, err = changeLease(ctx, tx, k, instance, -r.Amount, r.Seq)
	if errors.Is(err, sql.ErrNoRows) { // made before
		return correct(ctx, tx, k, -r.Amount)
	}
	return err
}

// endLease frees all that an instance holds of a counter.
func endLease(ctx context.Context, tx *sql.Tx, k counter, instance string) error {
	var used, granted modelgate.Nano
	err := tx.QueryRowContext(ctx, sqlLowerHeld, append(k.args(nil), 0)...).Scan(&used)
	if err == nil {
		err = tx.QueryRowContext(ctx, sqlEndLease, append(k.args(nil), instance)...).Scan(&granted)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return correct(ctx, tx, k, max(granted, 0))
}

// EndLeases frees everything that an instance holds. It is for an instance
// that has nothing under way: at its start once its spool is booked, and at
// its end.
func (s *Store) EndLeases(ctx context.Context, instance string) error {
	return s.endLeases(ctx, "end leases", instance, func(*sql.Tx) (bool, error) { return false, nil })
}

// leasesPerTx keeps transactions that end leases short.
const leasesPerTx = 100

// endLeases frees what an instance holds. A transaction that alive says true
// in changes nothing and is the last.
func (s *Store) endLeases(ctx context.Context, op, instance string, alive func(*sql.Tx) (bool, error)) error {
	found, err := sqldb.List(ctx, s.db.Read, func(s sqldb.Scanner) (counter, error) {
		var k counter
		if err := s.Scan(&k.ClientID, &k.Level, &k.ID, &k.Period, &k.Start); err != nil {
			return k, err
		}
		return k, k.split()
	}, sqlLeasesOfInstance, instance)
	if err != nil {
		return sqldb.Wrap(op, err)
	}
	slices.SortFunc(found, counter.compare)
	for part := range slices.Chunk(found, leasesPerTx) {
		lives := false
		err := s.db.Update(ctx, op, func(tx *sql.Tx) (err error) {
			if lives, err = alive(tx); err != nil || lives {
				return err
			}
			for _, k := range part {
				if err := endLease(ctx, tx, k, instance); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || lives {
			return err
		}
	}
	return nil
}
