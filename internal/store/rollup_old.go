package store

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/store/sqldb"
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

const sqlCountedRows = `SELECT sub_account_id, created_at, provider, model, slug, author, region, attribution, total_tokens, cost
FROM usage_row
WHERE client_id = $1 AND created_at >= $2 AND created_at < $3
-- sqlCountedRows`

const sqlMoveRolledFrom = `UPDATE usage_head
SET rolled_from = $2
WHERE client_id = $1
-- sqlMoveRolledFrom`

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
			from = grainHour.floor(from)
			left = from
		}
		t := make(tally)
		if err := eachCounted(ctx, tx, client, gap{from, until}, t.add); err != nil {
			return err
		}
		if err := db.rollUp(ctx, tx, t); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sqlMoveRolledFrom, string(client), left)
		return err
	})
	return more, err
}

// eachCounted calls fn with each row of a time.
func eachCounted(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, g gap, fn func(*counted)) error {
	rows, err := tx.QueryContext(ctx, sqlCountedRows, string(client), g.from, g.to)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c := counted{client: client, sums: sums{requests: 1}, attribution: map[string]string{}}
		var attribution sql.RawBytes
		err := rows.Scan(&c.subAccount, &c.at, &c.provider, &c.model, &c.slug, &c.author, &c.region, &attribution,
			&c.sums.tokens, &c.sums.cost)
		if err != nil {
			return err
		}
		gjson.ParseBytes(attribution).ForEach(func(k, v gjson.Result) bool {
			c.attribution[k.String()] = v.String()
			return true
		})
		if c.slug == "" {
			c.author = ""
		}
		fn(&c)
	}
	return rows.Err()
}
