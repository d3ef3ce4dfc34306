package store

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
)

// mostBuckets and mostSpanBuckets bound what an answer takes in memory: a
// caller can make up as many values of an attribution key as there are calls.
const (
	mostBuckets     = 250_000
	mostSpanBuckets = 1_000_000 // of all spans together
)

// Stats sums the calls since an instant by a dimension. The buckets are ordered
// by descending cost, then by key; those of days by time.
//
// Whole days and hours come from rollups. The time before the first whole hour,
// and hours and days with too many values, come from the rows. Errors:
// bad_request for a dimension with more than mostBuckets values.
func (db *DB) Stats(ctx context.Context, client modelgate.ClientID, q StatsQuery) ([]modelgate.StatsBucket, error) {
	s := stats.Statistics{Query: q, Client: client, Most: mostBuckets, Fresh: db.engine.freshPlan}
	if err := db.handle.SnapshotInTurn(ctx, "statistics", client, func(tx *sql.Tx) error { return s.Collect(ctx, tx) }); err != nil {
		return nil, err
	}
	return s.Buckets(), nil
}

// Questions and answers of statistics; see the package stats.
type (
	StatsQuery = stats.Query
	StatsSpan  = stats.Span
	// LatencyQuery and LatencyHistogram are of calls by their latency.
	LatencyQuery     = stats.LatencyQuery
	LatencyHistogram = stats.LatencyHistogram
	Weight           = stats.Weight
)

// The weights.
const (
	WeighCost     = stats.WeighCost
	WeighRequests = stats.WeighRequests
	WeighTokens   = stats.WeighTokens
)

// SpanQuery selects statistics over time. GroupBy is any but the day.
type SpanQuery struct {
	StatsQuery               // Since lies in the first span, which is whole
	Step       time.Duration // of a span: whole hours, or whole days
	Most       int           // buckets at most, the same in all spans
	Weight     Weight        // "" is WeighCost
}

// StatsSpans sums calls by a dimension in each span since an instant, the oldest
// first. A span without calls is left out. There are buckets for the heaviest
// keys of the whole time only, the heaviest first; a span without calls of a key
// has none for it. Errors: bad_request for a dimension with more than
// mostSpanBuckets values in all spans.
func (db *DB) StatsSpans(ctx context.Context, client modelgate.ClientID, q SpanQuery) ([]StatsSpan, error) {
	s := stats.Statistics{Query: q.StatsQuery, Client: client, Step: q.Step.Microseconds(), Most: mostSpanBuckets, Fresh: db.engine.freshPlan}
	since := sqldb.Micros(q.Since)
	s.Query.Since = time.UnixMicro(since - since%s.Step)
	err := db.handle.SnapshotInTurn(ctx, "statistics over time", client, func(tx *sql.Tx) error { return s.Collect(ctx, tx) })
	if err != nil {
		return nil, err
	}
	return s.Spans(q.Weight, q.Most), nil
}

// LatencyHistograms is stats.LatencyHistograms.
func (db *DB) LatencyHistograms(ctx context.Context, client modelgate.ClientID, q LatencyQuery) ([]LatencyHistogram, error) {
	return stats.LatencyHistograms(ctx, &db.handle, client, q)
}
