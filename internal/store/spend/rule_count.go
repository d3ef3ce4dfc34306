package spend

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// countPatience bounds how long the rows of a new rule are counted: bookings of
// its client wait meanwhile.
const countPatience = 5 * time.Second

// errCountTooLong answers a rule whose rows are too many to count meanwhile.
var errCountTooLong = &modelgate.Error{Kind: modelgate.Unavailable,
	Message: "the calls so far cannot be counted in time; retry later, or choose a shorter window"}

// sqlSumCounters sums the counters of a target from one period on.
const sqlSumCounters = `SELECT CAST(COALESCE(SUM(settled), 0) AS BIGINT)
FROM spend
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start >= $5
-- sqlSumCounters`

// ruledRows are the rows of a client from $2 on, of a sub-account $3 where that is
// not empty and of a key $4 with those issued below it likewise.
const ruledRows = `
FROM usage_row
WHERE client_id = $1 AND created_at >= $2 AND ($3 = '' OR sub_account_id = $3)
  AND ($4 = '' OR key_id = $4 OR key_id IN (SELECT key_id FROM key_lineage WHERE ancestor_id = $4))`

const sqlCostByModel = `SELECT slug, provider, model, CAST(SUM(cost) AS BIGINT)` + ruledRows + `
GROUP BY slug, provider, model
-- sqlCostByModel`

const sqlCostByTag = `SELECT COALESCE(attribution ->> CAST($5 AS TEXT), ''), CAST(SUM(cost) AS BIGINT)` + ruledRows + `
GROUP BY COALESCE(attribution ->> CAST($5 AS TEXT), '')
-- sqlCostByTag`

const sqlCostOfAll = `SELECT CAST(COALESCE(SUM(cost), 0) AS BIGINT)` + ruledRows + `
-- sqlCostOfAll`

// sqlUseOfRows is for limits in tokens: what a row used of them is in its
// quantities, which no engine sums.
const sqlUseOfRows = `SELECT slug, provider, model, COALESCE(attribution ->> CAST($5 AS TEXT), ''), quantities` + ruledRows + `
-- sqlUseOfRows`

// inUnit is one of the queries above for a rule in a unit.
func inUnit(text string, u modelgate.LimitUnit) string {
	if u == modelgate.UnitRequests {
		return strings.Replace(text, "SUM(cost)", "COUNT(*)", 1)
	}
	return text
}

// count stores what the rows from before a rule come to in its present period.
// With one it does so for one value only. The rule's head is locked: all rows
// that were booked before are visible, and none is booked meanwhile.
func (s *Store) count(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget, value string, one bool) error {
	now := s.db.Now()
	var sums map[string]modelgate.Nano
	var err error
	if b.Match == nil && b.Unit == "" {
		sums, err = sumCounters(ctx, tx, client, b, now)
	} else {
		within, cancel := context.WithTimeout(ctx, countPatience)
		defer cancel()
		sums, err = sumRows(within, tx, client, b, now)
		if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
			return errCountTooLong
		}
	}
	if err != nil {
		return fmt.Errorf("count the calls of a rule: %w", err)
	}
	if one {
		sums = map[string]modelgate.Nano{value: sums[value]}
	}
	for _, v := range slices.Sorted(maps.Keys(sums)) {
		k := counter{b.ValueCounter(client, now, v)}
		if _, err := tx.ExecContext(ctx, sqlSetSettled, append(k.args(nil), int64(sums[v]))...); err != nil {
			return err
		}
	}
	return nil
}

// sumCounters is what a target has spent in the present period of a rule that
// counts all calls: the sum of the shorter counters of the target.
func sumCounters(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget, now time.Time) (map[string]modelgate.Nano, error) {
	p := modelgate.Day
	if b.Period == modelgate.Month {
		p = modelgate.Month
	} else if b.Period == modelgate.Ever {
		if p = modelgate.Month; b.Level == modelgate.LevelClient {
			p = modelgate.Total
		}
	}
	var sum modelgate.Nano
	err := tx.QueryRowContext(ctx, sqlSumCounters, string(client), string(b.Level), b.ID, string(p), b.Period.StartMicros(now)).Scan(&sum)
	return map[string]modelgate.Nano{"": sum}, err
}

