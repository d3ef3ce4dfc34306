package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Position is a place in an instance's spool: a segment's number and an
// offset in it. Both only grow.
type Position struct {
	Segment, Offset int64
}

// Batch is what a shipper books at once.
type Batch struct {
	// Instance owns the spool that the rows come from. Not empty.
	Instance string
	Rows     []modelgate.UsageRow
	// Progress is up to where the spool is booked once this batch is.
	Progress Position
}

// ErrBehind says that a batch lies before what its instance has booked
// already; nothing of it was booked.
var ErrBehind = errors.New("the spool position lies before the recorded progress")

// sqlSaveProgress changes nothing when the new position lies before the old.
const sqlSaveProgress = `INSERT INTO spool_progress (instance, segment, byte_offset, updated_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (instance) DO UPDATE
SET segment = excluded.segment, byte_offset = excluded.byte_offset, updated_at = excluded.updated_at
WHERE (spool_progress.segment, spool_progress.byte_offset) <= (excluded.segment, excluded.byte_offset)
-- sqlSaveProgress`

const sqlSpoolProgress = `SELECT segment, byte_offset
FROM spool_progress
WHERE instance = $1
-- sqlSpoolProgress`

// Record books a batch in one transaction: the usage rows that are not there
// yet, their cost in the spend counters, the jobs they made, and the progress of the spool. It
// returns how many rows were new. A batch may be sent again, whole or in
// parts, without counting twice; one that lies before the recorded progress
// is refused with ErrBehind, so that a segment brought back from a backup
// cannot book rows again that were pruned since.
//
// Of a failed batch nothing is booked. Poisoned says that a row of it is to
// blame, Unreachable that the same batch can be sent again later.
func (db *DB) Record(ctx context.Context, b Batch) (inserted int, err error) {
	if b.Instance == "" {
		return 0, errors.New("record usage: the batch names no instance")
	}
	if db.feed == nil {
		return db.recordBy(ctx, b, db.insertUsage)
	}
	if inserted, err = db.recordBy(ctx, b, db.feed.insert); errors.Is(err, errKnown) {
		return db.recordBy(ctx, b, db.insertUsageSingly)
	}
	return inserted, err
}

// usageInsertion inserts the rows that are not there yet and calls inserted for
// each of them.
type usageInsertion func(ctx context.Context, tx *sql.Tx, rows []modelgate.UsageRow, inserted func(*modelgate.UsageRow)) error

// usageInsert inserts rows and returns the ids of those that were new.
func usageInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO usage_row ("+usageColumns+")\nVALUES ", rows, usageColumnCount, 1) +
		"\nON CONFLICT (client_id, created_at, id) DO NOTHING\nRETURNING id\n-- usageInsert"
}

func (db *DB) recordBy(ctx context.Context, b Batch, insert usageInsertion) (inserted int, err error) {
	err = db.update(ctx, "record usage", func(tx *sql.Tx) error {
		inserted = 0
		// First, because it keeps two shippers of one spool apart.
		if err := db.saveProgress(ctx, tx, b); err != nil {
			return err
		}
		news := booked{instance: b.Instance}
		err := insert(ctx, tx, b.Rows, func(r *modelgate.UsageRow) {
			news.rows = append(news.rows, r)
		})
		if err != nil {
			return err
		}
		inserted = len(news.rows)
		if err := db.insertJobs(ctx, tx, &news); err != nil {
			return err
		}
		return db.book(ctx, tx, &news)
	})
	if err != nil {
		return 0, err
	}
	return inserted, nil
}

func (db *DB) saveProgress(ctx context.Context, tx *sql.Tx, b Batch) error {
	r, err := tx.ExecContext(ctx, sqlSaveProgress, b.Instance, b.Progress.Segment, b.Progress.Offset, sqldb.Micros(db.now()))
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		return fmt.Errorf("instance %s, segment %d, offset %d: %w", b.Instance, b.Progress.Segment, b.Progress.Offset, ErrBehind)
	}
	return err
}

// SpoolProgress is up to where an instance's spool is booked, false when
// nothing of it ever was.
func (db *DB) SpoolProgress(ctx context.Context, instance string) (Position, bool, error) {
	var p Position
	err := db.read.QueryRowContext(ctx, sqlSpoolProgress, instance).Scan(&p.Segment, &p.Offset)
	if errors.Is(err, sql.ErrNoRows) {
		return Position{}, false, nil
	}
	return p, err == nil, sqldb.Wrap("read spool progress", err)
}
