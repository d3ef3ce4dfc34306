package store

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"modelgate"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
)

const sqlUnrolledClients = `SELECT client_id
FROM usage_head
WHERE rolled_from > 0
ORDER BY client_id
-- sqlUnrolledClients`

// sqlRowBefore is the instant of the row that has $3 newer ones before $2.
const sqlRowBefore = `SELECT created_at
FROM usage_row
WHERE client_id = $1 AND created_at < $2
ORDER BY created_at DESC
LIMIT 1 OFFSET $3
-- sqlRowBefore`

const sqlMoveRolledFrom = `UPDATE usage_head
SET rolled_from = $2
WHERE client_id = $1
-- sqlMoveRolledFrom`

// rollups runs the statements of rollups.
func (db *DB) rollups() stats.Rollups {
	return stats.Rollups{Rows: db.engine.rowsPerInsert, Fresh: db.engine.freshPlan}
}

// UnrolledClients are those with rows that were booked before there were
// rollups, and are not in them yet.
func (db *DB) UnrolledClients(ctx context.Context) ([]modelgate.ClientID, error) {
	out, err := sqldb.List(ctx, db.read, scanClientID, sqlUnrolledClients)
	return out, wrap("list clients without rollups", err)
}

func scanClientID(s sqldb.Scanner) (id modelgate.ClientID, err error) {
	err = s.Scan(&id)
	return id, err
}

// RollUp counts rows of a client that were booked before there were rollups:
// whole hours, the newest first, of about as many rows as most says. It
// reports whether there are more. Statistics are the same before, meanwhile
// and after; only slower while rows are left.
func (db *DB) RollUp(ctx context.Context, client modelgate.ClientID, most int) (more bool, err error) {
	err = db.update(ctx, "roll up", func(tx *sql.Tx) error {
		heads := map[modelgate.ClientID]head{client: {}}
		if err := db.lockHeads(ctx, tx, heads); err != nil {
			return err
		}
		until, from := heads[client].rolledFrom, int64(math.MinInt64)
		if more = until != 0; !more {
			return nil
		}
		err := tx.QueryRowContext(ctx, sqlRowBefore, string(client), until, most).Scan(&from)
		left := int64(0) // nothing
		switch {
		case errors.Is(err, sql.ErrNoRows):
			more = false
		case err != nil:
			return err
		default:
			from = stats.Hour.Floor(from)
			left = from
		}
		t := make(stats.Tallies)
		if err := stats.EachCall(ctx, tx, client, stats.Gap{From: from, To: until}, t.Add); err != nil {
			return err
		}
		if err := db.rollups().Add(ctx, tx, t); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sqlMoveRolledFrom, string(client), left)
		return err
	})
	return more, err
}
