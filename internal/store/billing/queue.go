package billing

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// billedTo finds how the sub-accounts of some rows are billed, for a number of
// pairs of client and sub-account: those that have a mapping and whose
// organization has the export enabled.
func billedTo(pairs int) string {
	return sqldb.Tuples(`SELECT m.client_id, m.sub_account_id, m.customer_id, s.markup
FROM processor_mapping m
JOIN processor_config c ON c.client_id = m.client_id AND c.enabled
JOIN sub_account s ON s.id = m.sub_account_id AND s.client_id = m.client_id
WHERE (m.client_id, m.sub_account_id) IN (VALUES `, pairs, 2, 1) + `)
-- billedTo`
}

// carryLocks makes rows where they are missing, and locks them until the end of
// the transaction, in the order of the tuples.
func carryLocks(rows int) string {
	return sqldb.Tuples("INSERT INTO processor_carry (client_id, sub_account_id, rest)\nVALUES ", rows, 3, 1) + `
ON CONFLICT (client_id, sub_account_id) DO UPDATE
SET rest = processor_carry.rest
RETURNING client_id, sub_account_id, rest
-- carryLocks`
}

// carrySaves writes what is carried from here on.
func carrySaves(rows int) string {
	return sqldb.Tuples("INSERT INTO processor_carry (client_id, sub_account_id, rest)\nVALUES ", rows, 3, 1) + `
ON CONFLICT (client_id, sub_account_id) DO UPDATE
SET rest = excluded.rest
-- carrySaves`
}

const eventColumns = `client_id, created_at, usage_id, sub_account_id, customer_id, markup, value, status, attempts,
  queued_at, next_attempt_at, unsure_at, generation, sent_at, last_error`

const eventColumnCount = 15

// eventInsert queues events. There is one for a usage row, whatever happens.
func eventInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO processor_event ("+eventColumns+")\nVALUES ", rows, eventColumnCount, 1) +
		"\nON CONFLICT (client_id, created_at, usage_id) DO NOTHING\n-- eventInsert"
}

// sqlWakeQueue says that something is due in a queue.
const sqlWakeQueue = `INSERT INTO processor_queue (client_id, customer_id, next_at, claimed_until, holder)
VALUES ($1, $2, $3, 0, '')
` + earlier + `
-- sqlWakeQueue`

const earlier = `ON CONFLICT (client_id, customer_id) DO UPDATE
SET next_at = CASE WHEN processor_queue.next_at < excluded.next_at THEN processor_queue.next_at ELSE excluded.next_at END`

// queueWakes is sqlWakeQueue for a number of queues, in the order of the tuples.
func queueWakes(queues int) string {
	return sqldb.Tuples("INSERT INTO processor_queue (client_id, customer_id, next_at, claimed_until, holder)\nVALUES ", queues, 5, 1) + "\n" + earlier + "\n-- queueWakes"
}

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

// QueueEvents queues a billing event for each final row of a mapped
// sub-account while its organization's export is enabled, unless a wallet has
// paid for it. Customer and markup
// are those of this moment. A row that costs nothing has no event, and what is
// less than a micro-USD goes with the sub-account's next one.
func (s *Store) QueueEvents(ctx context.Context, tx *sql.Tx, rows []*modelgate.UsageRow) error {
	bySubAccount := billable(rows)
	keys := slices.SortedFunc(maps.Keys(bySubAccount), billed.compare)
	found, err := s.termsOf(ctx, tx, keys)
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(k billed) bool { _, mapped := found[k]; return !mapped })
	carried, err := s.lockCarries(ctx, tx, keys)
	if err != nil {
		return err
	}
	var values []any
	wake := make(map[billed]bool) // queues
	for _, k := range keys {
		t := found[k]
		if s.bill(k, t, bySubAccount[k], carried, &values) {
			wake[billed{k.client, t.customer}] = true
		}
	}
	if err := s.saveCarries(ctx, tx, keys, carried); err != nil {
		return err
	}
	if err := s.insertEvents(ctx, tx, values); err != nil {
		return err
	}
	return s.wakeQueues(ctx, tx, slices.SortedFunc(maps.Keys(wake), billed.compare))
}

