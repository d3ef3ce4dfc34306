package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
)

// sqlPrunable probes the first entry of two indexes for each client. Every client
// with usage has a head once its first rollups were compacted.
const sqlPrunable = `SELECT h.client_id
FROM usage_head h
WHERE EXISTS (SELECT 1 FROM usage_row r WHERE r.client_id = h.client_id AND r.created_at < $1)
   OR EXISTS (SELECT 1 FROM rollup u WHERE u.client_id = h.client_id AND u.start + 0 < $1)
ORDER BY h.client_id
-- sqlPrunable`

// sqlPruneBound is the first row that stays when $3 go.
const sqlPruneBound = `SELECT created_at, id
FROM usage_row
WHERE client_id = $1 AND created_at < $2
ORDER BY created_at, id
LIMIT 1 OFFSET $3
-- sqlPruneBound`

const sqlPruneSum = `SELECT COUNT(*), CAST(COALESCE(SUM(cost), 0) AS BIGINT)
FROM usage_row
WHERE client_id = $1 AND (created_at, id) < ($2, $3)
-- sqlPruneSum`

const sqlPruneRows = `DELETE FROM usage_row
WHERE client_id = $1 AND (created_at, id) < ($2, $3)
-- sqlPruneRows`

// sqlPruneJobs takes the jobs of rows; none of them is pending.
const sqlPruneJobs = `DELETE FROM async_job
WHERE client_id = $1 AND (created_at, id) < ($2, $3)
-- sqlPruneJobs`

// sqlOldestPending walks async_job_pending.
const sqlOldestPending = `SELECT COALESCE(MIN(created_at), $2)
FROM async_job
WHERE client_id = $1 AND status = 'pending' AND created_at < $2
-- sqlOldestPending`

const sqlPruneHead = `UPDATE usage_head
SET pruned_before = CASE WHEN pruned_before < $2 THEN $2 ELSE pruned_before END,
  pruned_cost = pruned_cost + $3
WHERE client_id = $1
-- sqlPruneHead`

// sqlPruneDebits keeps what rows had debited wallets.
const sqlPruneDebits = `INSERT INTO pruned_debit (client_id, sub_account_id, amount)
SELECT client_id, sub_account_id, CAST(SUM(wallet_debit) AS BIGINT)
FROM usage_row
WHERE client_id = $1 AND (created_at, id) < ($2, $3) AND wallet_debit > 0
GROUP BY client_id, sub_account_id
ON CONFLICT (client_id, sub_account_id) DO UPDATE
SET amount = pruned_debit.amount + excluded.amount
-- sqlPruneDebits`

const sqlOldestRollup = `SELECT start
FROM rollup
WHERE client_id = $1 AND start + 0 < $2
ORDER BY start + 0
LIMIT 1
-- sqlOldestRollup`

const sqlPruneRollups = `DELETE FROM rollup
WHERE client_id = $1 AND start + 0 = $2
-- sqlPruneRollups`

// pruned is what one transaction takes away from the usage rows of a client:
// those that come before (at, id) in the order of the primary key. None is of
// the day that before begins, or later.
type pruned struct {
	client modelgate.ClientID
	before int64 // µs, a whole day
	at     int64
	id     string
	rows   int64
	cost   modelgate.Nano
}

// forget deletes the events and jobs of rows that are about to be deleted, and
// adds their cost to the client's head and their debits to those of pruned rows.
func (db *DB) forget(ctx context.Context, tx *sql.Tx, p *pruned) error {
	if err := forgetEvents(ctx, tx, p); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, sqlPruneDebits, string(p.client), p.at, p.id); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, sqlPruneJobs, string(p.client), p.at, p.id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, sqlPruneHead, string(p.client), p.before, int64(p.cost))
	return err
}

// Cutoff is the beginning of the UTC day of an instant. Rows before one are
// pruned, so that no day is there in part.
func Cutoff(t time.Time) time.Time { return sqldb.Instant(stats.Day.Floor(sqldb.Micros(t))) }

// Prunable are the clients that have rows or rollups from before a cutoff.
func (db *DB) Prunable(ctx context.Context, before time.Time) ([]modelgate.ClientID, error) {
	out, err := sqldb.List(ctx, db.read, sqldb.ScanClientID, sqlPrunable, sqldb.Micros(Cutoff(before)))
	return out, sqldb.Wrap("list what can be pruned", err)
}

