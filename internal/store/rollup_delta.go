package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/giveway"
	"modelgate/internal/store/sqldb"
)

// Booking a batch does not touch the pages: it adds one row of rollup_delta
// for each hour, organization and sub-account that has calls in it. That costs
// little however many different values there are, and several instances do not
// wait for each other. A loop puts the deltas of many batches into the pages
// together; statistics count both.

// rollUpRows counts what is booked.
func (db *DB) rollUpRows(ctx context.Context, tx *sql.Tx, b *booked) error {
	clients, late := make(map[modelgate.ClientID]head), make(map[modelgate.ClientID]bool)
	youngest := sqldb.Micros(db.now().Add(-lateAfter))
	see := func(r *modelgate.UsageRow) {
		client := modelgate.ClientID(sqldb.Clean(string(r.ClientID)))
		if _, known := clients[client]; !known {
			clients[client] = head{rolledFrom: unknownHead}
		}
		if sqldb.Micros(r.At) < youngest {
			late[client] = true
		}
	}
	for _, r := range b.rows {
		see(r)
	}
	for i := range b.finals {
		see(b.finals[i].row)
	}
	if err := db.heads(ctx, tx, clients, late); err != nil {
		return err
	}
	t := make(tally)
	b.count(db.way, func(c *counted) {
		if c.at >= clients[c.client].rolledFrom {
			t.add(c)
		}
	})
	return db.addDeltas(ctx, tx, t)
}

// count calls do with what each row adds to the rollups.
func (b *booked) count(way *giveway.Yielder, do func(*counted)) {
	var c counted // one, or each would be on the heap
	work := way.Work()
	for _, r := range b.rows {
		work.Step()
		c = countedRow(r)
		do(&c)
	}
	for i := range b.finals {
		f := &b.finals[i]
		c = countedRow(f.row)
		c.sums = sums{tokens: f.tokens, cost: int64(f.change)}
		do(&c)
	}
}

// unknownHead marks a head that is not there.
const unknownHead = -1

// lateAfter is less than the shortest time for which usage is kept: what is
// younger is not pruned.
const lateAfter = 60 * 24 * time.Hour

// heads fills in the heads of clients. Where not all is rolled up they are
// locked: a row is either in a delta or found by RollUp, never both or neither.
// Those with rows that are late are locked too: such a row is booked before or
// after a step of pruning, which sums rows and then deletes them.
func (db *DB) heads(ctx context.Context, tx *sql.Tx, clients map[modelgate.ClientID]head, late map[modelgate.ClientID]bool) error {
	names := slices.Sorted(maps.Keys(clients))
	err := db.runMany(ctx, tx, sqldb.BatchExec{
		Text: headSelect,
		N:    len(names),
		Args: func(dst []any, i int) []any { return append(dst, string(names[i])) },
		Scan: func(s sqldb.Scanner) error {
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
		if h.rolledFrom != 0 || late[name] {
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
	return db.runMany(ctx, tx, sqldb.BatchExec{
		Text: deltaInsert,
		N:    len(spans),
		Args: func(dst []any, i int) []any {
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
	out, err := sqldb.List(ctx, db.read, scanClientID, sqlDeltaClients)
	return out, wrap("list waiting rollups", err)
}

// foldEntries bounds the different sums that one transaction puts into pages,
// but for those of its last hour: each may lie on a page of its own.
const foldEntries = 5000

// deltaName is the key of a row of rollup_delta.
type deltaName struct {
	span
	id string
}

// Fold puts deltas of some clients into their pages, in one transaction and
// therefore not too many of them, never more than most; it reports whether
// there may be more. Statistics are the same before and after. Several
// instances may do so at once: they take turns.
func (db *DB) Fold(ctx context.Context, clients []modelgate.ClientID, most int) (more bool, err error) {
	heads := make(map[modelgate.ClientID]head, len(clients))
	for _, client := range clients {
		heads[client] = head{}
	}
	err = db.update(ctx, "fold rollups", func(tx *sql.Tx) error {
		if err := db.lockHeads(ctx, tx, heads); err != nil {
			return err
		}
		f := folding{tally: make(tally), most: most}
		for _, client := range slices.Sorted(maps.Keys(heads)) {
			if err := f.read(ctx, tx, db.engine.freshPlan, client); err != nil {
				return err
			}
		}
		more = f.full
		if err := db.rollUp(ctx, tx, f.tally); err != nil {
			return err
		}
		return db.runMany(ctx, tx, sqldb.BatchExec{
			Text: deltaDelete,
			N:    len(f.names),
			Args: func(dst []any, i int) []any {
				n := f.names[i]
				return append(dst, string(n.client), string(n.subAccount), n.start, n.id)
			},
		})
	})
	return more, err
}

// folding is what one transaction puts into pages.
type folding struct {
	tally   tally
	names   []deltaName
	entries int // different ones, of the tally
	most    int // names
	full    bool
}

// read adds deltas of a client, until there are enough.
func (f *folding) read(ctx context.Context, tx *sql.Tx, fresh []any, client modelgate.ClientID) error {
	if f.full {
		return nil
	}
	rows, err := tx.QueryContext(ctx, sqlDeltas, append(slices.Clone(fresh), string(client), f.most-len(f.names)+1)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		n := deltaName{span: span{client: client, grain: grainHour}}
		var data sql.RawBytes
		if err := rows.Scan(&n.subAccount, &n.start, &n.id, &data); err != nil {
			return err
		}
		if f.full = len(f.names) == f.most || f.entries >= foldEntries && f.tally[n.span] == nil; f.full {
			return nil
		}
		added, err := f.tally.addDelta(n.span, data)
		if err != nil {
			return fmt.Errorf("%s: %w", n.span, err)
		}
		f.names, f.entries = append(f.names, n), f.entries+added
	}
	return rows.Err()
}

// addDelta adds what a delta holds, and returns how many entries are new.
func (t tally) addDelta(at span, data []byte) (added int, err error) {
	dimensions := t[at]
	if dimensions == nil {
		dimensions = make(map[string]map[string]*sums, 8)
		t[at] = dimensions
	}
	err = walkPage(data, func([]byte, int64) {}, func(key []byte, s sums) {
		name, entry, _ := strings.Cut(string(key), "\x00")
		if count(dimensions, name, []byte(entry), s) {
			added++
		}
	})
	return added, err
}
