package spend

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlSpendOfClient = `SELECT scope, scope_id, period, period_start, settled, held
FROM spend
WHERE client_id = $1
-- sqlSpendOfClient`

const sqlLeasesOfClient = `SELECT scope, scope_id, period, period_start, granted
FROM slice
WHERE client_id = $1
-- sqlLeasesOfClient`

// sqlCredits is the sum of the balance entries, and what it is kept as.
const sqlCredits = `SELECT
  (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM balance_entry WHERE client_id = $1),
  (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM budget WHERE client_id = $1 AND scope = 'client' AND period = 'total')
-- sqlCredits`

// sqlReserves is what the pending jobs hold.
const sqlReserves = `SELECT j.sub_account_id, j.key_id, j.created_at, j.holds, j.reserve, j.rules, j.slug, j.provider, j.model, j.attribution,
  j.provisional_cost, COALESCE(u.wallet_markup, -1)
FROM async_job j
LEFT JOIN usage_row u ON u.client_id = j.client_id AND u.created_at = j.created_at AND u.id = j.id
WHERE j.client_id = $1 AND j.status = 'pending' AND j.reserve > 0
-- sqlReserves`

// sqlTokensSince are the browser tokens from after an instant.
const sqlTokensSince = `SELECT id
FROM browser_token
WHERE client_id = $1 AND created_at >= $2
-- sqlTokensSince`

// sqlTokenCosts is what the rows say of the same tokens: none is older than its
// token.
const sqlTokenCosts = `SELECT attribution->>'token_id', CAST(SUM(cost) AS BIGINT)
FROM usage_row
WHERE client_id = $1 AND attribution->>'token_id' IS NOT NULL AND created_at >= (
    SELECT MIN(created_at)
    FROM browser_token
    WHERE client_id = $1 AND created_at >= $2)
GROUP BY attribution->>'token_id'
-- sqlTokenCosts`

// DayCost is what one key spent on one day.
type DayCost struct {
	SubAccountID modelgate.SubAccountID
	KeyID        modelgate.KeyID
	Day          int64 // µs, the beginning
	Cost         modelgate.Nano
	Calls        int64
}

// Books are what the usage rows say that one client has spent.
type Books struct {
	ClientID modelgate.ClientID
	Days     []DayCost
	Lineages Lineages // of all keys of the client
	// PrunedCost is the cost of the rows that are pruned. They are from before
	// PrunedBefore, in µs.
	PrunedCost   modelgate.Nano
	PrunedBefore int64
	// Wallets are what each wallet was debited, and what was taken off it.
	Wallets map[modelgate.SubAccountID]modelgate.Nano
}

// Check finds the counters that are not the sums of the rows (of rules those of
// the periods at the instant now), of what instances
// and pending jobs hold, and the balance that is not the sum of its entries.
func (b *Books) Check(ctx context.Context, tx *sql.Tx, now time.Time) ([]sqldb.Difference, error) {
	want, err := b.settled()
	if err != nil {
		return nil, err
	}
	if err := readLeases(ctx, tx, b.ClientID, want); err != nil {
		return nil, err
	}
	rules, err := readRules(ctx, tx, b.ClientID)
	if err != nil {
		return nil, err
	}
	file, err := readRules(ctx, tx, modelgate.FileClient)
	if err != nil {
		return nil, err
	}
	if err := readReserves(ctx, tx, b.ClientID, want, b.Lineages, rules, file); err != nil {
		return nil, err
	}
	maps.DeleteFunc(want, func(k counter, _ Amount) bool { return k.ClientID != b.ClientID }) // of all together
	have := amounts{}
	if err := readSpend(ctx, tx, b.ClientID, have); err != nil {
		return nil, err
	}
	if err := b.checkTokens(ctx, tx, want, have); err != nil {
		return nil, err
	}
	balance, err := checkBalance(ctx, tx, b.ClientID)
	if err != nil {
		return nil, err
	}
	if err := sumRules(ctx, tx, b, rules, want, have, now); err != nil {
		return nil, err
	}
	forgetPruned(want, have, b.PrunedBefore)
	return append(compareSpend(want, have), balance...), nil
}

// settled are the counters as the rows make them.
func (b *Books) settled() (amounts, error) {
	want := amounts{}
	if b.PrunedCost > 0 {
		ever := modelgate.Counter{ClientID: b.ClientID, Level: modelgate.LevelClient, ID: string(b.ClientID), Period: modelgate.Total}
		want[counter{ever}] = Amount{Settled: b.PrunedCost}
	}
	for _, d := range b.Days {
		c := call{client: b.ClientID, subAccount: d.SubAccountID, key: d.KeyID, day: d.Day}
		if err := want.add(c, Amount{Settled: d.Cost}, b.Lineages[d.KeyID]); err != nil {
			return nil, err
		}
	}
	for sub, n := range b.Wallets {
		want[counter{walletCounter(b.ClientID, sub)}] = Amount{Settled: n}
	}
	return want, nil
}