// Prune deletes the oldest rows of a client from before a cutoff, at most that
// many, and then the rollups and latency histograms of that time. It returns
// how many rows it deleted, and whether there is more to do. Several instances
// may prune the same client; they take turns.
//
// The cutoff is stored before the first row is deleted. Reconcile compares
// nothing from before it, except what the client ever spent. A pending job, whose
// row is not final yet, moves the cutoff back to its day.
func (db *DB) Prune(ctx context.Context, client modelgate.ClientID, before time.Time, most int) (rows int64, more bool, err error) {
	latest := sqldb.Micros(Cutoff(before))
	err = db.update(ctx, "prune usage", func(tx *sql.Tx) error {
		rows, more = 0, false
		if err := db.lockHeads(ctx, tx, []modelgate.ClientID{client}); err != nil {
			return err
		}
		cutoff, err := keepPending(ctx, tx, client, latest)
		if err != nil {
			return err
		}
		p := pruned{client: client, before: cutoff, at: cutoff}
		err = tx.QueryRowContext(ctx, sqlPruneBound, string(client), cutoff, most).Scan(&p.at, &p.id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		more = err == nil
		if err := tx.QueryRowContext(ctx, sqlPruneSum, string(client), p.at, p.id).Scan(&p.rows, &p.cost); err != nil {
			return err
		}
		if err := db.forget(ctx, tx, &p); err != nil {
			return err
		}
		if rows = p.rows; rows > 0 {
			_, err := tx.ExecContext(ctx, sqlPruneRows, string(client), p.at, p.id)
			return err
		}
		more, err = prunePages(ctx, tx, client, cutoff)
		return err
	})
	return rows, more || rows > 0, err
}

// keepPending returns the latest cutoff or the beginning of the day of the oldest
// pending job, whichever is earlier.
func keepPending(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, latest int64) (int64, error) {
	var oldest int64
	err := tx.QueryRowContext(ctx, sqlOldestPending, string(client), latest).Scan(&oldest)
	return stats.Day.Floor(oldest), err
}

// prunePages deletes the rollups of the oldest hour or day, and reports
// whether there were any.
func prunePages(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, cutoff int64) (bool, error) {
	var start int64
	err := tx.QueryRowContext(ctx, sqlOldestRollup, string(client), cutoff).Scan(&start)
	if errors.Is(err, sql.ErrNoRows) {
		return false, pruneLatencies(ctx, tx, client, cutoff)
	}
	if err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, sqlPruneRollups, string(client), start)
	return true, err
}

const sqlSubAccountIDs = `SELECT id
FROM sub_account
WHERE client_id = $1
-- sqlSubAccountIDs`

const sqlPruneLatencies = `DELETE FROM latency_histogram
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND hour < $4
-- sqlPruneLatencies`

// pruneLatencies deletes counts of calls. Each scope is a range of the primary
// key.
func pruneLatencies(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, cutoff int64) error {
	subs, err := sqldb.List(ctx, tx, sqldb.ScanText, sqlSubAccountIDs, string(client))
	if err != nil {
		return err
	}
	for level, ids := range map[modelgate.Level][]string{modelgate.LevelClient: {string(client)}, modelgate.LevelSubAccount: subs} {
		for _, id := range ids {
			if _, err := tx.ExecContext(ctx, sqlPruneLatencies, string(client), level, id, cutoff); err != nil {
				return err
			}
		}
	}
	return nil
}

// sqlPrunedEvents sums what is billed for rows, by what it is billed at.
const sqlPrunedEvents = `SELECT e.sub_account_id, e.markup, CAST(SUM(r.cost) AS BIGINT), CAST(SUM(e.value) AS BIGINT)
FROM processor_event e
JOIN usage_row r ON r.client_id = e.client_id AND r.created_at = e.created_at AND r.id = e.usage_id
WHERE e.client_id = $1 AND (e.created_at, e.usage_id) < ($2, $3)
GROUP BY e.sub_account_id, e.markup
-- sqlPrunedEvents`

const sqlNotePrunedEvents = `INSERT INTO pruned_export (client_id, sub_account_id, rest)
VALUES ($1, $2, $3)
ON CONFLICT (client_id, sub_account_id) DO UPDATE SET rest = pruned_export.rest + excluded.rest
-- sqlNotePrunedEvents`

const sqlPruneEvents = `DELETE FROM processor_event
WHERE client_id = $1 AND (created_at, usage_id) < ($2, $3)
-- sqlPruneEvents`

// forgetEvents deletes the billing events of rows, none of which is sent any
// more, and keeps what they leave to the carry of their sub-account, so that
// the rest can still be compared to the last part of a micro-USD.
func forgetEvents(ctx context.Context, tx *sql.Tx, p *pruned) error {
	rests := make(map[string]int64)
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		var sub string
		var markup modelgate.Markup
		var cost modelgate.Nano
		var value modelgate.Micro
		err := s.Scan(&sub, &markup, &cost, &value)
		exact := cost.Exact(markup)
		rests[sub] += exact.Sub(exact, value.Exact()).Int64()
		return struct{}{}, err
	}, sqlPrunedEvents, string(p.client), p.at, p.id)
	if err != nil || len(rests) == 0 {
		return err
	}
	for sub, rest := range rests {
		if _, err := tx.ExecContext(ctx, sqlNotePrunedEvents, string(p.client), sub, rest); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, sqlPruneEvents, string(p.client), p.at, p.id)
	return err
}
