package stats

import (
	"context"
	"database/sql"

	"github.com/tidwall/gjson"

	"modelgate"
)

// The queries walk the same indexes as those of GET /gw/usage.
const (
	callColumns = `sub_account_id, created_at, provider, model, slug, author, region, attribution, total_tokens, cost`

	sqlCalls = `SELECT ` + callColumns + `
FROM usage_row
WHERE client_id = $1 AND created_at >= $2 AND created_at < $3
-- sqlCalls`

	sqlCallsOfSubAccount = `SELECT ` + callColumns + `
FROM usage_row
WHERE sub_account_id = $4
  AND sub_account_id <> ''
  AND (client_id = $1) IS TRUE
  AND created_at >= $2 AND created_at < $3
-- sqlCallsOfSubAccount`
)

// EachCall calls fn with each row of a client, or of one of its sub-accounts,
// in a time. The call is valid until fn returns.
func EachCall(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, sub modelgate.SubAccountID, g Gap, fn func(*Call) error) error {
	query, args := sqlCalls, []any{string(client), g.From, g.To}
	if sub != "" {
		query, args = sqlCallsOfSubAccount, append(args, string(sub))
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	pairs := make(map[string]string)
	for rows.Next() {
		clear(pairs)
		c := Call{Client: client, Sums: Sums{Requests: 1}, Attribution: pairs}
		var attribution sql.RawBytes
		err := rows.Scan(&c.SubAccount, &c.At, &c.Provider, &c.Model, &c.Slug, &c.Author, &c.Region, &attribution,
			&c.Sums.Tokens, &c.Sums.Cost)
		if err != nil {
			return err
		}
		gjson.ParseBytes(attribution).ForEach(func(k, v gjson.Result) bool {
			pairs[k.String()] = v.String()
			return true
		})
		if c.Slug == "" {
			c.Author = ""
		}
		if err := fn(&c); err != nil {
			return err
		}
	}
	return rows.Err()
}
