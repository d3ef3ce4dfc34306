package stats

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const latencyColumns = `client_id, scope, scope_id, hour, latency_class, requests, errors, total_tokens, cost, latency_ms`

const latencyColumnCount = 10

// sqlLatencies walks the primary key. $5 is the length of a span in µs, whole
// hours.
const sqlLatencies = `SELECT hour - hour % $5 AS at, latency_class, CAST(SUM(requests) AS BIGINT), CAST(SUM(errors) AS BIGINT),
  CAST(SUM(total_tokens) AS BIGINT), CAST(SUM(cost) AS BIGINT), CAST(SUM(latency_ms) AS BIGINT)
FROM latency_histogram
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND hour >= $4
GROUP BY hour - hour % $5, latency_class
ORDER BY 1, 2
-- sqlLatencies`

// latencyInsert adds to the counts of latency_histogram, in the order of the
// rows.
func latencyInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO latency_histogram ("+latencyColumns+")\nVALUES ", rows, latencyColumnCount, 1) +
		latencyConflict + "\n-- latencyInsert"
}

const latencyConflict = `
ON CONFLICT (client_id, scope, scope_id, hour, latency_class) DO UPDATE
SET requests = latency_histogram.requests + excluded.requests, errors = latency_histogram.errors + excluded.errors,
  total_tokens = latency_histogram.total_tokens + excluded.total_tokens, cost = latency_histogram.cost + excluded.cost,
  latency_ms = latency_histogram.latency_ms + excluded.latency_ms`

// sqlSQLiteLatencies reads the tuples of a feed in place of VALUES. OR FAIL spares
// the copy of every page that it changes: who runs it takes back the transaction
// if it fails.
const sqlSQLiteLatencies = `INSERT OR FAIL INTO latency_histogram (` + latencyColumns + `)
SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10
FROM temp.feed_tuple
WHERE true` + latencyConflict + `
-- sqlSQLiteLatencies`

// latencyKey is the key of a row of latency_histogram.
type latencyKey struct {
	client modelgate.ClientID
	level  modelgate.Level
	id     string
	hour   int64 // µs
	class  int
}

func (k latencyKey) compare(o latencyKey) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.level, o.level), cmp.Compare(k.id, o.id),
		cmp.Compare(k.hour, o.hour), cmp.Compare(k.class, o.class))
}

// LatencyCounts are to be added to latency_histogram.
type LatencyCounts map[latencyKey]LatencySums

// LatencySums count calls.
type LatencySums struct {
	Requests, Errors, TotalTokens int64
	Cost                          modelgate.Nano
	LatencyMS                     int64 // the sum over the calls
}

func (t LatencySums) plus(o LatencySums) LatencySums {
	return LatencySums{t.Requests + o.Requests, t.Errors + o.Errors, t.TotalTokens + o.TotalTokens, t.Cost.Add(o.Cost), t.LatencyMS + o.LatencyMS}
}

// Add counts a new row.
func (c LatencyCounts) Add(r *modelgate.UsageRow) {
	one := LatencySums{Requests: 1, TotalTokens: r.Usage.TotalTokens(), Cost: r.Cost, LatencyMS: r.LatencyMS}
	if r.StatusCode >= 400 {
		one.Errors = 1
	}
	c.plus(r, one)
}

// AddChange adds what the end of a job changes about its row. Status and latency
// of the call that created the job stay.
func (c LatencyCounts) AddChange(r *modelgate.UsageRow, tokens int64, cost modelgate.Nano) {
	c.plus(r, LatencySums{TotalTokens: tokens, Cost: cost})
}

// plus adds to the counts of a row's organization and sub-account.
func (c LatencyCounts) plus(r *modelgate.UsageRow, t LatencySums) {
	hour := Hour.Floor(sqldb.Micros(r.At))
	k := latencyKey{r.ClientID, modelgate.LevelClient, string(r.ClientID), hour, LatencyClass(r.LatencyMS)}
	c[k] = c[k].plus(t)
	if r.SubAccountID != "" {
		k.level, k.id = modelgate.LevelSubAccount, string(r.SubAccountID)
		c[k] = c[k].plus(t)
	}
}

// Save adds the counts to latency_histogram, in the same order on all instances.
func (c LatencyCounts) Save(ctx context.Context, tx *sql.Tx, db *sqldb.DB) error {
	keys := slices.SortedFunc(maps.Keys(c), latencyKey.compare)
	err := db.Batch(ctx, tx, sqldb.BatchExec{Text: latencyInsert, Fed: sqlSQLiteLatencies, N: len(keys), Args: func(dst []any, i int) []any {
		k := keys[i]
		t := c[k]
		return append(dst, sqldb.Clean(string(k.client)), string(k.level), sqldb.Clean(k.id), k.hour, int64(k.class),
			t.Requests, t.Errors, t.TotalTokens, int64(t.Cost), t.LatencyMS)
	}})
	if err != nil {
		return fmt.Errorf("count calls: %w", err)
	}
	return nil
}

// LatencyHistogram is the calls of one span of time by latency.
type LatencyHistogram struct {
	At time.Time // where the span begins
	LatencySums
	Classes map[int]int64 // calls by LatencyClass
}

// LatencyQuery selects latency histograms.
type LatencyQuery struct {
	SubAccountID modelgate.SubAccountID // "" for all of the organization
	Since        time.Time              // an instant in the first span, which is whole
	Step         time.Duration          // of a span: whole hours
}

// LatencyHistograms lists the calls since an instant span by span, the oldest
// first. A span without calls is left out.
func LatencyHistograms(ctx context.Context, db *sqldb.DB, client modelgate.ClientID, q LatencyQuery) ([]LatencyHistogram, error) {
	level, id := modelgate.LevelClient, string(client)
	if q.SubAccountID != "" {
		level, id = modelgate.LevelSubAccount, string(q.SubAccountID)
	}
	step := q.Step.Microseconds()
	since := sqldb.Micros(q.Since)
	var out []LatencyHistogram
	_, err := sqldb.List(ctx, db.Read, func(s sqldb.Scanner) (struct{}, error) {
		var at, class int64
		var t LatencySums
		if err := s.Scan(&at, &class, &t.Requests, &t.Errors, &t.TotalTokens, &t.Cost, &t.LatencyMS); err != nil {
			return struct{}{}, err
		}
		if n := len(out); n == 0 || out[n-1].At.UnixMicro() != at {
			out = append(out, LatencyHistogram{At: time.UnixMicro(at).UTC(), Classes: make(map[int]int64)})
		}
		h := &out[len(out)-1]
		h.LatencySums = h.plus(t)
		h.Classes[int(class)] += t.Requests
		return struct{}{}, nil
	}, sqlLatencies, string(client), string(level), id, since-since%step, step)
	return out, sqldb.Wrap("read latency histograms", err)
}
