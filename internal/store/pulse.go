package store

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

const pulseColumns = `client_id, scope, scope_id, hour, latency_class, requests, errors, total_tokens, cost, latency_ms`

const pulseColumnCount = 10

// sqlPulse walks the primary key. Steps are whole hours in µs.
const sqlPulse = `SELECT hour - hour % $5 AS at, latency_class, CAST(SUM(requests) AS BIGINT), CAST(SUM(errors) AS BIGINT),
  CAST(SUM(total_tokens) AS BIGINT), CAST(SUM(cost) AS BIGINT), CAST(SUM(latency_ms) AS BIGINT)
FROM pulse
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND hour >= $4
GROUP BY hour - hour % $5, latency_class
ORDER BY 1, 2
-- sqlPulse`

// pulseKey names a row of pulse.
type pulseKey struct {
	client modelgate.ClientID
	level  modelgate.Level
	id     string
	hour   int64 // µs
	class  int
}

func (k pulseKey) compare(o pulseKey) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.level, o.level), cmp.Compare(k.id, o.id),
		cmp.Compare(k.hour, o.hour), cmp.Compare(k.class, o.class))
}

// latencyHistogram are what is to be added to pulse.
type latencyHistogram map[pulseKey]Tally

// Tally counts calls.
type Tally struct {
	Requests, Errors, TotalTokens int64
	Cost                          modelgate.Nano
	LatencyMS                     int64 // of all together
}

func (t Tally) plus(o Tally) Tally {
	return Tally{t.Requests + o.Requests, t.Errors + o.Errors, t.TotalTokens + o.TotalTokens, t.Cost.Add(o.Cost), t.LatencyMS + o.LatencyMS}
}

// add counts a row.
func (b latencyHistogram) add(r *modelgate.UsageRow) {
	one := Tally{Requests: 1, TotalTokens: r.Usage.TotalTokens(), Cost: r.Cost, LatencyMS: r.LatencyMS}
	if r.StatusCode >= 400 {
		one.Errors = 1
	}
	b.plus(r, one)
}

// correct adds what a job's end changes; how the call that made it was
// answered, and how fast, stays.
func (b latencyHistogram) correct(f *final) {
	b.plus(f.row, Tally{TotalTokens: f.tokens, Cost: f.change})
}

// plus adds to the counts of a row's organization and sub-account.
func (b latencyHistogram) plus(r *modelgate.UsageRow, t Tally) {
	k := pulseKey{r.ClientID, modelgate.LevelClient, string(r.ClientID), hourOf(sqldb.Micros(r.At)), modelgate.LatencyClass(r.LatencyMS)}
	b[k] = b[k].plus(t)
	if r.SubAccountID != "" {
		k.level, k.id = modelgate.LevelSubAccount, string(r.SubAccountID)
		b[k] = b[k].plus(t)
	}
}

// hourOf is the beginning of the hour of an instant, both in µs.
func hourOf(us int64) int64 { return us - us%time.Hour.Microseconds() }

// beat adds to the rows of pulse, in one order for all instances.
func (db *DB) beat(ctx context.Context, tx *sql.Tx, b latencyHistogram) error {
	keys := slices.SortedFunc(maps.Keys(b), pulseKey.compare)
	err := db.runMany(ctx, tx, sqldb.BatchExec{Text: pulseInsert, Fed: sqlSQLitePulse, N: len(keys), Args: func(dst []any, i int) []any {
		k := keys[i]
		t := b[k]
		return append(dst, sqldb.Clean(string(k.client)), string(k.level), sqldb.Clean(k.id), k.hour, int64(k.class),
			t.Requests, t.Errors, t.TotalTokens, int64(t.Cost), t.LatencyMS)
	}})
	if err != nil {
		return fmt.Errorf("count calls: %w", err)
	}
	return nil
}

// Pulse is how the calls of one span of time fared.
type Pulse struct {
	At time.Time // where the span begins
	Tally
	Classes map[int]int64 // calls by modelgate.LatencyClass
}

// PulseQuery selects pulses.
type PulseQuery struct {
	SubAccountID modelgate.SubAccountID // "" for all of the organization
	Since        time.Time              // in the first span
	Step         time.Duration          // of a span: whole hours
}

// Pulses lists how the calls since an instant fared, span by span; a span
// without calls is left out.
func (db *DB) Pulses(ctx context.Context, client modelgate.ClientID, q PulseQuery) ([]Pulse, error) {
	level, id := modelgate.LevelClient, string(client)
	if q.SubAccountID != "" {
		level, id = modelgate.LevelSubAccount, string(q.SubAccountID)
	}
	step := q.Step.Microseconds()
	since := sqldb.Micros(q.Since)
	var out []Pulse
	_, err := sqldb.List(ctx, db.read, func(s sqldb.Scanner) (struct{}, error) {
		var at, class int64
		var t Tally
		if err := s.Scan(&at, &class, &t.Requests, &t.Errors, &t.TotalTokens, &t.Cost, &t.LatencyMS); err != nil {
			return struct{}{}, err
		}
		if n := len(out); n == 0 || out[n-1].At.UnixMicro() != at {
			out = append(out, Pulse{At: time.UnixMicro(at).UTC(), Classes: make(map[int]int64)})
		}
		p := &out[len(out)-1]
		p.Tally = p.plus(t)
		p.Classes[int(class)] += t.Requests
		return struct{}{}, nil
	}, sqlPulse, string(client), string(level), id, since-since%step, step)
	return out, wrap("read pulses", err)
}
