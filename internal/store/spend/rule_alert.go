package spend

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// alertValues is how many values of a match alert in a period, where each value
// has a counter of its own.
const alertValues = 1000

// sqlRuleAlert notes an alert of a rule for each audience, unless it was noted or
// there are $12 of the rule in the period.
const sqlRuleAlert = `INSERT INTO alert (` + alertColumns + `, claimed_until)
SELECT a.audience, $1, $2, $3, $4, CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), 0, CAST($10 AS BIGINT), $11, $13, 0
FROM (SELECT 'operator' AS audience UNION ALL SELECT 'organization') a
WHERE (a.audience = 'operator' OR EXISTS (SELECT 1 FROM alert_target t WHERE t.client_id = $1))
  AND CAST($12 AS BIGINT) > (
    SELECT COUNT(*)
    FROM alert o
    WHERE o.audience = a.audience AND o.client_id = $1 AND o.scope = $2 AND o.scope_id = $3 AND o.period = $4
      AND o.period_start = CAST($5 AS BIGINT) AND o.rule = CAST($10 AS BIGINT))
ON CONFLICT (audience, client_id, scope, scope_id, period, period_start, rule, value, percent) DO NOTHING
-- sqlRuleAlert`

// sqlRuleCounters lists counters of a rule in a period: their scope ids lie
// between $2 and $3.
const sqlRuleCounters = `SELECT scope_id
FROM spend
WHERE client_id = $1 AND scope = 'rule' AND scope_id >= $2 AND scope_id < $3 AND period = $4 AND period_start = $5
ORDER BY settled DESC, scope_id
LIMIT $6
-- sqlRuleCounters`

// settledSelect reads counters by their keys.
func settledSelect(rows int) string {
	head := "SELECT s.client_id, s.scope, s.scope_id, s.period, s.period_start, s.settled\nFROM (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT))"
	if rows > 1 {
		head = sqldb.Tuples(head+", ", rows-1, 5, 6)
	}
	return head + ") AS k\nJOIN spend s ON s.client_id = k.column1 AND s.scope = k.column2 AND s.scope_id = k.column3" +
		"\n  AND s.period = k.column4 AND s.period_start = k.column5\n-- settledSelect"
}

// noteRuleAlerts looks at the counters of rules that were just raised. Their rows
// are locked, so that two transactions never note the same.
func (s *Store) noteRuleAlerts(ctx context.Context, tx *sql.Tx, keys []counter, rules map[modelgate.ClientID]*ruleSet) error {
	var alerting []counter
	for _, k := range keys {
		if k.Rule <= 0 {
			continue // limits of the configuration file do not alert
		}
		if b := rules[k.ClientID].byNumber[k.Rule]; b != nil && len(b.AlertPercents()) > 0 {
			alerting = append(alerting, k)
		}
	}
	settled := make(map[counter]modelgate.Nano, len(alerting))
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: settledSelect, N: len(alerting),
		Args: func(dst []any, i int) []any { return alerting[i].args(dst) },
		Scan: func(row sqldb.Scanner) error {
			var k counter
			var now modelgate.Nano
			if err := row.Scan(&k.ClientID, &k.Level, &k.ID, &k.Period, &k.Start, &now); err != nil {
				return err
			}
			err := k.split()
			settled[k] = now
			return err
		},
	})
	if err != nil {
		return err
	}
	for _, k := range alerting {
		if err := s.noteRuleAlert(ctx, tx, k, rules[k.ClientID].byNumber[k.Rule], settled[k]); err != nil {
			return err
		}
	}
	return nil
}

// noteRuleAlert notes the percentages that a counter has passed.
func (s *Store) noteRuleAlert(ctx context.Context, tx *sql.Tx, k counter, b *modelgate.Budget, settled modelgate.Nano) error {
	for _, percent := range b.AlertPercents() {
		p := modelgate.Nano(percent)
		if settled < b.Limit/100*p+(b.Limit%100*p+99)/100 {
			continue
		}
		_, err := tx.ExecContext(ctx, sqlRuleAlert, string(k.ClientID), string(b.Level), b.ID, string(b.Period), k.Start, percent,
			int64(b.Limit), int64(settled), sqldb.Micros(s.db.Now()), k.Rule, sqldb.Clean(k.ID), alertValues*len(b.AlertPercents()), b.Match.String())
		if err != nil {
			return err
		}
	}
	return nil
}

// alertRule looks at the counters of a rule in its present period: the limit may
// lie below what is spent, and no call come any more that would tell.
func (s *Store) alertRule(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget) error {
	set, err := readRules(ctx, tx, client)
	if err != nil {
		return err
	}
	first, end := ruleRange(b.Rule)
	start := b.Period.StartMicros(s.db.Now())
	keys, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (counter, error) {
		k := counter{modelgate.Counter{ClientID: client, Level: modelgate.LevelRule, Period: b.Period, Start: start}}
		if err := row.Scan(&k.ID); err != nil {
			return k, err
		}
		return k, k.split()
	}, sqlRuleCounters, string(client), first, end, string(b.Period), start, alertValues)
	if err != nil {
		return err
	}
	return s.noteRuleAlerts(ctx, tx, keys, map[modelgate.ClientID]*ruleSet{client: set})
}

// ruleRange is between what the scope ids of a rule's counters lie, the end
// excluded.
func ruleRange(number int64) (first, end string) {
	first = counter{modelgate.Counter{Rule: number}}.scopeID()
	return first, first[:len(first)-1] + "0" // what follows the slash
}
