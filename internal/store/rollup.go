package store

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
)

// Booking a batch does not touch the pages of rollups. It inserts one row into
// rollup_delta for each hour, organization and sub-account of the batch, so that
// it costs little however many different values there are, and instances do not
// wait for each other. A loop merges the deltas of many batches into pages.
// Statistics read both.

// addRollups stores what the rows add to the rollups.
func (db *DB) addRollups(ctx context.Context, tx *sql.Tx, b *booked) error {
	if err := db.lockLate(ctx, tx, b); err != nil {
		return err
	}
	t := make(stats.Tallies)
	var c stats.Call // outside of the loops, to be allocated once
	loop := db.yielder.Loop()
	for _, r := range b.rows {
		loop.Step()
		c = rollupCall(r)
		t.Add(&c)
	}
	for i := range b.finals {
		f := &b.finals[i]
		c = rollupCall(f.row)
		c.Sums = stats.Sums{Tokens: f.tokens, Cost: int64(f.change)}
		t.Add(&c)
	}
	return db.rollups().AddDeltas(ctx, tx, t)
}

// rollups runs the statements of rollups.
func (db *DB) rollups() stats.Rollups {
	return stats.Rollups{Rows: db.handle.RowsPerInsert, Fresh: db.engine.freshPlan}
}

// rollupCall is a new row as rollups count it.
func rollupCall(r *modelgate.UsageRow) stats.Call {
	b := &r.CallBegin
	c := stats.Call{
		Client:     modelgate.ClientID(sqldb.Clean(string(b.ClientID))),
		SubAccount: modelgate.SubAccountID(sqldb.Clean(string(b.SubAccountID))),
		At:         sqldb.Micros(b.At), Provider: sqldb.Clean(b.Provider), Model: sqldb.Clean(b.Model),
		Slug: sqldb.Clean(b.Slug), Author: sqldb.Clean(b.Author), Region: sqldb.Clean(b.Region), Attribution: b.Attribution,
		Sums: stats.Sums{Requests: 1, Tokens: r.Usage.TotalTokens(), Cost: int64(r.Cost)},
	}
	if c.Slug == "" {
		c.Author = "" // only catalogued routes have one
	}
	return c
}

// lateAfter is less than the shortest retention: younger rows are not pruned.
const lateAfter = 60 * 24 * time.Hour

// lockLate locks the heads of clients with rows so old that they may be pruned.
// Such a row is booked before or after a step of pruning, which sums rows and
// then deletes them.
func (db *DB) lockLate(ctx context.Context, tx *sql.Tx, b *booked) error {
	oldest := db.now().Add(-lateAfter)
	var late []modelgate.ClientID
	add := func(r *modelgate.UsageRow) {
		if r.At.Before(oldest) {
			late = append(late, modelgate.ClientID(sqldb.Clean(string(r.ClientID))))
		}
	}
	for _, r := range b.rows {
		add(r)
	}
	for i := range b.finals {
		add(b.finals[i].row)
	}
	return db.lockHeads(ctx, tx, late)
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

// DeltaClients are the clients with deltas that are not merged into pages.
func (db *DB) DeltaClients(ctx context.Context) ([]modelgate.ClientID, error) {
	out, err := sqldb.List(ctx, db.read, sqldb.ScanClientID, sqlDeltaClients)
	return out, sqldb.Wrap("list waiting rollups", err)
}

// CompactRollups merges at most that many deltas of some clients into their
// pages, in one transaction. It reports whether there may be more. Statistics
// are the same before and after. Several instances may compact at once; they
// take turns.
func (db *DB) CompactRollups(ctx context.Context, clients []modelgate.ClientID, most int) (more bool, err error) {
	err = db.update(ctx, "compact rollups", func(tx *sql.Tx) error {
		if err := db.lockHeads(ctx, tx, clients); err != nil {
			return err
		}
		c := stats.Compaction{Most: most}
		for _, client := range clients {
			if err := c.Read(ctx, tx, db.rollups(), client); err != nil {
				return err
			}
		}
		more = c.Full
		return db.rollups().Compact(ctx, tx, &c)
	})
	return more, err
}
