package spend

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlSpendSince reads at most a day's counter each by the primary key.
const sqlSpendSince = `SELECT COALESCE(SUM(settled), 0)
FROM spend
WHERE client_id = $1 AND scope = 'client' AND scope_id = $1 AND period = 'day' AND period_start >= $2
-- sqlSpendSince`

// SpendSince is what an organization's calls have cost since the beginning of a
// day (UTC).
func (s *Store) SpendSince(ctx context.Context, client modelgate.ClientID, day time.Time) (spent modelgate.Nano, err error) {
	err = s.db.Read.QueryRowContext(ctx, sqlSpendSince, string(client), sqldb.Micros(day)).Scan(&spent)
	return spent, sqldb.Wrap("sum the spend of days", err)
}
