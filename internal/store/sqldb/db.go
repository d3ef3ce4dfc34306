package sqldb

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strconv"
	"time"

	"modelgate"
)

// MaxRows is how many rows one statement of many rows has at most.
const MaxRows = 64

// DB is an open database as the store and the packages below it use it. Its
// fields do not change once it is in use. Safe for concurrent use.
type DB struct {
	Write *sql.DB
	Read  *sql.DB // the same as Write on PostgreSQL
	Now   func() time.Time
	// RowsPerInsert is how many rows a statement of many rows has at best: a
	// power of two, 1 on SQLite, which has no round trips to save.
	RowsPerInsert int
	// SnapshotOptions give several queries one view of the database.
	SnapshotOptions *sql.TxOptions
	// Begun is run first in every transaction, with the idle bound in
	// milliseconds as its argument; "" for nothing.
	Begun     string
	IdleBound time.Duration
	// ForLock ends a SELECT that locks the rows it reads until its transaction
	// ends; "" on SQLite, which has one writer.
	ForLock string
	// Feed runs a BatchExec that has a Fed statement; nil on PostgreSQL.
	Feed func(context.Context, *sql.Tx, *BatchExec) error
	// Long bounds the readings that InTurn does at once.
	Long *Semaphore
}

// maxAttempts bounds how often a transaction that lost against another is
// run again.
const maxAttempts = 8

// Update runs fn in a transaction that may write. fn may be run several
// times, because engines break deadlocks and write conflicts by refusing one
// side; it must not keep anything of a failed run.
func (d *DB) Update(ctx context.Context, op string, fn func(*sql.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := d.UpdateOnce(ctx, fn)
		if err == nil {
			return nil
		}
		if attempt == maxAttempts || !LostRace(err) || !pause(ctx, attempt) {
			return Wrap(op, err)
		}
	}
}

// UpdateOnce is Update without a second attempt; it returns the error as it is.
func (d *DB) UpdateOnce(ctx context.Context, fn func(*sql.Tx) error) error {
	return d.run(ctx, d.Write, nil, fn)
}

// Snapshot runs fn in a transaction that reads and sees one instant of the
// database throughout.
func (d *DB) Snapshot(ctx context.Context, op string, fn func(*sql.Tx) error) error {
	return Wrap(op, d.run(ctx, d.Read, d.SnapshotOptions, fn))
}

// SnapshotInTurn is Snapshot for what may read much on behalf of a client.
func (d *DB) SnapshotInTurn(ctx context.Context, op string, client modelgate.ClientID, fn func(*sql.Tx) error) error {
	return Wrap(op, d.Long.Run(ctx, client, func() error { return d.run(ctx, d.Read, d.SnapshotOptions, fn) }))
}

func (d *DB) run(ctx context.Context, pool *sql.DB, opts *sql.TxOptions, fn func(*sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if d.Begun != "" {
		if _, err := tx.ExecContext(ctx, d.Begun, strconv.FormatInt(d.IdleBound.Milliseconds(), 10)); err != nil {
			return err
		}
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Batch runs a statement for many tuples, in their order: with as many at once
// as the engine likes.
func (d *DB) Batch(ctx context.Context, tx *sql.Tx, m BatchExec) error {
	if m.Fed != "" && d.Feed != nil && m.N > 0 {
		return d.Feed(ctx, tx, &m)
	}
	return m.Run(ctx, tx, d.RowsPerInsert)
}

// pause waits some milliseconds, more with each attempt, and reports whether
// it is worth going on.
func pause(ctx context.Context, attempt int) bool {
	t := time.NewTimer(time.Duration(1+rand.IntN(5*attempt)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
