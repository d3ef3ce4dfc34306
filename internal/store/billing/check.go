package billing

import (
	"context"
	"database/sql"
	"maps"
	"math/big"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlExportSums sums events and their rows, by what they are billed at.
const sqlExportSums = `SELECT e.sub_account_id, e.markup, CAST(COALESCE(SUM(r.cost), 0) AS BIGINT), CAST(SUM(e.value) AS BIGINT),
  COUNT(*) - COUNT(r.id)
FROM processor_event e
LEFT JOIN usage_row r ON r.client_id = e.client_id AND r.created_at = e.created_at AND r.id = e.usage_id
WHERE e.client_id = $1
GROUP BY e.sub_account_id, e.markup
-- sqlExportSums`

const sqlCarries = `SELECT sub_account_id, rest
FROM processor_carry
WHERE client_id = $1
-- sqlCarries`

const sqlPrunedRests = `SELECT sub_account_id, rest
FROM pruned_export
WHERE client_id = $1
-- sqlPrunedRests`

// sqlUnqueued counts rows that were made while their sub-account was mapped
// and the export enabled, and that have no event. $2 is how far the clocks of
// instances may be apart.
const sqlUnqueued = `SELECT m.sub_account_id, COUNT(*)
FROM processor_mapping m
JOIN processor_config c ON c.client_id = m.client_id AND c.enabled
JOIN usage_row r ON r.client_id = m.client_id AND r.sub_account_id = m.sub_account_id
LEFT JOIN processor_event e ON e.client_id = r.client_id AND e.created_at = r.created_at AND e.usage_id = r.id
WHERE m.client_id = $1 AND e.usage_id IS NULL AND r.cost > 0 AND r.wallet_markup IS NULL AND r.parse_status <> 'provisional'
  AND r.created_at > m.created_at + $2 AND r.created_at > c.enabled_at + $2
GROUP BY m.sub_account_id
ORDER BY m.sub_account_id
-- sqlUnqueued`

// sqlForgottenQueues counts pending events that nothing will send.
const sqlForgottenQueues = `SELECT e.customer_id, COUNT(*)
FROM processor_event e
LEFT JOIN processor_queue l ON l.client_id = e.client_id AND l.customer_id = e.customer_id AND l.next_at < $2
WHERE e.client_id = $1 AND e.status = 'pending' AND l.client_id IS NULL
GROUP BY e.customer_id
ORDER BY e.customer_id
-- sqlForgottenQueues`

// sqlOrders compares paid orders with the entries of their ids.
const sqlOrders = `SELECT o.id, o.amount, COALESCE(b.amount, 0)
FROM checkout_order o
LEFT JOIN balance_entry b ON b.id = o.id AND b.client_id = o.client_id
WHERE o.client_id = $1
  AND (CASE WHEN o.status = 'paid' THEN o.amount ELSE 0 END) <> COALESCE(b.amount, 0)
ORDER BY o.id
-- sqlOrders`

// ClockSlack is how far the clocks of instances may be apart.
const ClockSlack = 5 * time.Minute

// exported is what is billed to a sub-account, in 1e-17 USD.
type exported struct {
	want, have big.Int
	unknown    int64 // events of rows that are not there
}

// CheckEvents compares the billing events of a client with its rows, to the
// last part of a micro-USD.
func CheckEvents(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) ([]sqldb.Difference, error) {
	sums, err := exportSums(ctx, tx, client)
	if err != nil {
		return nil, err
	}
	var out []sqldb.Difference
	for _, sub := range slices.Sorted(maps.Keys(sums)) {
		s := sums[sub]
		if s.unknown > 0 {
			out = append(out, sqldb.Difference{ClientID: client, What: "export_unknown_row", Key: sub, Have: s.unknown})
		}
		if s.want.Cmp(&s.have) != 0 {
			out = append(out, sqldb.Difference{ClientID: client, What: "export", Key: sub, Want: micro(&s.want), Have: micro(&s.have)})
		}
	}
	for _, c := range []struct {
		what, query string
		bound       int64
	}{{"export_missing", sqlUnqueued, ClockSlack.Microseconds()}, {"export_forgotten", sqlForgottenQueues, sqldb.Never}} {
		_, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (struct{}, error) {
			d := sqldb.Difference{ClientID: client, What: c.what}
			err := row.Scan(&d.Key, &d.Have)
			out = append(out, d)
			return struct{}{}, err
		}, c.query, client, c.bound)
		if err != nil {
			return nil, err
		}
	}
	_, err = sqldb.List(ctx, tx, func(row sqldb.Scanner) (struct{}, error) {
		d := sqldb.Difference{ClientID: client, What: "checkout"}
		err := row.Scan(&d.Key, &d.Want, &d.Have)
		out = append(out, d)
		return struct{}{}, err
	}, sqlOrders, client)
	return out, err
}

// exportSums are what is billed to each sub-account by its rows (want) and by
// its events and what is carried (have).
func exportSums(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) (map[string]*exported, error) {
	sums := make(map[string]*exported)
	of := func(sub string) *exported {
		if sums[sub] == nil {
			sums[sub] = new(exported)
		}
		return sums[sub]
	}
	_, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (struct{}, error) {
		var sub string
		var markup modelgate.Markup
		var cost modelgate.Nano
		var value modelgate.Micro
		var unknown int64
		err := row.Scan(&sub, &markup, &cost, &value, &unknown)
		e := of(sub)
		e.unknown += unknown
		e.want.Add(&e.want, cost.Exact(markup))
		e.have.Add(&e.have, value.Exact())
		return struct{}{}, err
	}, sqlExportSums, client)
	if err != nil {
		return nil, err
	}
	_, err = sqldb.List(ctx, tx, func(row sqldb.Scanner) (struct{}, error) {
		var sub string
		var rest modelgate.Carry
		err := row.Scan(&sub, &rest)
		e := of(sub)
		e.have.Add(&e.have, big.NewInt(int64(rest)))
		return struct{}{}, err
	}, sqlCarries, client)
	if err != nil {
		return nil, err
	}
	_, err = sqldb.List(ctx, tx, func(row sqldb.Scanner) (struct{}, error) {
		var sub string
		var rest int64
		err := row.Scan(&sub, &rest)
		e := of(sub)
		e.want.Add(&e.want, big.NewInt(rest))
		return struct{}{}, err
	}, sqlPrunedRests, client)
	return sums, err
}

// micro is an exact amount in micro-USD, or the end of the range.
func micro(exact *big.Int) int64 {
	v := new(big.Int).Quo(exact, modelgate.Micro(1).Exact())
	if !v.IsInt64() {
		return sqldb.Never
	}
	return v.Int64()
}
