package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"modelgate"
)

// SpendScope is what a spend counter belongs to, spelled as in a budget
// (spec: Budget).
type SpendScope string

// The scopes.
const (
	SpendClient     SpendScope = "client"
	SpendSubAccount SpendScope = "sub_account"
	SpendKey        SpendScope = "key"
)

// Period is the length of a spend counter, spelled as in a budget.
type Period string

// The periods, both of UTC.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Start is the first instant of the period that holds t.
func (p Period) Start(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	if p == Month {
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

const spendColumns = `client_id, scope, scope_id, period, period_start, settled`

const spendColumnCount = 6

const sqlSpend = `SELECT settled
FROM spend
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
-- sqlSpend`

// Spend is the settled cost of the period that begins at start (see
// Period.Start): exactly the sum of the costs of its rows. The id of the
// scope SpendClient is the client's own.
func (db *DB) Spend(ctx context.Context, client modelgate.ClientID, scope SpendScope, id string, p SpendPeriod) (modelgate.Nano, error) {
	var n modelgate.Nano
	err := db.read.QueryRowContext(ctx, sqlSpend, client, scope, id, p.Period, micros(p.Start)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, wrap("read spend", err)
}

// SpendPeriod is one period: its length and its first instant.
type SpendPeriod struct {
	Period Period
	Start  time.Time
}

// counter is the key of a row of spend.
type counter struct {
	client modelgate.ClientID
	scope  SpendScope
	id     string
	period Period
	start  int64
}

func (c counter) compare(o counter) int {
	return cmp.Or(cmp.Compare(c.client, o.client), cmp.Compare(c.scope, o.scope), cmp.Compare(c.id, o.id),
		cmp.Compare(c.period, o.period), cmp.Compare(c.start, o.start))
}

// String is scope/id/period/date, as Difference.Key spells it.
func (c counter) String() string {
	return fmt.Sprintf("%s/%s/%s/%s", c.scope, c.id, c.period, instant(c.start).Format(time.DateOnly))
}

// call is what a spend counter needs to know of a usage row.
type call struct {
	client     modelgate.ClientID
	subAccount modelgate.SubAccountID
	key        modelgate.KeyID
	at         time.Time
}

// amounts collects what is to be added to each counter.
type amounts map[counter]modelgate.Nano

// add books a cost with every counter that the call counts towards.
func (a amounts) add(c call, cost modelgate.Nano) error {
	if cost == 0 {
		return nil
	}
	for _, p := range [...]Period{Day, Month} {
		start := micros(p.Start(c.at))
		for _, k := range [...]counter{
			{c.client, SpendClient, string(c.client), p, start},
			{c.client, SpendSubAccount, string(c.subAccount), p, start},
			{c.client, SpendKey, string(c.key), p, start},
		} {
			if k.id == "" {
				continue
			}
			sum := a[k] + cost
			if sum < a[k] {
				return fmt.Errorf("spend of %s %s: %w: overflow", k.client, k, errValue)
			}
			a[k] = sum
		}
	}
	return nil
}

// settle adds the amounts to the counters. All transactions take the rows in
// the same order, so that they never wait for each other in a circle.
func (db *DB) settle(ctx context.Context, tx *sql.Tx, a amounts) error {
	keys := slices.SortedFunc(maps.Keys(a), counter.compare)
	if db.engine.rowsPerInsert == 1 {
		return settleSingly(ctx, tx, keys, a)
	}
	for len(keys) > 0 {
		part := keys[:statementRows(len(keys), db.engine.rowsPerInsert)]
		keys = keys[len(part):]
		args := make([]any, 0, len(part)*spendColumnCount)
		for _, k := range part {
			args = k.values(args, a[k])
		}
		if _, err := tx.ExecContext(ctx, spendInsert(len(part)), args...); err != nil {
			return err
		}
	}
	return nil
}

func settleSingly(ctx context.Context, tx *sql.Tx, keys []counter, a amounts) error {
	stmt, err := tx.PrepareContext(ctx, spendInsert(1))
	if err != nil {
		return err
	}
	defer stmt.Close()
	args := make([]any, 0, spendColumnCount)
	for _, k := range keys {
		args = k.values(args[:0], a[k])
		if _, err := stmt.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// values appends the columns of the counter with an amount.
func (c counter) values(dst []any, amount modelgate.Nano) []any {
	return append(dst, clean(string(c.client)), string(c.scope), clean(c.id), string(c.period), c.start, int64(amount))
}
