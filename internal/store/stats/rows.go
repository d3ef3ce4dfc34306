package stats

import (
	"context"
	"database/sql"

	"github.com/tidwall/gjson"

	"modelgate"
)

const sqlCountedRows = `SELECT sub_account_id, created_at, provider, model, slug, author, region, attribution, total_tokens, cost
FROM usage_row
WHERE client_id = $1 AND created_at >= $2 AND created_at < $3
-- sqlCountedRows`

// EachCall calls fn with each row of a time; the call is its to keep.
func EachCall(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, g Gap, fn func(*Call)) error {
	rows, err := tx.QueryContext(ctx, sqlCountedRows, string(client), g.From, g.To)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c := Call{Client: client, Sums: Sums{Requests: 1}, Attribution: map[string]string{}}
		var attribution sql.RawBytes
		err := rows.Scan(&c.SubAccount, &c.At, &c.Provider, &c.Model, &c.Slug, &c.Author, &c.Region, &attribution,
			&c.Sums.Tokens, &c.Sums.Cost)
		if err != nil {
			return err
		}
		gjson.ParseBytes(attribution).ForEach(func(k, v gjson.Result) bool {
			c.Attribution[k.String()] = v.String()
			return true
		})
		if c.Slug == "" {
			c.Author = ""
		}
		fn(&c)
	}
	return rows.Err()
}
