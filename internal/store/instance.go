package store

import (
	"context"
	"time"

	"modelgate/internal/store/sqldb"
)

// instanceLife is how long an instance is remembered that says nothing more.
const instanceLife = 24 * time.Hour

const (
	sqlPutInstance = `INSERT INTO instance (id, seen_at, about)
VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE
SET seen_at = excluded.seen_at, about = excluded.about
-- sqlPutInstance`

	sqlForgetInstances = `DELETE FROM instance
WHERE id = $1 OR seen_at < $2
-- sqlForgetInstances`

	sqlInstances = `SELECT id, seen_at, about
FROM instance
ORDER BY id
-- sqlInstances`
)

// Instance is what an instance has last said of itself.
type Instance struct {
	ID     string
	SeenAt time.Time // by its own clock
	About  []byte    // JSON
}

// PutInstance keeps what an instance says of itself.
func (db *DB) PutInstance(ctx context.Context, i Instance) error {
	_, err := db.write.ExecContext(ctx, sqlPutInstance, i.ID, sqldb.Micros(i.SeenAt), string(i.About))
	return sqldb.Wrap("keep an instance", err)
}

// ForgetInstance forgets an instance that ends, and all that have been silent for a
// day.
func (db *DB) ForgetInstance(ctx context.Context, id string) error {
	_, err := db.write.ExecContext(ctx, sqlForgetInstances, id, sqldb.Micros(db.now().Add(-instanceLife)))
	return sqldb.Wrap("forget an instance", err)
}

// Instances are those that are remembered.
func (db *DB) Instances(ctx context.Context) ([]Instance, error) {
	out, err := sqldb.List(ctx, db.read, func(s sqldb.Scanner) (i Instance, err error) {
		err = s.Scan(&i.ID, sqldb.Moment{Into: &i.SeenAt}, &i.About)
		return i, err
	}, sqlInstances)
	return out, sqldb.Wrap("list instances", err)
}

// Engine is the name of the database's engine: sqlite or postgres.
func (db *DB) Engine() string { return db.engine.folder }