// wakeQueues says that something is due, from now on, in queues: pairs of client
// and customer, sorted. It comes last: whoever sends keeps a queue locked while
// it notes what it does.
func (s *Store) wakeQueues(ctx context.Context, tx *sql.Tx, queues []billed) error {
	now := sqldb.Micros(s.db.Now())
	return s.db.Batch(ctx, tx, sqldb.BatchExec{Text: queueWakes, N: len(queues), Args: func(dst []any, i int) []any {
		return append(dst, queues[i].client, queues[i].subAccount, now, 0, "")
	}})
}

// lockCarries locks and reads what is carried of sub-accounts, which are
// sorted.
func (s *Store) lockCarries(ctx context.Context, tx *sql.Tx, keys []billed) (map[billed]modelgate.Carry, error) {
	carried := make(map[billed]modelgate.Carry, len(keys))
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: carryLocks, N: len(keys),
		Args: func(dst []any, i int) []any { return append(dst, keys[i].client, keys[i].subAccount, 0) },
		Scan: func(row sqldb.Scanner) error {
			var k billed
			var rest modelgate.Carry
			err := row.Scan(&k.client, &k.subAccount, &rest)
			carried[k] = rest
			return err
		},
	})
	return carried, err
}

func (s *Store) saveCarries(ctx context.Context, tx *sql.Tx, keys []billed, carried map[billed]modelgate.Carry) error {
	return s.db.Batch(ctx, tx, sqldb.BatchExec{Text: carrySaves, N: len(keys), Args: func(dst []any, i int) []any {
		return append(dst, keys[i].client, keys[i].subAccount, int64(carried[keys[i]]))
	}})
}

// billable are the rows that are final from now on, cost something and are not
// paid for by a wallet.
func billable(rows []*modelgate.UsageRow) map[billed][]*modelgate.UsageRow {
	found := make(map[billed][]*modelgate.UsageRow)
	for _, r := range rows {
		if r.SubAccountID != "" && r.Cost > 0 && r.WalletMarkup == nil && r.ParseStatus != modelgate.ParseProvisional {
			k := billed{sqldb.Clean(string(r.ClientID)), sqldb.Clean(string(r.SubAccountID))}
			found[k] = append(found[k], r)
		}
	}
	return found
}

// termsOf finds the terms of those sub-accounts that are billed.
func (s *Store) termsOf(ctx context.Context, tx *sql.Tx, keys []billed) (map[billed]terms, error) {
	found := make(map[billed]terms)
	for len(keys) > 0 {
		part := keys[:sqldb.StatementRows(len(keys), sqldb.MaxRows)]
		keys = keys[len(part):]
		var args []any
		for _, k := range part {
			args = append(args, k.client, k.subAccount)
		}
		_, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (struct{}, error) {
			var k billed
			var t terms
			err := row.Scan(&k.client, &k.subAccount, &t.customer, &t.markup)
			found[k] = t
			return struct{}{}, err
		}, billedTo(len(part)), args...)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// bill appends the events of one sub-account's rows to values, changes what is
// carried, and reports whether one of them is to be sent.
func (s *Store) bill(k billed, t terms, rows []*modelgate.UsageRow, carried map[billed]modelgate.Carry, values *[]any) bool {
	now, pending := sqldb.Micros(s.db.Now()), false
	for _, r := range rows {
		var value modelgate.Micro
		value, carried[k] = r.Cost.Bill(t.markup, carried[k])
		status := modelgate.ExportPending
		if value == 0 {
			status = modelgate.ExportCarried
		}
		pending = pending || value > 0
		*values = append(*values, k.client, sqldb.Micros(r.At), r.ID.String(), k.subAccount, t.customer, int64(t.markup), int64(value),
			string(status), 0, now, now, 0, 0, 0, "")
	}
	return pending
}

func (s *Store) insertEvents(ctx context.Context, tx *sql.Tx, values []any) error {
	return s.db.Batch(ctx, tx, sqldb.BatchExec{Text: eventInsert, N: len(values) / eventColumnCount, Args: func(dst []any, i int) []any {
		return append(dst, values[i*eventColumnCount:(i+1)*eventColumnCount]...)
	}})
}
