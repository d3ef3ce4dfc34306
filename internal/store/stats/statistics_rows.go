package stats

import (
	"context"
	"database/sql"

	"github.com/tidwall/gjson"

	"modelgate"
)

// The queries of rows walk the same indexes as those of GET /gw/usage.
const (
	sqlStatsRows = `SELECT created_at, provider, model, slug, author, region, attribution, total_tokens, cost
FROM usage_row
WHERE client_id = $1 AND created_at >= $2 AND created_at < $3
-- sqlStatsRows`

	sqlStatsRowsOfSubAccount = `SELECT created_at, provider, model, slug, author, region, attribution, total_tokens, cost
FROM usage_row
WHERE sub_account_id = $4
  AND sub_account_id <> ''
  AND (client_id = $1) IS TRUE
  AND created_at >= $2 AND created_at < $3
-- sqlStatsRowsOfSubAccount`
)

// rows adds the rows of a time.
func (s *Statistics) rows(ctx context.Context, tx *sql.Tx, g Gap) error {
	query, args := sqlStatsRows, []any{string(s.client), g.From, g.To}
	if s.query.SubAccountID != "" {
		query, args = sqlStatsRowsOfSubAccount, append(args, string(s.query.SubAccountID))
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r statsRow
		err := rows.Scan(&r.at, &r.provider, &r.model, &r.slug, &r.author, &r.region, &r.attribution, &r.tokens, &r.cost)
		if err != nil {
			return err
		}
		if s.query.SubAccountID != "" {
			r.region = nil
			if len(r.slug) > 0 {
				r.provider, r.model = r.author, r.slug
			}
		}
		if s.query.Provider == "" || string(r.provider) == s.query.Provider {
			s.bucket(s.at(r.at), r.key(s.query.GroupBy)).add(Sums{1, r.tokens, r.cost})
		}
		if err := s.room(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// statsRow is what statistics need of a row. Its texts last until the next.
type statsRow struct {
	at, tokens, cost                      int64
	provider, model, slug, author, region sql.RawBytes
	attribution                           sql.RawBytes
}

// key is the row's bucket.
func (r *statsRow) key(g modelgate.GroupBy) []byte {
	var text []byte
	switch g {
	case modelgate.ByDay:
		return []byte(dayOf(r.at))
	case modelgate.ByProvider:
		return r.provider
	case modelgate.ByModel:
		return r.model
	case modelgate.ByModelSlug:
		text = r.slug
	case modelgate.ByAuthor:
		if len(r.slug) > 0 {
			text = r.author
		}
	case modelgate.ByRegion:
		text = r.region
	default:
		gjson.ParseBytes(r.attribution).ForEach(func(key, value gjson.Result) bool {
			if key.Str != string(g) {
				return true
			}
			text = []byte(value.Str)
			return false
		})
	}
	if len(text) == 0 {
		return []byte(emptyBucket(g))
	}
	return text
}
