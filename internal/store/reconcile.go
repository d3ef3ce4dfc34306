package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
	"modelgate/internal/store/billing"
	"modelgate/internal/store/bills"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
	"modelgate/internal/store/wallet"
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
SELECT client_id FROM wallet
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

const sqlKnownClient = `SELECT EXISTS (
  SELECT 1
  FROM client
  WHERE id = $1)
-- sqlKnownClient`

const sqlKeyOwners = `SELECT id, COALESCE(sub_account_id, '')
FROM api_key
WHERE client_id = $1
-- sqlKeyOwners`

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
		if client != "" {
			return nil
		}
		found, err := bills.CheckSums(ctx, tx)
		out = append(out, found...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (db *DB) reconcileClient(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) ([]Difference, error) {
	days, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (spend.DayCost, error) {
		var d spend.DayCost
		err := s.Scan(&d.SubAccountID, &d.KeyID, &d.Day, &d.Cost, &d.Calls)
		return d, err
	}, sqlDailyCost, string(client))
	if err != nil {
		return nil, err
	}
	h, err := readHead(ctx, tx, client)
	if err != nil {
		return nil, err
	}
	above, err := access.LineagesOfClient(ctx, tx, client)
	if err != nil {
		return nil, err
	}
	wallets, out, err := wallet.CheckWallets(ctx, tx, client)
	if err != nil {
		return nil, err
	}
	books := spend.Books{ClientID: client, Days: days, Lineages: above, PrunedCost: h.prunedCost, PrunedBefore: h.prunedBefore, Wallets: wallets}
	for _, check := range [...]func() ([]Difference, error){
		func() ([]Difference, error) { return ownership(ctx, tx, client, days) },
		func() ([]Difference, error) { return books.Check(ctx, tx, db.now()) },
		func() ([]Difference, error) { return billing.CheckEvents(ctx, tx, client) },
		func() ([]Difference, error) { return stats.CheckLatencies(ctx, tx, client, h.prunedBefore) },
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

// ownership reports rows that name a client, key or sub-account that they
// cannot belong to. Keys are never deleted nor moved.
func ownership(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, days []spend.DayCost) ([]Difference, error) {
	if len(days) == 0 {
		return nil, nil
	}
	var known bool
	if err := tx.QueryRowContext(ctx, sqlKnownClient, client).Scan(&known); err != nil {
		return nil, err
	}
	owner := make(map[modelgate.KeyID]modelgate.SubAccountID)
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
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
		sub, issued := owner[d.KeyID]
		switch {
		case !known:
			wrong[[2]string{"unknown_client", string(client)}] += d.Calls
		case !issued:
			wrong[[2]string{"unknown_key", string(d.KeyID)}] += d.Calls
		case sub != d.SubAccountID:
			wrong[[2]string{"wrong_sub_account", string(d.KeyID)}] += d.Calls
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
func evidenceDays(rows []spend.DayCost) evidence.Days {
	days := make(evidence.Days)
	for _, r := range rows {
		days.Add(time.UnixMicro(r.Day), r.Calls, int64(r.Cost))
	}
	return days
}