// checkTokens adds what the rows say of browser tokens, and leaves out tokens
// that are gone or of whose rows some are pruned.
func (b *Books) checkTokens(ctx context.Context, tx *sql.Tx, want, have amounts) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		k := modelgate.Counter{ClientID: b.ClientID, Level: modelgate.LevelToken, Period: modelgate.Ever}
		var cost modelgate.Nano
		err := s.Scan(&k.ID, &cost)
		sum := want[counter{k}]
		sum.Settled += cost
		want[counter{k}] = sum
		return struct{}{}, err
	}, sqlTokenCosts, string(b.ClientID), b.PrunedBefore)
	if err != nil {
		return err
	}
	there, err := sqldb.List(ctx, tx, sqldb.ScanText, sqlTokensSince, string(b.ClientID), b.PrunedBefore)
	if err != nil {
		return err
	}
	slices.Sort(there)
	gone := func(k counter, _ Amount) bool {
		_, found := slices.BinarySearch(there, k.ID)
		return k.Level == modelgate.LevelToken && !found
	}
	maps.DeleteFunc(want, gone)
	maps.DeleteFunc(have, gone)
	return nil
}

// forgetPruned leaves out the counters of days and months of which rows are
// pruned.
func forgetPruned(want, have amounts, before int64) {
	gone := func(k counter, _ Amount) bool {
		return k.Period != modelgate.Total && k.Period != modelgate.Ever && k.Start < before && k.Rule == 0
	}
	maps.DeleteFunc(want, gone)
	maps.DeleteFunc(have, gone)
}

// readLeases adds what the instances hold to the counters.
func readLeases(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into amounts) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		k := counter{modelgate.Counter{ClientID: client}}
		var granted modelgate.Nano
		if err := s.Scan(&k.Level, &k.ID, &k.Period, &k.Start, &granted); err != nil {
			return struct{}{}, err
		}
		err := k.split()
		sum := into[k]
		sum.Held += max(granted, 0)
		into[k] = sum
		return struct{}{}, err
	}, sqlLeasesOfClient, string(client))
	return err
}

// readReserves adds what the pending jobs hold to the counters.
func readReserves(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into amounts, above Lineages, rules, file *ruleSet) error {
	return sqldb.Each(ctx, tx, func(s sqldb.Scanner) error {
		row := modelgate.UsageRow{CallBegin: modelgate.CallBegin{ClientID: client}}
		var holds, reserve int64
		var provisional modelgate.Nano
		var wallet modelgate.Markup
		if err := s.Scan(&row.SubAccountID, &row.KeyID, sqldb.Moment{Into: &row.At}, &holds, &reserve, sqldb.Document{Into: &row.Rules},
			&row.Slug, &row.CallBegin.Provider, &row.CallBegin.Model, sqldb.Document{Into: &row.Attribution}, &provisional, &wallet); err != nil {
			return err
		}
		row.Holds = modelgate.Holds(holds)
		if wallet >= 0 && row.Holds.Has(modelgate.LevelSubAccount, modelgate.Total) {
			held := wallet.Debit(provisional+modelgate.Nano(reserve)) - wallet.Debit(provisional)
			if err := into.plus(walletCounter(row.ClientID, row.SubAccountID), Amount{Held: held}, true); err != nil {
				return err
			}
		}
		n, lineage := Amount{Held: modelgate.Nano(reserve)}, above[row.KeyID]
		if err := into.addRuled(rules, file, ruled{&row, Charge{Amount: n}}, lineage); err != nil {
			return err
		}
		return into.add(callOf(&row), n, lineage)
	}, sqlReserves, string(client))
}

// checkBalance compares the limit of a client's balance with its entries.
func checkBalance(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) ([]sqldb.Difference, error) {
	var want, have int64
	if err := tx.QueryRowContext(ctx, sqlCredits, string(client)).Scan(&want, &have); err != nil {
		return nil, err
	}
	if want == have {
		return nil, nil
	}
	return []sqldb.Difference{{ClientID: client, What: "balance", Key: string(client), Want: want, Have: have}}, nil
}

func readSpend(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into amounts) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		k := counter{modelgate.Counter{ClientID: client}}
		var sum Amount
		if err := s.Scan(&k.Level, &k.ID, &k.Period, &k.Start, &sum.Settled, &sum.Held); err != nil {
			return struct{}{}, err
		}
		err := k.split()
		into[k] = sum
		return struct{}{}, err
	}, sqlSpendOfClient, string(client))
	return err
}

// compareSpend reports every counter that differs; a missing one is zero.
func compareSpend(want, have amounts) []sqldb.Difference {
	var out []sqldb.Difference
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, k := range slices.SortedFunc(maps.Keys(all), counter.compare) {
		w, h := want[k], have[k]
		if w.Settled != h.Settled {
			out = append(out, sqldb.Difference{ClientID: k.ClientID, What: "spend", Key: k.String(), Want: int64(w.Settled), Have: int64(h.Settled)})
		}
		if w.Held != h.Held {
			out = append(out, sqldb.Difference{ClientID: k.ClientID, What: "held", Key: k.String(), Want: int64(w.Held), Have: int64(h.Held)})
		}
	}
	return out
}