// sumRows is what the rows that a rule counts come to in its present period, by
// value. Without a value of its own a counter has the value "".
func sumRows(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, b *modelgate.Budget, now time.Time) (map[string]modelgate.Nano, error) {
	since := b.Period.StartMicros(now)
	if !b.CountedSince.IsZero() {
		since = max(since, sqldb.Micros(b.CountedSince))
	}
	args := []any{string(client), since, "", ""}
	switch b.Level {
	case modelgate.LevelSubAccount:
		args[2] = b.ID
	case modelgate.LevelKey:
		args[3] = b.ID
	}
	sums := make(map[string]modelgate.Nano)
	if !b.Match.Each() {
		sums[""] = 0
	}
	add := func(t *modelgate.Traits, cost modelgate.Nano) {
		if value, counts := b.Match.Counts(t); counts {
			sums[value] += cost
		}
	}
	key, _ := b.Match.Tag()
	switch b.Unit {
	case modelgate.UnitInputTokens, modelgate.UnitOutputTokens, modelgate.UnitTokens:
		return sums, sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
			var t modelgate.Traits
			var value string
			var used modelgate.Usage
			if err := row.Scan(&t.Slug, &t.Provider, &t.Model, &value, sqldb.Document{Into: &used}); err != nil {
				return err
			}
			t.KeyID, t.SubAccountID, t.Attribution = modelgate.KeyID(value), modelgate.SubAccountID(value), map[string]string{key: value}
			amounts := used.Amounts(0)
			add(&t, modelgate.Nano(amounts.Of(b.Unit)))
			return nil
		}, sqlUseOfRows, append(args, cmp.Or(key, "-"))...) // SQLite reads no empty name
	}
	if b.Match == nil {
		var cost modelgate.Nano
		err := tx.QueryRowContext(ctx, inUnit(sqlCostOfAll, b.Unit), args...).Scan(&cost)
		sums[""] = cost
		return sums, err
	}
	if key == "" {
		return sums, sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
			var t modelgate.Traits
			var cost modelgate.Nano
			err := row.Scan(&t.Slug, &t.Provider, &t.Model, &cost)
			add(&t, cost)
			return err
		}, inUnit(sqlCostByModel, b.Unit), args...)
	}
	return sums, sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
		var value string
		var cost modelgate.Nano
		err := row.Scan(&value, &cost)
		add(&modelgate.Traits{
			KeyID: modelgate.KeyID(value), SubAccountID: modelgate.SubAccountID(value), Attribution: map[string]string{key: value},
		}, cost)
		return err
	}, inUnit(sqlCostByTag, b.Unit), append(args, key)...)
}

// sumRules sets what the counters of rules should have settled: the sums of
// their rows in the present period, as far as none was pruned. Of other periods,
// and of values that an exact match has taken over, nothing is expected.
func sumRules(ctx context.Context, tx *sql.Tx, books *Books, rules *ruleSet, want, have amounts, now time.Time) error {
	settle := func(k counter, n modelgate.Nano) {
		sum := want[k]
		sum.Settled = n
		want[k] = sum
	}
	sums := make(map[int64]map[string]modelgate.Nano)
	for number, b := range rules.byNumber {
		if since := b.Period.StartMicros(now); books.PrunedBefore > max(since, sqldb.Micros(b.CountedSince)) {
			continue
		}
		found, err := sumRows(ctx, tx, books.ClientID, b, now)
		if err != nil {
			return err
		}
		sums[number] = found
		for value, n := range found {
			settle(counter{b.ValueCounter(books.ClientID, now, value)}, n)
		}
	}
	for k, n := range have {
		if k.Rule == 0 {
			continue
		}
		b := rules.byNumber[k.Rule]
		if b == nil || sums[k.Rule] == nil || k.Start != b.Period.StartMicros(now) || b.Match.Each() && !b.Match.Takes(k.ID) {
			settle(k, n.Settled)
		}
	}
	return nil
}
