package store

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// A span is read forwards, page by page: $3 and $4 are the last row of the page
// before.
const (
	sqlUsageSpan = `SELECT ` + usageColumns + `
FROM usage_row
WHERE client_id = $1
  AND created_at < $2
  AND (created_at, id) > ($3, $4)
ORDER BY created_at, id
LIMIT $5
-- sqlUsageSpan`

	sqlUsageSpanOfSubAccount = `SELECT ` + usageColumns + `
FROM usage_row
WHERE sub_account_id = $6
  AND sub_account_id <> ''
  AND (client_id = $1) IS TRUE
  AND created_at < $2
  AND (created_at, id) > ($3, $4)
ORDER BY created_at, id
LIMIT $5
-- sqlUsageSpanOfSubAccount`

	sqlTagValues = `SELECT DISTINCT attribution ->> CAST($4 AS TEXT)
FROM usage_row
WHERE client_id = $1 AND created_at >= $2 AND created_at < $3
  AND ($5 = '' OR sub_account_id = $5)
LIMIT $6
-- sqlTagValues`
)

// spanPage is how many rows of a span are in memory at a time.
const spanPage = 5000

// UsageSpan visits the rows of calls that were admitted in [from, to), the oldest
// first, those of one sub-account or, for "", all. It passes on the error of visit.
func (db *DB) UsageSpan(ctx context.Context, client modelgate.ClientID, sub modelgate.SubAccountID, from, to time.Time, visit func(*modelgate.UsageRow) error) error {
	query, args := sqlUsageSpan, []any{string(client), sqldb.Micros(to), sqldb.Micros(from), "", spanPage}
	if sub != "" {
		query, args = sqlUsageSpanOfSubAccount, append(args, string(sub))
	}
	for {
		rows, err := sqldb.List(ctx, db.read, scanUsage, query, args...)
		if err != nil {
			return sqldb.Wrap("read a span of usage", err)
		}
		for i := range rows {
			if err := visit(&rows[i]); err != nil {
				return err
			}
		}
		if len(rows) < spanPage {
			return nil
		}
		last := &rows[len(rows)-1]
		args[2], args[3] = sqldb.Micros(last.At), last.ID.String()
	}
}

// TagValues is how many values an attribution key has in [from, to), at most most.
func (db *DB) TagValues(ctx context.Context, client modelgate.ClientID, sub modelgate.SubAccountID, from, to time.Time, key string, most int) (int, error) {
	values, err := sqldb.List(ctx, db.read, scanTagValue, sqlTagValues, string(client), sqldb.Micros(from), sqldb.Micros(to), key, string(sub), most)
	return len(values), sqldb.Wrap("count the values of a tag", err)
}

func scanTagValue(s sqldb.Scanner) (value sql.NullString, err error) {
	err = s.Scan(&value)
	return value, err
}

// UsageBounds are the instants between which a client's rows stand: those before
// the first are pruned, and those before the second can no longer change.
func (db *DB) UsageBounds(ctx context.Context, client modelgate.ClientID) (pruned, final time.Time, err error) {
	err = db.snapshot(ctx, "read the bounds of usage", func(tx *sql.Tx) error {
		head, err := readHead(ctx, tx, client)
		if err != nil {
			return err
		}
		pruned = sqldb.Instant(head.prunedBefore)
		return tx.QueryRowContext(ctx, sqlOldestPending, string(client), sqldb.Micros(db.now())).Scan(sqldb.Moment{Into: &final})
	})
	return pruned, final, err
}
