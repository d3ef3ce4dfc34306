package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Weight is what makes one bucket larger than another.
type Weight string

// The weights.
const (
	WeighCost     Weight = "spend"
	WeighRequests Weight = "requests"
	WeighTokens   Weight = "tokens"
)

// of is the weight of a bucket.
func (w Weight) of(s *sums) int64 {
	switch w {
	case WeighRequests:
		return s.requests
	case WeighTokens:
		return s.tokens
	}
	return s.cost
}

// SpanQuery selects statistics over time. GroupBy is any but the day.
type SpanQuery struct {
	StatsQuery               // Since lies in the first span, which is whole
	Step       time.Duration // of a span: whole hours, or whole days
	Most       int           // buckets at most, the same in all spans
	Weight     Weight        // "" is WeighCost
}

// StatsSpan is what the calls of one span of time come to.
type StatsSpan struct {
	At      time.Time // where it begins
	Buckets []modelgate.StatsBucket
}

// StatsSpans sums calls by a dimension in each span since an instant, the
// oldest first; a span without calls is left out. There are buckets for the
// keys only that weigh most in the whole time, the heaviest first; of those
// without calls in a span it has none. Errors: bad_request for a dimension with
// more than mostSpanBuckets values in all spans.
func (db *DB) StatsSpans(ctx context.Context, client modelgate.ClientID, q SpanQuery) ([]StatsSpan, error) {
	step := q.Step.Microseconds()
	since := sqldb.Micros(q.Since)
	q.Since = time.UnixMicro(since - since%step)
	s := db.newStatistics(client, q.StatsQuery)
	s.step, s.most = step, mostSpanBuckets
	err := db.inTurn(ctx, "statistics over time", client, func(tx *sql.Tx) error { return s.collect(ctx, tx) })
	if err != nil {
		return nil, err
	}
	keys := s.heaviest(q.Weight, q.Most)
	out := make([]StatsSpan, 0, len(s.spans))
	for _, at := range slices.Sorted(maps.Keys(s.spans)) {
		span := StatsSpan{At: time.UnixMicro(at).UTC()}
		for _, key := range keys {
			if sum := s.spans[at][key]; sum != nil && *sum != (sums{}) {
				span.Buckets = append(span.Buckets, modelgate.StatsBucket{Key: key, Requests: sum.requests, TotalTokens: sum.tokens, Cost: modelgate.Nano(sum.cost)})
			}
		}
		if len(span.Buckets) > 0 {
			out = append(out, span)
		}
	}
	return out, nil
}

// heaviest are the keys that weigh most in all spans together; those that
// weigh the same go by requests, then by their order.
func (s *statistics) heaviest(w Weight, most int) []string {
	all := make(map[string]*sums)
	for _, buckets := range s.spans {
		for key, sum := range buckets {
			s.bucket(all, []byte(key)).add(*sum)
		}
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.of(all[b]), w.of(all[a])), cmp.Compare(all[b].requests, all[a].requests), cmp.Compare(a, b))
	})
	return keys[:min(most, len(keys))]
}
