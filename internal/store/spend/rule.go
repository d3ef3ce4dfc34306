package spend

import (
	"context"
	"database/sql"
	"errors"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlRaiseHead locks the head of a client's rules for a change.
const sqlRaiseHead = `INSERT INTO rule_head (client_id, version)
VALUES ($1, 1)
ON CONFLICT (client_id) DO UPDATE
SET version = rule_head.version + 1
RETURNING version
-- sqlRaiseHead`

const sqlInsertRule = `INSERT INTO rule (client_id, scope, scope_id, period, match_text, owner, number, unit, mode, alerts, amount, counted_since, revision)
VALUES ($1, $2, $3, $4, $5, $6, $13, $7, $8, $9, $10, $12, $11)
-- sqlInsertRule`

const sqlUpdateRule = `UPDATE rule
SET mode = $8, alerts = $9, amount = $10, revision = $11
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND match_text = $5 AND owner = $6 AND unit = $7
RETURNING number
-- sqlUpdateRule`

const sqlDeleteRule = `DELETE FROM rule
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND match_text = $5 AND owner = $6 AND unit = $7
RETURNING number
-- sqlDeleteRule`

const sqlRuleOwners = `SELECT owner
FROM rule
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND match_text = $5 AND unit = $6
-- sqlRuleOwners`

// sqlDropCounters and sqlDropLeases take the counters of a rule away: their
// scope ids lie between $2 and $3.
const sqlDropCounters = `DELETE FROM spend
WHERE client_id = $1 AND scope = 'rule' AND scope_id >= $2 AND scope_id < $3
-- sqlDropCounters`

const sqlDropLeases = `DELETE FROM slice
WHERE client_id = $1 AND scope = 'rule' AND scope_id >= $2 AND scope_id < $3
-- sqlDropLeases`

const sqlSetSettled = `INSERT INTO spend (` + spendColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, 0)
ON CONFLICT (client_id, scope, scope_id, period, period_start) DO UPDATE
SET settled = excluded.settled
-- sqlSetSettled`

// errTooManyRules answers one rule more.
var errTooManyRules = &modelgate.Error{Kind: modelgate.Conflict, Message: "too many budgets and limits; remove some"}

// ruleName is the identity of a rule: the leading columns of its statements.
func ruleName(client modelgate.ClientID, b *modelgate.Budget) []any {
	return []any{string(client), string(b.Level), b.ID, string(b.Period), b.Match.String(), ownerOf(b), string(b.Unit)}
}

// putRule sets a rule under the client's version of its rules. A new one counts
// what there is to count first.
func (s *Store) putRule(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget, version int64) error {
	alerts := ""
	if b.Alerts != nil {
		var err error
		if alerts, err = sqldb.JSON(b.Alerts); err != nil {
			return err
		}
	}
	mode := modelgate.Hard
	if b.Mode == modelgate.Soft {
		mode = modelgate.Soft
	}
	args := append(ruleName(client, b), string(mode), alerts, int64(b.Limit), version)
	err := tx.QueryRowContext(ctx, sqlUpdateRule, args...).Scan(&b.Rule)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	b.Rule = version
	since := int64(0)
	if b.Match.Each() {
		since = sqldb.Micros(s.db.Now())
		b.CountedSince = sqldb.Instant(since)
	}
	if _, err := tx.ExecContext(ctx, sqlInsertRule, append(args, since, version)...); err != nil {
		return err
	}
	if err := s.CheckRules(ctx, tx, client, b.Level, b.ID, modelgate.Owner(ownerOf(b))); err != nil {
		return err
	}
	return s.count(ctx, tx, client, b, "", false)
}

// deleteRule removes a rule with its counters; false where there is none. What
// an exact match had taken over from one of each value is that one's again.
func (s *Store) deleteRule(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget) (bool, error) {
	var number int64
	err := tx.QueryRowContext(ctx, sqlDeleteRule, ruleName(client, b)...).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	first, end := ruleRange(number)
	for _, text := range [...]string{sqlDropCounters, sqlDropLeases} {
		if _, err := tx.ExecContext(ctx, text, string(client), first, end); err != nil {
			return false, err
		}
	}
	if b.Match == nil || b.Match.Each() {
		return true, nil
	}
	key, value := b.Match.Tag()
	if key == "" {
		return true, nil
	}
	set, err := readRules(ctx, tx, client)
	if err != nil {
		return false, err
	}
	for _, each := range set.of[target{b.Level, b.ID}] {
		if k, _ := each.Match.Tag(); each.Match.Each() && k == key && each.Period == b.Period && each.Unit == b.Unit && each.Owner == modelgate.Owner(ownerOf(b)) {
			return true, s.count(ctx, tx, client, each, value, true)
		}
	}
	return true, nil
}
