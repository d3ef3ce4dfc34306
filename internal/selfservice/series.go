package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/callquery"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
	"modelgate/internal/store/stats"
)

const (
	// finestSeries is the longest window that is shown by the hour unasked.
	finestSeries = 3 * 24 * time.Hour
	// mostGroups is the number of groups of a series: as many as a chart can
	// distinguish, with one more for the rest.
	mostGroups = 7
)

// seriesQuery is the query of GET /gw/series.
type seriesQuery struct {
	window  time.Duration
	step    time.Duration
	groupBy modelgate.GroupBy // "" for no groups
	weight  store.Weight
}

func (q *seriesQuery) read(x *exchange) error {
	p := x.query
	q.window = p.Since(defaultWindow)
	interval := "hour"
	if q.window > finestSeries {
		interval = "day"
	}
	q.step = time.Hour
	if httpx.OneOf(p, "interval", interval, "hour", "day") == "day" {
		q.step = 24 * time.Hour
	}
	q.weight = httpx.OneOf(p, "top_by", "", store.WeighCost, store.WeighRequests, store.WeighTokens)
	var err error
	if q.groupBy, err = groupBy(p, ""); err != nil {
		return err
	}
	switch {
	case q.step == time.Hour && q.window > callquery.LongestHours:
		return modelgate.Errorf(modelgate.BadRequest, "interval hour is for the last 62 days")
	case q.groupBy == modelgate.ByDay:
		return modelgate.Errorf(modelgate.BadRequest, "a series is by day already; group_by must be something else")
	}
	return nil
}

// spanView is how the calls of an hour or a day fared.
type spanView struct {
	At          time.Time      `json:"at"`
	Requests    int64          `json:"requests"`
	Errors      int64          `json:"errors"`
	TotalTokens int64          `json:"total_tokens"`
	Cost        modelgate.Nano `json:"total_cost_usd"`
	Latency     latencyView    `json:"latency_ms"`
	Groups      []bucketView   `json:"groups,omitzero"`
}

// latencyView is in whole milliseconds; the percentiles are estimates.
type latencyView struct {
	Mean int64 `json:"mean"`
	P50  int64 `json:"p50"`
	P95  int64 `json:"p95"`
	// Counts are the requests by about how long they took.
	Counts map[int64]int64 `json:"counts"`
}

// series lists the spans with calls, the oldest first. The first span is
// whole, although the window may begin in it.
func (a *API) series(ctx context.Context, by actor, q seriesQuery) ([]spanView, error) {
	a.settle(ctx)
	spans, err := a.Store.LatencyHistograms(ctx, by.ClientID, store.LatencyQuery{
		SubAccountID: by.SubAccountID, Since: a.Now().Add(-q.window), Step: q.step,
	})
	if err != nil {
		return nil, err
	}
	groups, err := a.seriesGroups(ctx, by, q)
	if err != nil {
		return nil, err
	}
	return views(spans, func(p *store.LatencyHistogram) spanView {
		latency := latencyView{
			p.LatencyMS / max(p.Requests, 1), stats.LatencyQuantile(p.Classes, 0.5), stats.LatencyQuantile(p.Classes, 0.95),
			stats.CountsByLatency(p.Classes),
		}
		return spanView{p.At, p.Requests, p.Errors, p.TotalTokens, p.Cost.Billed(by.Markup), latency, groups[p.At]}
	}), nil
}

// seriesGroups are the largest groups by where spans begin.
func (a *API) seriesGroups(ctx context.Context, by actor, q seriesQuery) (map[time.Time][]bucketView, error) {
	if q.groupBy == "" {
		return nil, nil
	}
	spans, err := a.Store.StatsSpans(ctx, by.ClientID, store.SpanQuery{
		StatsQuery: store.StatsQuery{SubAccountID: by.SubAccountID, GroupBy: q.groupBy, Since: a.Now().Add(-q.window)},
		Step:       q.step, Most: mostGroups, Weight: q.weight,
	})
	if err != nil {
		return nil, err
	}
	out := make(map[time.Time][]bucketView, len(spans))
	for _, s := range spans {
		out[s.At] = bucketViews(by, s.Buckets)
	}
	return out, nil
}
