package stats

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlLatencySurplus sums what latency_histogram has and the rows lack, by hour; only hours
// in which anything differs are returned.
const sqlLatencySurplus = `SELECT scope, scope_id, hour, CAST(SUM(requests) AS BIGINT), CAST(SUM(errors) AS BIGINT),
  CAST(SUM(total_tokens) AS BIGINT), CAST(SUM(cost) AS BIGINT), CAST(SUM(latency_ms) AS BIGINT)
FROM (
  SELECT scope, scope_id, hour, requests, errors, total_tokens, cost, latency_ms
  FROM latency_histogram
  WHERE client_id = $1 AND hour >= $2
  UNION ALL
  SELECT 'client', client_id, created_at - created_at % 3600000000, -1,
    CASE WHEN status_code >= 400 THEN -1 ELSE 0 END, -total_tokens, -cost, -latency_ms
  FROM usage_row
  WHERE client_id = $1 AND created_at >= $2
  UNION ALL
  SELECT 'sub_account', sub_account_id, created_at - created_at % 3600000000, -1,
    CASE WHEN status_code >= 400 THEN -1 ELSE 0 END, -total_tokens, -cost, -latency_ms
  FROM usage_row
  WHERE client_id = $1 AND created_at >= $2 AND sub_account_id <> ''
) AS counted
GROUP BY scope, scope_id, hour
HAVING SUM(requests) <> 0 OR SUM(errors) <> 0 OR SUM(total_tokens) <> 0 OR SUM(cost) <> 0 OR SUM(latency_ms) <> 0
ORDER BY scope, scope_id, hour
-- sqlLatencySurplus`

// CheckLatencies finds the counts that are not the sums of their rows, from an
// instant on.
func CheckLatencies(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, from int64) ([]sqldb.Difference, error) {
	var out []sqldb.Difference
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		var scope, id string
		var hour time.Time
		surplus := [5]int64{}
		err := s.Scan(&scope, &id, sqldb.Moment{Into: &hour}, &surplus[0], &surplus[1], &surplus[2], &surplus[3], &surplus[4])
		for i, name := range [5]string{"requests", "errors", "total_tokens", "cost", "latency_ms"} {
			if surplus[i] == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%s/%s", scope, id, hour.Format("2006-01-02T15"), name)
			out = append(out, sqldb.Difference{ClientID: client, What: "latency_histogram", Key: key, Have: surplus[i]})
		}
		return struct{}{}, err
	}, sqlLatencySurplus, string(client), from)
	return out, err
}
