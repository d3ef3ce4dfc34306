package spend

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlClientsWithRules lists all clients where there are or were limits of the
// configuration file, which count the calls of all.
const sqlClientsWithRules = `SELECT h.client_id
FROM rule_head h
WHERE EXISTS (SELECT 1 FROM rule r WHERE r.client_id = h.client_id) OR EXISTS (SELECT 1 FROM rule_head f WHERE f.client_id = '*')
ORDER BY h.client_id
-- sqlClientsWithRules`

// sqlForgetCounters deletes at most $6 counters of a client's rules, of windows
// that began before $2 (hours), $3 (days), $4 (weeks) or $5 (months). What
// instances or jobs hold of one keeps it; held is judged again under the lock.
const sqlForgetCounters = `DELETE FROM spend
WHERE held = 0
  AND (client_id, scope, scope_id, period, period_start) IN (
    SELECT s.client_id, s.scope, s.scope_id, s.period, s.period_start
    FROM spend s
    WHERE s.client_id = $1 AND s.scope = 'rule' AND s.held = 0
      AND (s.period = 'hour' AND s.period_start < $2 OR s.period = 'day' AND s.period_start < $3
        OR s.period = 'week' AND s.period_start < $4 OR s.period = 'month' AND s.period_start < $5)
      AND NOT EXISTS (
        SELECT 1
        FROM slice l
        WHERE l.client_id = s.client_id AND l.scope = s.scope AND l.scope_id = s.scope_id AND l.period = s.period
          AND l.period_start = s.period_start)
    LIMIT $6)
-- sqlForgetCounters`

// ClientsWithRules lists the clients whose budgets or limits have counters of their
// own, modelgate.FileClient among them.
func (s *Store) ClientsWithRules(ctx context.Context) ([]modelgate.ClientID, error) {
	return sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (id modelgate.ClientID, err error) {
		return id, row.Scan(&id)
	}, sqlClientsWithRules)
}

// ForgetCounters deletes at most most counters of a client's rules whose windows
// ended before an instant, and returns how many it deleted. Plain budgets keep
// theirs, which first counts sum up, and so do windows without an end.
func (s *Store) ForgetCounters(ctx context.Context, client modelgate.ClientID, before time.Time, most int) (n int64, err error) {
	args := []any{string(client)}
	for _, p := range []modelgate.Period{modelgate.Hour, modelgate.Day, modelgate.Week, modelgate.Month} {
		args = append(args, p.StartMicros(before))
	}
	err = s.db.Update(ctx, "forget counters", func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, sqlForgetCounters, append(args, most)...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, err
}
