package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"modelgate"
)

// billedTo finds how the sub-accounts of some rows are billed, for a number of
// pairs of client and sub-account: those that have a mapping and whose
// organization has the export enabled.
func billedTo(pairs int) string {
	return tuples(`SELECT m.client_id, m.sub_account_id, m.customer_id, s.markup
FROM processor_mapping m
JOIN processor_config c ON c.client_id = m.client_id AND c.enabled
JOIN sub_account s ON s.id = m.sub_account_id AND s.client_id = m.client_id
WHERE (m.client_id, m.sub_account_id) IN (VALUES `, pairs, 2, 1) + `)
-- billedTo`
}

// sqlLockCarry makes the row where it is missing, and locks it until the end
// of the transaction.
const sqlLockCarry = `INSERT INTO processor_carry (client_id, sub_account_id, rest)
VALUES ($1, $2, 0)
ON CONFLICT (client_id, sub_account_id) DO UPDATE
SET rest = processor_carry.rest
RETURNING rest
-- sqlLockCarry`

const sqlSaveCarry = `UPDATE processor_carry
SET rest = $3
WHERE client_id = $1 AND sub_account_id = $2
-- sqlSaveCarry`

const eventColumns = `client_id, created_at, usage_id, sub_account_id, customer_id, markup, value, status, attempts,
  queued_at, next_attempt_at, unsure_at, generation, sent_at, last_error`

const eventColumnCount = 15

// eventInsert queues events. There is one for a usage row, whatever happens.
func eventInsert(rows int) string {
	return tuples("INSERT INTO processor_event ("+eventColumns+")\nVALUES ", rows, eventColumnCount, 1) +
		"\nON CONFLICT (client_id, created_at, usage_id) DO NOTHING\n-- eventInsert"
}

// sqlWakeLane says that something is due in a lane.
const sqlWakeLane = `INSERT INTO processor_lane (client_id, customer_id, next_at, claimed_until, holder)
VALUES ($1, $2, $3, 0, '')
ON CONFLICT (client_id, customer_id) DO UPDATE
SET next_at = CASE WHEN processor_lane.next_at < excluded.next_at THEN processor_lane.next_at ELSE excluded.next_at END
-- sqlWakeLane`

// billed is a sub-account that rows are billed to.
type billed struct{ client, subAccount string }

func (b billed) compare(o billed) int {
	return cmp.Or(cmp.Compare(b.client, o.client), cmp.Compare(b.subAccount, o.subAccount))
}

// terms are how a sub-account is billed.
type terms struct {
	customer string
	markup   modelgate.Markup
}

// queueExports queues a billing event for each final row of a mapped
// sub-account while its organization's export is enabled. Customer and markup
// are those of this moment. A row that costs nothing has no event, and what is
// less than a micro-USD goes with the sub-account's next one.
func (db *DB) queueExports(ctx context.Context, tx *sql.Tx, b *booked) error {
	bySubAccount := billable(b)
	keys := slices.SortedFunc(maps.Keys(bySubAccount), billed.compare)
	found, err := db.termsOf(ctx, tx, keys)
	if err != nil {
		return err
	}
	var values []any
	wake := make(map[billed]bool) // lanes
	for _, k := range keys {
		t, mapped := found[k]
		if !mapped {
			continue
		}
		pending, err := db.bill(ctx, tx, k, t, bySubAccount[k], &values)
		if err != nil {
			return err
		}
		if pending {
			wake[billed{k.client, t.customer}] = true
		}
	}
	if err := db.insertEvents(ctx, tx, values); err != nil {
		return err
	}
	for _, lane := range slices.SortedFunc(maps.Keys(wake), billed.compare) {
		if _, err := tx.ExecContext(ctx, sqlWakeLane, lane.client, lane.subAccount, micros(db.now())); err != nil {
			return err
		}
	}
	return nil
}

// billable are the rows that are final from now on and cost something.
func billable(b *booked) map[billed][]*modelgate.UsageRow {
	found := make(map[billed][]*modelgate.UsageRow)
	add := func(r *modelgate.UsageRow) {
		if r.SubAccountID != "" && r.Cost > 0 && r.ParseStatus != modelgate.ParseProvisional {
			k := billed{clean(string(r.ClientID)), clean(string(r.SubAccountID))}
			found[k] = append(found[k], r)
		}
	}
	for _, r := range b.rows {
		add(r)
	}
	for i := range b.finals {
		add(b.finals[i].row)
	}
	return found
}

// termsOf finds the terms of those sub-accounts that are billed.
func (db *DB) termsOf(ctx context.Context, tx *sql.Tx, keys []billed) (map[billed]terms, error) {
	found := make(map[billed]terms)
	for len(keys) > 0 {
		part := keys[:statementRows(len(keys), insertRows)]
		keys = keys[len(part):]
		var args []any
		for _, k := range part {
			args = append(args, k.client, k.subAccount)
		}
		_, err := list(ctx, tx, func(s scanner) (struct{}, error) {
			var k billed
			var t terms
			err := s.Scan(&k.client, &k.subAccount, &t.customer, &t.markup)
			found[k] = t
			return struct{}{}, err
		}, billedTo(len(part)), args...)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// bill appends the events of one sub-account's rows to values, and reports
// whether one of them is to be sent.
func (db *DB) bill(ctx context.Context, tx *sql.Tx, k billed, t terms, rows []*modelgate.UsageRow, values *[]any) (bool, error) {
	var carried modelgate.Carry
	if err := tx.QueryRowContext(ctx, sqlLockCarry, k.client, k.subAccount).Scan(&carried); err != nil {
		return false, err
	}
	now, pending := micros(db.now()), false
	for _, r := range rows {
		var value modelgate.Micro
		value, carried = r.Cost.Bill(t.markup, carried)
		status := modelgate.ExportPending
		if value == 0 {
			status = modelgate.ExportCarried
		}
		pending = pending || value > 0
		*values = append(*values, k.client, micros(r.At), r.ID.String(), k.subAccount, t.customer, int64(t.markup), int64(value),
			string(status), 0, now, now, 0, 0, 0, "")
	}
	_, err := tx.ExecContext(ctx, sqlSaveCarry, k.client, k.subAccount, int64(carried))
	return pending, err
}

func (db *DB) insertEvents(ctx context.Context, tx *sql.Tx, values []any) error {
	for len(values) > 0 {
		rows := statementRows(len(values)/eventColumnCount, db.engine.rowsPerInsert)
		if _, err := tx.ExecContext(ctx, eventInsert(rows), values[:rows*eventColumnCount]...); err != nil {
			return err
		}
		values = values[rows*eventColumnCount:]
	}
	return nil
}
