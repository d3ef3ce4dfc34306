package store

import (
	"context"

	"modelgate/internal/store/sqldb"
)

const sqlControlVersion = `SELECT version
FROM control
WHERE id = 1
-- sqlControlVersion`

// ControlVersion is a number that grows whenever a cached Caller may have
// become wrong: a key was revoked, a sub-account suspended, or limits,
// markups, ceilings or clients changed. Reading it is cheap enough to be done
// every second.
func (db *DB) ControlVersion(ctx context.Context) (int64, error) {
	var v int64
	err := db.read.QueryRowContext(ctx, sqlControlVersion).Scan(&v)
	return v, sqldb.Wrap("read control version", err)
}
