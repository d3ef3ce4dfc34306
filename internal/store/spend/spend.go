package spend

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
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
func (s *Store) Spend(ctx context.Context, client modelgate.ClientID, level modelgate.Level, id string, p Period) (modelgate.Nano, error) {
	var n modelgate.Nano
	err := s.db.Read.QueryRowContext(ctx, sqlSpend, client, level, id, p.Period, sqldb.Micros(p.Start)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, sqldb.Wrap("read spend", err)
}

// Period is one period: its length and its first instant.
type Period struct {
	Period modelgate.Period
	Start  time.Time
}

// counter is the key of a row of spend.
type counter struct{ modelgate.Counter }

func (c counter) compare(o counter) int {
	return cmp.Or(cmp.Compare(c.ClientID, o.ClientID), cmp.Compare(c.Level, o.Level), cmp.Compare(c.Rule, o.Rule), cmp.Compare(c.ID, o.ID),
		cmp.Compare(c.Period, o.Period), cmp.Compare(c.Start, o.Start))
}

// String is scope/id/period/date, as Difference.Key spells it; of a rule's
// counter rule/number/value/period/date.
func (c counter) String() string {
	if c.Period == modelgate.Total || c.Period == modelgate.Ever {
		return fmt.Sprintf("%s/%s/%s", c.Level, c.scopeID(), c.Period)
	}
	layout := time.DateOnly
	if c.Period == modelgate.Hour {
		layout = "2006-01-02T15"
	}
	return fmt.Sprintf("%s/%s/%s/%s", c.Level, c.scopeID(), c.Period, sqldb.Instant(c.Start).Format(layout))
}

// scopeID is the column of that name: the id, of a rule number/value.
func (c counter) scopeID() string {
	if c.Rule != 0 {
		return strconv.FormatInt(c.Rule, 10) + "/" + c.ID
	}
	return c.ID
}

// split divides the scope id of a rule's counter that was read into ID.
func (c *counter) split() error {
	if c.Level != modelgate.LevelRule {
		return nil
	}
	number, value, _ := strings.Cut(c.ID, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fmt.Errorf("a counter of a rule with the id %q", c.ID)
	}
	c.Rule, c.ID = n, value
	return nil
}

// args appends the columns of the key.
func (c counter) args(dst []any) []any {
	return append(dst, sqldb.Clean(string(c.ClientID)), string(c.Level), sqldb.Clean(c.scopeID()), string(c.Period), c.Start)
}

// call is what spend counters need to know of a usage row. Most calls of a
// batch have it in common with others.
type call struct {
	client     modelgate.ClientID
	subAccount modelgate.SubAccountID
	key        modelgate.KeyID
	token      string // the browser token's id; "" without one
	day        int64  // µs, the beginning
	holds      modelgate.Holds
}

func callOf(r *modelgate.UsageRow) call {
	token := r.Attribution[modelgate.AttributionTokenID]
	return call{r.ClientID, r.SubAccountID, r.KeyID, token, dayOf(sqldb.Micros(r.At)), r.Holds}
}

// dayOf is the beginning of the day that an instant lies in, both in µs.
func dayOf(us int64) int64 { return modelgate.Day.Start(time.UnixMicro(us)).UnixMicro() }

// Amount is what is to be added to a counter.
type Amount struct {
	Settled modelgate.Nano
	// Held is what is reserved: minus the part of a cost that was, once that
	// is settled. It counts where the call has reserved something only.
	Held modelgate.Nano
	// Leased is how much of what was reserved leaves the instance's lease.
	Leased modelgate.Nano
}

// plus fails, as Poisoned knows, where the sum is more than a counter holds.
func (a Amount) plus(n Amount) (Amount, error) {
	sum := Amount{a.Settled + n.Settled, a.Held + n.Held, a.Leased + n.Leased}
	if n.Settled > 0 && sum.Settled < a.Settled {
		return sum, fmt.Errorf("%w: overflow", sqldb.ErrValue)
	}
	return sum, nil
}

// Charges collects what calls are to be charged.
type Charges struct {
	calls map[call]Amount
	// rules are those of the clients that have any, ruled their calls.
	rules map[modelgate.ClientID]*ruleSet
	file  *ruleSet // of the configuration file; nil: none
	ruled []ruled
	// wallets are what calls are debited to the wallets that pay for them.
	wallets amounts
}

// AddWallet adds an Amount, in billed dollars, to what the wallet that pays for
// a call is debited.
func (c *Charges) AddWallet(r *modelgate.UsageRow, n Amount) error {
	if c.wallets == nil {
		c.wallets = make(amounts)
	}
	return c.wallets.plus(walletCounter(r.ClientID, r.SubAccountID), n, r.Holds.Has(modelgate.LevelSubAccount, modelgate.Total))
}

func walletCounter(client modelgate.ClientID, sub modelgate.SubAccountID) modelgate.Counter {
	return modelgate.Counter{ClientID: client, Level: modelgate.LevelSubAccount, ID: string(sub), Period: modelgate.Total}
}

// Charge is what a call is to be charged.
type Charge struct {
	Amount // of money
	// Use is what the call is to be counted with by rate limits. Where it is
	// Reserved, it leaves the instance's leases on which the call has reserved.
	Use      modelgate.Amounts
	Reserved bool
}

// of is the Amount in a unit, "" for budgets.
func (c *Charge) of(u modelgate.LimitUnit) Amount {
	if u == "" || u == modelgate.UnitUSD {
		return c.Amount
	}
	n := modelgate.Nano(c.Use.Of(u))
	if !c.Reserved {
		return Amount{Settled: n}
	}
	return Amount{Settled: n, Held: -n, Leased: n}
}

// Add adds to the charges of the call of a usage row. It fails where the sum is
// more than a counter holds, as sqldb.Poisoned knows.
func (c *Charges) Add(r *modelgate.UsageRow, n Charge) error {
	of := callOf(r)
	sum, err := c.calls[of].plus(n.Amount)
	if err != nil {
		return fmt.Errorf("spend of %s, key %s: %w", of.client, of.key, err)
	}
	if c.calls == nil {
		c.calls = make(map[call]Amount)
	}
	c.calls[of] = sum
	if c.Ruled(r.ClientID) && n != (Charge{}) {
		c.ruled = append(c.ruled, ruled{r, n})
	}
	return nil
}

// Ruled reports whether a client has rules, or all have: only then does Charge.Use count.
func (c *Charges) Ruled(client modelgate.ClientID) bool {
	return c.rules[client] != nil || c.file != nil
}

// Keys are the keys that may have ancestors: those of sub-accounts. One may come
// several times.
func (c *Charges) Keys() []modelgate.KeyID {
	var keys []modelgate.KeyID
	for of := range c.calls {
		if of.subAccount != "" {
			keys = append(keys, of.key)
		}
	}
	return keys
}

// Lineages are the ancestors of keys, the issuer first.
type Lineages = map[modelgate.KeyID][]modelgate.KeyID

// amounts are what the charges add to each counter.
func (c *Charges) amounts(above Lineages) (amounts, error) {
	all := make(amounts, 2*len(c.calls)+5)
	for of, n := range c.calls {
		if err := all.add(of, n, above[of.key]); err != nil {
			return nil, err
		}
	}
	none := new(ruleSet)
	for _, r := range c.ruled {
		own, file := cmp.Or(c.rules[r.row.ClientID], none), cmp.Or(c.file, none)
		if err := all.addRuled(own, file, r, above[r.row.KeyID]); err != nil {
			return nil, err
		}
	}
	maps.Copy(all, c.wallets)
	return all, nil
}

// amounts collects what is to be added to each counter.
type amounts map[counter]Amount

// add adds what the call is to be charged to every counter that it counts
// towards; above are the ancestors of its key.
func (a amounts) add(c call, n Amount, above []modelgate.KeyID) error {
	if n == (Amount{}) {
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
		{ClientID: c.client, Level: modelgate.LevelToken, ID: c.token, Period: modelgate.Ever},
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

// plus adds an Amount to one counter, of which something is reserved or not.
func (a amounts) plus(k modelgate.Counter, n Amount, reserved bool) error {
	if !reserved {
		n.Held, n.Leased = 0, 0
	}
	sum, err := a[counter{k}].plus(n)
	if err != nil {
		return fmt.Errorf("spend of %s %s: %w", k.ClientID, counter{k}, err)
	}
	a[counter{k}] = sum
	return nil
}

// Settle charges calls of an instance to the counters that they count towards,
// takes what they had reserved off its leases, and notes alerts. above are the
// lineages of the keys of the charges. All transactions take the rows in the
// same order, so that they never wait for each other in a circle.
func (s *Store) Settle(ctx context.Context, tx *sql.Tx, instance string, c *Charges, above Lineages) error {
	a, err := c.amounts(above)
	if err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(a), counter.compare)
	err = s.db.Batch(ctx, tx, sqldb.BatchExec{Text: spendInsert, Fed: sqlSQLiteSpend, N: len(keys), Args: func(dst []any, i int) []any {
		return keys[i].values(dst, a[keys[i]])
	}})
	if err != nil {
		return err
	}
	if err := s.settleLeases(ctx, tx, instance, keys, a); err != nil {
		return err
	}
	if err := s.noteRuleAlerts(ctx, tx, keys, c.rules); err != nil {
		return err
	}
	return s.noteAlerts(ctx, tx, a)
}

// values appends the columns of the counter with an Amount.
func (c counter) values(dst []any, a Amount) []any {
	return append(c.args(dst), int64(a.Settled), int64(a.Held))
}
