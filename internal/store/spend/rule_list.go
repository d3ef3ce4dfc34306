package spend

import (
	"cmp"
	"context"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// maxListedValues is how many counters of a match of each value are listed.
const maxListedValues = 1000

// sqlListRules lists the rules of one client, $1 and $3, or of all between them.
// $2 restricts them to a sub-account and its keys; $4 is 0 for budgets only.
const sqlListRules = `SELECT r.client_id, r.number, r.scope, r.scope_id, r.period, r.match_text, r.unit, r.owner, r.mode, r.alerts, r.amount,
  r.counted_since, r.revision
FROM rule r
WHERE r.client_id >= $1 AND r.client_id <= $3 AND ($4 = 1 OR r.unit = '')
  AND ($2 = '' OR r.scope = 'sub_account' AND r.scope_id = $2 OR r.scope = 'key' AND EXISTS (
    SELECT 1
    FROM api_key k
    WHERE k.id = r.scope_id AND k.client_id = r.client_id AND k.sub_account_id = $2))
ORDER BY r.client_id, r.scope, r.scope_id, r.number
-- sqlListRules`

// sqlRuleSpend reads the counters of rules of the periods that begin at $3 (day),
// $4 (week), $5 (month) and $6 (hour), and of those without an end.
const sqlRuleSpend = `SELECT client_id, scope, scope_id, period, period_start, settled, held
FROM spend
WHERE client_id >= $1 AND client_id <= $2 AND scope = 'rule'
  AND (period = 'ever' OR period = 'day' AND period_start = $3 OR period = 'week' AND period_start = $4 OR period = 'month' AND period_start = $5
    OR period = 'hour' AND period_start = $6)
-- sqlRuleSpend`

// listRules lists rules as Budgets does.
func (s *Store) listRules(ctx context.Context, first modelgate.ClientID, last string, l *BudgetList) ([]BudgetSpend, error) {
	limits := 0
	if l.Limits {
		limits = 1
	}
	rules, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (*BudgetSpend, error) {
		b := new(BudgetSpend)
		return b, row.Scan(append([]any{&b.ClientID}, ruleColumns(&b.Budget)...)...)
	}, sqlListRules, string(first), string(l.SubAccountID), last, limits)
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	type number struct {
		client modelgate.ClientID
		rule   int64
	}
	byNumber := make(map[number]*BudgetSpend, len(rules))
	byClient := make(map[modelgate.ClientID][]*modelgate.Budget)
	for _, b := range rules {
		byNumber[number{b.ClientID, b.Rule}] = b
		byClient[b.ClientID] = append(byClient[b.ClientID], &b.Budget)
	}
	for _, list := range byClient {
		modelgate.TakeOver(list)
	}
	err = sqldb.Each(ctx, s.db.Read, func(row sqldb.Scanner) error {
		var k counter
		var settled, held modelgate.Nano
		if err := row.Scan(&k.ClientID, &k.Level, &k.ID, &k.Period, &k.Start, &settled, &held); err != nil {
			return err
		}
		if err := k.split(); err != nil {
			return err
		}
		b := byNumber[number{k.ClientID, k.Rule}]
		if b == nil || b.Match.Each() && !b.Match.Takes(k.ID) {
			return nil
		}
		b.Spend, b.Held = b.Spend+settled, b.Held+held
		if b.Match.Each() {
			b.Values = append(b.Values, modelgate.ValueSpend{Value: k.ID, Spend: settled})
		}
		return nil
	}, sqlRuleSpend, string(first), last, modelgate.Day.StartMicros(l.At), modelgate.Week.StartMicros(l.At), modelgate.Month.StartMicros(l.At), modelgate.Hour.StartMicros(l.At))
	if err != nil {
		return nil, err
	}
	out := make([]BudgetSpend, 0, len(rules))
	for _, b := range rules {
		slices.SortFunc(b.Values, func(x, y modelgate.ValueSpend) int {
			return cmp.Or(cmp.Compare(y.Spend, x.Spend), cmp.Compare(x.Value, y.Value))
		})
		b.Values = b.Values[:min(len(b.Values), maxListedValues)]
		out = append(out, *b)
	}
	return out, nil
}
