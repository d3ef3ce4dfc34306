package store

import (
	"context"
	"database/sql"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/callview"
	"modelgate/internal/report"
	"modelgate/internal/store/sqldb"
)

// EachCall calls fn with each call that a filter selects, in no order. The call
// is valid until fn returns. Errors: ErrTooManyCalls where the window has more
// than MostRead rows, whether they match or not.
func (db *DB) EachCall(ctx context.Context, f CallFilter, fn func(*report.Call)) error {
	return db.handle.SnapshotInTurn(ctx, "read calls", f.Client, func(tx *sql.Tx) error {
		switch n, err := countCalls(ctx, tx, f, f.MostRead()+1); {
		case err != nil:
			return err
		case n > f.MostRead():
			return ErrTooManyCalls
		}
		from, until := f.window()
		var b callQuery
		b.write("SELECT created_at, client_id, sub_account_id, key_id, provider, model, slug, author, kind, region, door, parse_status,\n" +
			"  status_code, via_sdk, attribution, quantities, total_tokens, cost, latency_ms, first_byte_ms,\n" +
			"  CASE sub_account_id WHEN '' THEN 0 ELSE " + collected + " END\nFROM usage_row\nWHERE ")
		b.owner(&f)
		b.write("\n  AND created_at >= ", b.arg(from), " AND created_at < ", b.arg(until))
		b.filter(&f)
		b.write("\n-- calls of a report")
		return sqldb.Each(ctx, tx, func(s sqldb.Scanner) error {
			c, err := scanReportCall(s, f.SubAccountID != "")
			if err == nil {
				fn(&c)
			}
			return err
		}, b.text.String(), b.args...)
	})
}

// collected is what a sub-account's wallet has paid for a call, or what is billed to
// its customer, in nano-USD.
const collected = `wallet_debit + 1000 * COALESCE((
    SELECT e.value
    FROM processor_event e
    WHERE e.client_id = usage_row.client_id AND e.created_at = usage_row.created_at AND e.usage_id = usage_row.id AND e.status <> 'failed'), 0)`

// scanReportCall reads a call as its caller is shown it.
func scanReportCall(s sqldb.Scanner, customer bool) (report.Call, error) {
	var c report.Call
	var pairs sql.RawBytes
	var usage modelgate.Usage
	err := s.Scan(sqldb.Moment{Into: &c.At}, &c.Client, &c.SubAccount, &c.Key, &c.Provider, &c.Model, &c.Slug, &c.Author, &c.Kind, &c.Region, &c.Door,
		&c.ParseStatus, &c.Status, &c.ViaSDK, &pairs, sqldb.Document{Into: &usage}, &c.TotalTokens, &c.Cost, &c.LatencyMS, &c.FirstByteMS, &c.Collected)
	c.Tokens = usage.TokenKinds()
	if customer {
		c.Door = callview.CustomersDoor(c.Door, c.Provider)
	}
	if c.Slug == "" {
		c.Author = "" // only catalogued routes have one
	} else if customer {
		c.Provider = c.Author
	}
	c.Attribution = func(key string) (value string) {
		gjson.ParseBytes(pairs).ForEach(func(k, v gjson.Result) bool {
			if k.String() == key {
				value = v.String()
			}
			return true
		})
		return value
	}
	return c, err
}
