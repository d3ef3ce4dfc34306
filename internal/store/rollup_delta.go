package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
	"modelgate/internal/yield"
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
	t := make(stats.Tallies)
	b.count(db.yielder, func(c *stats.Call) {
		if c.At >= clients[c.Client].rolledFrom {
			t.Add(c)
		}
	})
	return db.rollups().AddDeltas(ctx, tx, t)
}

// count calls do with what each row adds to the rollups.
func (b *booked) count(yielder *yield.Yielder, do func(*stats.Call)) {
	var c stats.Call // one, or each would be on the heap
	loop := yielder.Loop()
	for _, r := range b.rows {
		loop.Step()
		c = countedRow(r)
		do(&c)
	}
	for i := range b.finals {
		f := &b.finals[i]
		c = countedRow(f.row)
		c.Sums = stats.Sums{Tokens: f.tokens, Cost: int64(f.change)}
		do(&c)
	}
}

// countedRow is a new row as it counts.
func countedRow(r *modelgate.UsageRow) stats.Call {
	b := &r.CallBegin
	c := stats.Call{
		Client: modelgate.ClientID(sqldb.Clean(string(b.ClientID))), SubAccount: modelgate.SubAccountID(sqldb.Clean(string(b.SubAccountID))), At: sqldb.Micros(b.At), Provider: sqldb.Clean(b.Provider), Model: sqldb.Clean(b.Model),
		Slug: sqldb.Clean(b.Slug), Author: sqldb.Clean(b.Author), Region: sqldb.Clean(b.Region), Attribution: b.Attribution,
		Sums: stats.Sums{Requests: 1, Tokens: r.Usage.TotalTokens(), Cost: int64(r.Cost)},
	}
	if c.Slug == "" {
		c.Author = "" // of routes that are catalogued only
	}
	return c
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

// DeltaClients are the clients whose rollups wait to be put into pages.
func (db *DB) DeltaClients(ctx context.Context) ([]modelgate.ClientID, error) {
	out, err := sqldb.List(ctx, db.read, scanClientID, sqlDeltaClients)
	return out, wrap("list waiting rollups", err)
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
		f := stats.NewFolding(most)
		for _, client := range slices.Sorted(maps.Keys(heads)) {
			if err := f.Read(ctx, tx, db.rollups(), client); err != nil {
				return err
			}
		}
		more = f.Full
		if err := db.rollups().Add(ctx, tx, f.Tallies); err != nil {
			return err
		}
		return db.rollups().DeleteFolded(ctx, tx, f)
	})
	return more, err
}
