package store

import (
	"context"
	"time"

	"modelgate/internal/store/sqldb"
)

// sqlProviderCalls reads the last minutes of each organization by its index.
const sqlProviderCalls = `SELECT provider, status_code, COUNT(*), MAX(created_at)
FROM usage_row
WHERE client_id IN (SELECT id FROM client) AND created_at >= $1
GROUP BY provider, status_code
-- sqlProviderCalls`

// ProviderCalls are the calls of a provider that had one status.
type ProviderCalls struct {
	Provider string
	Status   int
	Calls    int64
	Last     time.Time
}

// ProviderCalls counts the calls of all organizations since an instant.
func (db *DB) ProviderCalls(ctx context.Context, since time.Time) ([]ProviderCalls, error) {
	out, err := sqldb.List(ctx, db.read, func(s sqldb.Scanner) (c ProviderCalls, err error) {
		err = s.Scan(&c.Provider, &c.Status, &c.Calls, sqldb.Moment{Into: &c.Last})
		return c, err
	}, sqlProviderCalls, sqldb.Micros(since))
	return out, sqldb.Wrap("count calls of providers", err)
}
