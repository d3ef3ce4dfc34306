package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/billing"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
)

const sqlBookedClients = `SELECT client_id FROM usage_row
UNION
SELECT client_id FROM spend
UNION
SELECT client_id FROM budget
UNION
SELECT client_id FROM processor_event
UNION
SELECT client_id FROM checkout_order
UNION
SELECT client_id FROM evidence_head
ORDER BY client_id
-- sqlBookedClients`

// sqlDailyCost needs no calendar: a UTC day has 86,400,000,000 µs, and months
// are put together from days.
const sqlDailyCost = `SELECT sub_account_id, key_id, created_at - created_at % 86400000000 AS day,
  CAST(SUM(cost) AS BIGINT), COUNT(*)
FROM usage_row
WHERE client_id = $1
GROUP BY sub_account_id, key_id, created_at - created_at % 86400000000
-- sqlDailyCost`

const sqlSpendOfClient = `SELECT scope, scope_id, period, period_start, settled, held
FROM spend
WHERE client_id = $1
-- sqlSpendOfClient`

const sqlSlicesOfClient = `SELECT scope, scope_id, period, period_start, granted
FROM slice
WHERE client_id = $1
-- sqlSlicesOfClient`

// sqlCredits is the sum of the balance entries, and what it is kept as.
const sqlCredits = `SELECT
  (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM balance_entry WHERE client_id = $1),
  (SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM budget WHERE client_id = $1 AND period = 'total')
-- sqlCredits`

const sqlKeyOwners = `SELECT id, COALESCE(sub_account_id, '')
FROM api_key
WHERE client_id = $1
-- sqlKeyOwners`

// sqlReserves is what the pending jobs hold.
const sqlReserves = `SELECT sub_account_id, key_id, created_at, holds, reserve
FROM async_job
WHERE client_id = $1 AND status = 'pending' AND reserve > 0
-- sqlReserves`

// sqlWrongJobs compares jobs with rows in both directions.
const sqlWrongJobs = `SELECT j.id, COALESCE(u.cost, 0),
  CASE WHEN j.status = 'pending' THEN j.provisional_cost ELSE j.final_cost END
FROM async_job j
LEFT JOIN usage_row u ON u.client_id = j.client_id AND u.created_at = j.created_at AND u.id = j.id
WHERE j.client_id = $1
  AND (u.id IS NULL
    OR j.status = 'pending' AND (u.parse_status <> 'provisional' OR u.cost <> j.provisional_cost)
    OR j.status <> 'pending' AND (u.cost <> j.final_cost OR u.parse_status NOT IN (
      'partial', CASE j.status WHEN 'succeeded' THEN 'ok' ELSE j.status END)))
UNION ALL
SELECT u.id, u.cost, 0
FROM usage_row u
LEFT JOIN async_job j ON j.client_id = u.client_id AND j.created_at = u.created_at AND j.id = u.id
WHERE u.client_id = $1 AND u.parse_status = 'provisional' AND j.id IS NULL
ORDER BY 1
-- sqlWrongJobs`

// Reconcile recomputes from the usage rows what is kept beside them, for one
// client or, for "", all of them, and returns every difference, ordered by
// client, What and Key. It sees one instant of the database, reads one client
// at a time and takes the sums from the database, so that the memory it needs
// grows with keys and days and not with calls.
func (db *DB) Reconcile(ctx context.Context, client modelgate.ClientID) ([]Difference, error) {
	out := []Difference{}
	err := db.study(ctx, "reconcile", func(tx *sql.Tx) error {
		clients, err := []string{string(client)}, error(nil)
		if client == "" {
			clients, err = sqldb.List(ctx, tx, sqldb.ScanText, sqlBookedClients)
		}
		if err != nil {
			return err
		}
		for i, c := range clients {
			db.progress("reconcile", int64(i), int64(len(clients)))
			found, err := db.reconcileClient(ctx, tx, modelgate.ClientID(c))
			if err != nil {
				return err
			}
			out = append(out, found...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// dailyCost is what one key spent on one day.
type dailyCost struct {
	call  call
	cost  modelgate.Nano
	calls int64
}

func (db *DB) reconcileClient(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) ([]Difference, error) {
	days, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (dailyCost, error) {
		d := dailyCost{call: call{client: client}}
		err := s.Scan(&d.call.subAccount, &d.call.key, &d.call.day, &d.cost, &d.calls)
		return d, err
	}, sqlDailyCost, string(client))
	if err != nil {
		return nil, err
	}
	h, err := readHead(ctx, tx, client)
	if err != nil {
		return nil, err
	}
	want := amounts{}
	if h.prunedCost > 0 {
		ever := modelgate.Counter{ClientID: client, Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Total}
		want[counter{ever}] = amount{settled: h.prunedCost}
	}
	above := lineages{}
	if _, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) { return struct{}{}, above.add(s) }, sqlLineagesOfClient, client); err != nil {
		return nil, err
	}
	for _, d := range days {
		if err := want.add(d.call, amount{settled: d.cost}, above[d.call.key]); err != nil {
			return nil, err
		}
	}
	if err := readSlices(ctx, tx, client, want); err != nil {
		return nil, err
	}
	if err := readReserves(ctx, tx, client, want, above); err != nil {
		return nil, err
	}
	have := amounts{}
	if err := readSpend(ctx, tx, client, have); err != nil {
		return nil, err
	}
	var out []Difference
	for _, check := range [...]func() ([]Difference, error){
		func() ([]Difference, error) { return ownership(ctx, tx, client, days) },
		func() ([]Difference, error) { return checkBalance(ctx, tx, client) },
		func() ([]Difference, error) { return billing.CheckEvents(ctx, tx, client) },
		func() ([]Difference, error) { return checkLatencies(ctx, tx, client, h.prunedBefore) },
		func() ([]Difference, error) { return rollupDifferences(ctx, tx, client, h) },
		func() ([]Difference, error) { return checkJobs(ctx, tx, client) },
		func() ([]Difference, error) { return db.CheckEvidence(ctx, tx, client, evidenceDays(days)) },
	} {
		found, err := check()
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	forgetPruned(want, have, h.prunedBefore)
	out = append(compareSpend(want, have), out...)
	slices.SortStableFunc(out, func(a, b Difference) int { return cmp.Compare(a.What, b.What) })
	return out, nil
}

func rollupDifferences(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, h usageHead) ([]Difference, error) {
	found, err := stats.Check(ctx, tx, client, h.prunedBefore)
	var out []Difference
	for _, d := range found {
		out = append(out, Difference{ClientID: client, What: "rollup", Key: d.Key, Want: d.Want, Have: d.Have})
	}
	return out, err
}

// checkJobs finds jobs that are in another state than their rows.
func checkJobs(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) ([]Difference, error) {
	return sqldb.List(ctx, tx, func(s sqldb.Scanner) (Difference, error) {
		d := Difference{ClientID: client, What: "job"}
		return d, s.Scan(&d.Key, &d.Want, &d.Have)
	}, sqlWrongJobs, string(client))
}

// forgetPruned leaves out the counters of days and months of which rows are
// pruned.
func forgetPruned(want, have amounts, before int64) {
	gone := func(k counter, _ amount) bool { return k.Period != modelgate.Total && k.Start < before }
	maps.DeleteFunc(want, gone)
	maps.DeleteFunc(have, gone)
}

// readSlices adds what the instances hold to the counters.
func readSlices(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into amounts) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		k := counter{modelgate.Counter{ClientID: client}}
		var granted modelgate.Nano
		err := s.Scan(&k.Level, &k.ID, &k.Period, &k.Start, &granted)
		sum := into[k]
		sum.held += max(granted, 0)
		into[k] = sum
		return struct{}{}, err
	}, sqlSlicesOfClient, string(client))
	return err
}

