package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"maps"
	"slices"
	"strings"

	"modelgate"
)

// Booking a batch does not touch the pages: it adds one row of rollup_delta
// for each hour, organization and sub-account that has calls in it. That costs
// little however many different values there are, and several instances do not
// wait for each other. A loop puts the deltas of many batches into the pages
// together; statistics count both.

// rollUpRows counts what is booked.
func (db *DB) rollUpRows(ctx context.Context, tx *sql.Tx, b *booked) error {
	changes := make([]counted, 0, len(b.rows)+len(b.finals))
	for _, r := range b.rows {
		changes = append(changes, countedRow(r))
	}
	for i := range b.finals {
		c := countedRow(b.finals[i].row)
		c.sums = sums{tokens: b.finals[i].tokens, cost: int64(b.finals[i].change)}
		changes = append(changes, c)
	}
	clients := make(map[modelgate.ClientID]head)
	for i := range changes {
		clients[changes[i].client] = head{rolledFrom: unknownHead}
	}
	if err := db.heads(ctx, tx, clients); err != nil {
		return err
	}
	t := make(tally)
	for i := range changes {
		if c := &changes[i]; c.at >= clients[c.client].rolledFrom {
			t.add(c)
		}
	}
	return db.addDeltas(ctx, tx, t)
}

// unknownHead marks a head that is not there.
const unknownHead = -1

// heads fills in the heads of clients. Where not all is rolled up they are
// locked: a row is either in a delta or found by RollUp, never both or neither.
func (db *DB) heads(ctx context.Context, tx *sql.Tx, clients map[modelgate.ClientID]head) error {
	names := slices.Sorted(maps.Keys(clients))
	err := db.runMany(ctx, tx, many{
		text: headSelect,
		n:    len(names),
		args: func(dst []any, i int) []any { return append(dst, string(names[i])) },
		scan: func(s scanner) error {
			var name modelgate.ClientID
			var h head
			err := s.Scan(&name, &h.rolledFrom)
			clients[name] = h
			return err
		},
	})
	if err != nil {
		return err
	}
	locked := make(map[modelgate.ClientID]head)
	for name, h := range clients {
		if h.rolledFrom != 0 {
			locked[name] = h
		}
	}
	if err := db.lockHeads(ctx, tx, locked); err != nil {
		return err
	}
	maps.Copy(clients, locked)
	return nil
}

func (db *DB) addDeltas(ctx context.Context, tx *sql.Tx, t tally) error {
	spans := slices.SortedFunc(maps.Keys(t), func(a, b span) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.subAccount, b.subAccount), cmp.Compare(a.start, b.start))
	})
	id := rand.Text()
	return db.runMany(ctx, tx, many{
		text: deltaInsert,
		n:    len(spans),
		args: func(dst []any, i int) []any {
			at := spans[i]
			return append(dst, string(at.client), string(at.subAccount), at.start, id, encodeDelta(t[at]))
		},
	})
}

const sqlDeltaClients = `WITH RECURSIVE waiting(name) AS (
  SELECT MIN(client_id) FROM rollup_delta
  UNION ALL
  SELECT (SELECT MIN(client_id) FROM rollup_delta WHERE client_id > waiting.name)
  FROM waiting
  WHERE waiting.name IS NOT NULL
)
SELECT name
FROM waiting
WHERE name IS NOT NULL
-- sqlDeltaClients`

const sqlDeltas = `SELECT sub_account_id, hour, id, data
FROM rollup_delta
WHERE client_id = $1
ORDER BY sub_account_id, hour, id
LIMIT $2
-- sqlDeltas`

// DeltaClients are the clients whose rollups wait to be put into pages.
func (db *DB) DeltaClients(ctx context.Context) ([]modelgate.ClientID, error) {
	out, err := list(ctx, db.read, scanClientID, sqlDeltaClients)
	return out, wrap("list waiting rollups", err)
}

// Fold puts at most so many deltas of a client into its pages, and reports
// whether there may be more. Statistics are the same before and after. Several
// instances may do so at once: they take turns.
func (db *DB) Fold(ctx context.Context, client modelgate.ClientID, most int) (more bool, err error) {
	type name struct {
		sub  string
		hour int64
		id   string
	}
	err = db.update(ctx, "fold rollups", func(tx *sql.Tx) error {
		if err := db.lockHeads(ctx, tx, map[modelgate.ClientID]head{client: {}}); err != nil {
			return err
		}
		t := make(tally)
		names, err := list(ctx, tx, func(s scanner) (name, error) {
			var n name
			var data []byte
			if err := s.Scan(&n.sub, &n.hour, &n.id, &data); err != nil {
				return n, err
			}
			return n, t.addDelta(span{client, modelgate.SubAccountID(n.sub), grainHour, n.hour}, data)
		}, sqlDeltas, string(client), most)
		if err != nil {
			return err
		}
		more = len(names) == most
		if err := db.rollUp(ctx, tx, t); err != nil {
			return err
		}
		return db.runMany(ctx, tx, many{
			text: deltaDelete,
			n:    len(names),
			args: func(dst []any, i int) []any {
				return append(dst, string(client), names[i].sub, names[i].hour, names[i].id)
			},
		})
	})
	return more, err
}

// addDelta adds what a delta holds.
func (t tally) addDelta(at span, data []byte) error {
	dimensions := t[at]
	if dimensions == nil {
		dimensions = make(map[string]map[string]*sums, 8)
		t[at] = dimensions
	}
	return walkPage(data, func([]byte, int64) {}, func(key []byte, s sums) {
		name, entry, _ := strings.Cut(string(key), "\x00")
		count(dimensions, name, []byte(entry), s)
	})
}
