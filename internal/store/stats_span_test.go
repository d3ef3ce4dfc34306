package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
)

// summedSpans is what statistics over time have to be: plain sums of the rows
// of each span, of the keys whose sum over all of them is largest.
func summedSpans(rows []modelgate.UsageRow, q SpanQuery) []StatsSpan {
	q.Since = q.Since.Truncate(q.Step)
	all := summed(rows, q.StatsQuery)
	weight := func(b modelgate.StatsBucket) int64 {
		return map[Weight]int64{"": int64(b.Cost), WeighCost: int64(b.Cost), WeighRequests: b.Requests, WeighTokens: b.TotalTokens}[q.Weight]
	}
	slices.SortFunc(all, func(a, b modelgate.StatsBucket) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Key, b.Key))
	})
	all = all[:min(q.Most, len(all))]
	bySpan := map[time.Time][]modelgate.UsageRow{}
	for _, r := range rows {
		bySpan[r.At.Truncate(q.Step)] = append(bySpan[r.At.Truncate(q.Step)], r)
	}
	out := []StatsSpan{}
	for at, rows := range bySpan {
		span := StatsSpan{At: at.UTC()}
		some := summed(rows, q.StatsQuery)
		for _, b := range all {
			if i := slices.IndexFunc(some, func(s modelgate.StatsBucket) bool { return s.Key == b.Key }); i >= 0 {
				span.Buckets = append(span.Buckets, some[i])
			}
		}
		if len(span.Buckets) > 0 {
			out = append(out, span)
		}
	}
	slices.SortFunc(out, func(a, b StatsSpan) int { return a.At.Compare(b.At) })
	return out
}

// wantSpans holds statistics over time against the plain sums.
func wantSpans(t interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, db *DB, client modelgate.ClientID, q SpanQuery) {
	t.Helper()
	rows, _, err := db.Usage(context.Background(), client, UsageList{})
	if err != nil {
		t.Fatalf("Usage = %v", err)
	}
	got, err := db.StatsSpans(context.Background(), client, q)
	if err != nil {
		t.Fatalf("StatsSpans(%+v) = %v", q, err)
	}
	if d := gocmp.Diff(summedSpans(rows, q), got); d != "" {
		t.Errorf("StatsSpans(%+v) of %d rows (-want +got):\n%s", q, len(rows), d)
	}
}

func drawSpans(rt *rapid.T) SpanQuery {
	q := SpanQuery{
		StatsQuery: drawQuery(rt),
		Step:       rapid.SampledFrom([]time.Duration{time.Hour, 3 * time.Hour, 24 * time.Hour}).Draw(rt, "step"),
		Most:       rapid.IntRange(1, 5).Draw(rt, "most"),
		Weight:     rapid.SampledFrom([]Weight{"", WeighCost, WeighRequests, WeighTokens}).Draw(rt, "weight"),
	}
	if q.GroupBy == modelgate.ByDay {
		q.GroupBy = modelgate.ByModel
	}
	return q
}