// readReserves adds what the pending jobs hold to the counters.
func readReserves(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into amounts, above lineages) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		c := call{client: client}
		var at, holds, reserve int64
		if err := s.Scan(&c.subAccount, &c.key, &at, &holds, &reserve); err != nil {
			return struct{}{}, err
		}
		c.day, c.holds = stats.Day.Floor(at), modelgate.Holds(holds)
		return struct{}{}, into.add(c, amount{held: modelgate.Nano(reserve)}, above[c.key])
	}, sqlReserves, string(client))
	return err
}

// checkBalance compares the limit of a client's balance with its entries.
func checkBalance(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) ([]Difference, error) {
	var want, have int64
	if err := tx.QueryRowContext(ctx, sqlCredits, string(client)).Scan(&want, &have); err != nil {
		return nil, err
	}
	if want == have {
		return nil, nil
	}
	return []Difference{{ClientID: client, What: "balance", Key: string(client), Want: want, Have: have}}, nil
}

func readSpend(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into amounts) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		k := modelgate.Counter{ClientID: client}
		var sum amount
		err := s.Scan(&k.Level, &k.ID, &k.Period, &k.Start, &sum.settled, &sum.held)
		into[counter{k}] = sum
		return struct{}{}, err
	}, sqlSpendOfClient, string(client))
	return err
}

// compareSpend reports every counter that differs; a missing one is zero.
func compareSpend(want, have amounts) []Difference {
	var out []Difference
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, k := range slices.SortedFunc(maps.Keys(all), counter.compare) {
		w, h := want[k], have[k]
		if w.settled != h.settled {
			out = append(out, Difference{ClientID: k.ClientID, What: "spend", Key: k.String(), Want: int64(w.settled), Have: int64(h.settled)})
		}
		if w.held != h.held {
			out = append(out, Difference{ClientID: k.ClientID, What: "held", Key: k.String(), Want: int64(w.held), Have: int64(h.held)})
		}
	}
	return out
}

// ownership reports rows that name a client, key or sub-account that they
// cannot belong to. Keys are never deleted nor moved.
func ownership(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, days []dailyCost) ([]Difference, error) {
	if len(days) == 0 {
		return nil, nil
	}
	clients, err := sqldb.List(ctx, tx, scanClient, sqlClient, client)
	if err != nil {
		return nil, err
	}
	owner := make(map[modelgate.KeyID]modelgate.SubAccountID)
	_, err = sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		var k modelgate.KeyID
		var sub modelgate.SubAccountID
		err := s.Scan(&k, &sub)
		owner[k] = sub
		return struct{}{}, err
	}, sqlKeyOwners, client)
	if err != nil {
		return nil, err
	}
	wrong := make(map[[2]string]int64) // What and Key → rows
	for _, d := range days {
		sub, known := owner[d.call.key]
		switch {
		case len(clients) == 0:
			wrong[[2]string{"unknown_client", string(client)}] += d.calls
		case !known:
			wrong[[2]string{"unknown_key", string(d.call.key)}] += d.calls
		case sub != d.call.subAccount:
			wrong[[2]string{"wrong_sub_account", string(d.call.key)}] += d.calls
		}
	}
	var out []Difference
	for what, rows := range wrong {
		out = append(out, Difference{ClientID: client, What: what[0], Key: what[1], Have: rows})
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

// evidenceDays are the calls and costs of days, as the records should say them.
func evidenceDays(rows []dailyCost) evidence.Days {
	days := make(evidence.Days)
	for _, r := range rows {
		days.Add(time.UnixMicro(r.call.day), r.calls, int64(r.cost))
	}
	return days
}
