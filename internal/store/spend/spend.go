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
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
)

const spendColumns = `client_id, scope, scope_id, period, period_start, settled, held`

const spendColumnCount = 7

const sqlSpend = `SELECT settled
FROM spend
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
-- sqlSpend`

// Spend is the settled cost of the period that begins at start (see
// Period.Start): exactly the sum of the costs of its rows. The id of the
// level client is the client's own.
func (db *DB) Spend(ctx context.Context, client modelgate.ClientID, level modelgate.Level, id string, p SpendPeriod) (modelgate.Nano, error) {
	var n modelgate.Nano
	err := db.read.QueryRowContext(ctx, sqlSpend, client, level, id, p.Period, sqldb.Micros(p.Start)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, sqldb.Wrap("read spend", err)
}

// SpendPeriod is one period: its length and its first instant.
type SpendPeriod struct {
	Period modelgate.Period
	Start  time.Time
}

// counter is the key of a row of spend.
type counter struct{ modelgate.Counter }

func (c counter) compare(o counter) int {
	return cmp.Or(cmp.Compare(c.ClientID, o.ClientID), cmp.Compare(c.Level, o.Level), cmp.Compare(c.ID, o.ID),
		cmp.Compare(c.Period, o.Period), cmp.Compare(c.Start, o.Start))
}

// String is scope/id/period/date, as Difference.Key spells it.
func (c counter) String() string {
	if c.Period == modelgate.Total {
		return fmt.Sprintf("%s/%s/%s", c.Level, c.ID, c.Period)
	}
	return fmt.Sprintf("%s/%s/%s/%s", c.Level, c.ID, c.Period, sqldb.Instant(c.Start).Format(time.DateOnly))
}

// args appends the columns of the key.
func (c counter) args(dst []any) []any {
	return append(dst, sqldb.Clean(string(c.ClientID)), string(c.Level), sqldb.Clean(c.ID), string(c.Period), c.Start)
}

// call is what spend counters need to know of a usage row. Most calls of a
// batch have it in common with others.
type call struct {
	client     modelgate.ClientID
	subAccount modelgate.SubAccountID
	key        modelgate.KeyID
	day        int64 // µs, the beginning
	holds      modelgate.Holds
}

func callOf(r *modelgate.UsageRow) call {
	return call{r.ClientID, r.SubAccountID, r.KeyID, stats.Day.Floor(sqldb.Micros(r.At)), r.Holds}
}

// amount is what is to be added to a counter.
type amount struct {
	settled modelgate.Nano
	// held is what is reserved: minus the part of a cost that was, once that
	// is settled. It counts where the call has reserved something only.
	held modelgate.Nano
	// sliced is how much of what was reserved leaves the instance's slice.
	sliced modelgate.Nano
}

// plus fails, as Poisoned knows, where the sum is more than a counter holds.
func (a amount) plus(n amount) (amount, error) {
	sum := amount{a.settled + n.settled, a.held + n.held, a.sliced + n.sliced}
	if n.settled > 0 && sum.settled < a.settled {
		return sum, fmt.Errorf("%w: overflow", sqldb.ErrValue)
	}
	return sum, nil
}

// charges collects what calls are to be charged.
type charges map[call]amount

func (c charges) add(r *modelgate.UsageRow, n amount) error {
	of := callOf(r)
	sum, err := c[of].plus(n)
	if err != nil {
		return fmt.Errorf("spend of %s, key %s: %w", of.client, of.key, err)
	}
	c[of] = sum
	return nil
}

// amounts are what the charges add to each counter.
func (c charges) amounts(above lineages) (amounts, error) {
	all := make(amounts, 2*len(c)+5)
	for of, n := range c {
		if err := all.add(of, n, above[of.key]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// amounts collects what is to be added to each counter.
type amounts map[counter]amount

// add adds what the call is to be charged to every counter that it counts
// towards; above are the ancestors of its key.
func (a amounts) add(c call, n amount, above []modelgate.KeyID) error {
	if n == (amount{}) {
		return nil
	}
	for i, ancestor := range above {
		for _, p := range [...]modelgate.Period{modelgate.Day, modelgate.Month} {
			k := modelgate.Counter{ClientID: c.client, Level: modelgate.LevelKey, ID: string(ancestor), Period: p,
				Start: p.Start(time.UnixMicro(c.day)).UnixMicro()}
			if err := a.plus(k, n, c.holds.HasAbove(i+1, p)); err != nil {
				return err
			}
		}
	}
	day, month := c.day, modelgate.Month.Start(time.UnixMicro(c.day)).UnixMicro()
	for _, k := range [...]modelgate.Counter{
		{ClientID: c.client, Level: modelgate.LevelClient, ID: string(c.client), Period: modelgate.Day, Start: day},
		{ClientID: c.client, Level: modelgate.LevelClient, ID: string(c.client), Period: modelgate.Month, Start: month},
		{ClientID: c.client, Level: modelgate.LevelClient, ID: string(c.client), Period: modelgate.Total},
		{ClientID: c.client, Level: modelgate.LevelSubAccount, ID: string(c.subAccount), Period: modelgate.Day, Start: day},
		{ClientID: c.client, Level: modelgate.LevelSubAccount, ID: string(c.subAccount), Period: modelgate.Month, Start: month},
		{ClientID: c.client, Level: modelgate.LevelKey, ID: string(c.key), Period: modelgate.Day, Start: day},
		{ClientID: c.client, Level: modelgate.LevelKey, ID: string(c.key), Period: modelgate.Month, Start: month},
	} {
		if k.ID == "" {
			continue
		}
		if err := a.plus(k, n, c.holds.Has(k.Level, k.Period)); err != nil {
			return err
		}
	}
	return nil
}

// plus adds an amount to one counter, of which something is reserved or not.
func (a amounts) plus(k modelgate.Counter, n amount, reserved bool) error {
	if !reserved {
		n.held, n.sliced = 0, 0
	}
	sum, err := a[counter{k}].plus(n)
	if err != nil {
		return fmt.Errorf("spend of %s %s: %w", k.ClientID, counter{k}, err)
	}
	a[counter{k}] = sum
	return nil
}

// settle adds the amounts to the counters. All transactions take the rows in
// the same order, so that they never wait for each other in a circle.
func (db *DB) settle(ctx context.Context, tx *sql.Tx, instance string, a amounts) error {
	keys := slices.SortedFunc(maps.Keys(a), counter.compare)
	err := db.runMany(ctx, tx, sqldb.BatchExec{Text: spendInsert, Fed: sqlSQLiteSpend, N: len(keys), Args: func(dst []any, i int) []any {
		return keys[i].values(dst, a[keys[i]])
	}})
	if err != nil {
		return err
	}
	return db.unhold(ctx, tx, instance, keys, a)
}

// values appends the columns of the counter with an amount.
func (c counter) values(dst []any, a amount) []any {
	return append(c.args(dst), int64(a.settled), int64(a.held))
}
