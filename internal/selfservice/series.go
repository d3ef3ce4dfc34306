package selfservice

import (
	"context"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

const (
	// usualSeries is the window of a series that asks for none.
	usualSeries = 30 * 24 * time.Hour
	// finestSeries is the longest window that is shown by the hour unasked,
	// and longestHours the longest that may be.
	finestSeries = 3 * 24 * time.Hour
	longestHours = 62 * 24 * time.Hour
	// mostGroups are the groups of a series: as many as can be told apart in
	// a chart, with one more for the rest.
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
	q.window = usualSeries
	if text, given, err := p.Text("since"); err != nil {
		return err
	} else if given {
		if q.window, err = httpx.Since(text); err != nil {
			return err
		}
	}
	interval, given, err := p.Text("interval")
	if err != nil {
		return err
	}
	switch {
	case interval == "day", !given && q.window > finestSeries:
		q.step = 24 * time.Hour
	case interval == "hour", !given:
		q.step = time.Hour
	default:
		return modelgate.Errorf(modelgate.BadRequest, "interval must be hour or day")
	}
	if q.step == time.Hour && q.window > longestHours {
		return modelgate.Errorf(modelgate.BadRequest, "interval hour is for the last 62 days")
	}
	return q.readGroups(p)
}

func (q *seriesQuery) readGroups(p *httpx.Params) error {
	var err error
	if q.groupBy, _, err = groupBy(p); err != nil {
		return err
	}
	if q.groupBy == modelgate.ByDay {
		return modelgate.Errorf(modelgate.BadRequest, "a series is by day already; group_by must be something else")
	}
	text, given, err := p.Text("top_by")
	if err != nil {
		return err
	}
	q.weight = store.Weight(text)
	if given && !slices.Contains([]store.Weight{store.WeighCost, store.WeighRequests, store.WeighTokens}, q.weight) {
		return modelgate.Errorf(modelgate.BadRequest, "top_by must be spend, requests or tokens")
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
func (a *API) series(ctx context.Context, b by, q seriesQuery) ([]spanView, error) {
	a.settle(ctx)
	pulses, err := a.Store.Pulses(ctx, b.ClientID, store.PulseQuery{
		SubAccountID: b.SubAccountID, Since: a.Now().Add(-q.window), Step: q.step,
	})
	if err != nil {
		return nil, err
	}
	groups, err := a.seriesGroups(ctx, b, q)
	if err != nil {
		return nil, err
	}
	out := make([]spanView, 0, len(pulses))
	for _, p := range pulses {
		out = append(out, spanView{
			At: p.At, Requests: p.Requests, Errors: p.Errors, TotalTokens: p.TotalTokens, Cost: p.Cost.Billed(b.Markup),
			Latency: latencyView{
				Mean: p.LatencyMS / max(p.Requests, 1),
				P50:  modelgate.LatencyQuantile(p.Classes, 0.5),
				P95:  modelgate.LatencyQuantile(p.Classes, 0.95),

				Counts: modelgate.LatencyCounts(p.Classes),
			},
			Groups: groups[p.At],
		})
	}
	return out, nil
}

// seriesGroups are the largest groups by where spans begin.
func (a *API) seriesGroups(ctx context.Context, b by, q seriesQuery) (map[time.Time][]bucketView, error) {
	if q.groupBy == "" {
		return nil, nil
	}
	spans, err := a.Store.StatsSpans(ctx, b.ClientID, store.SpanQuery{
		StatsQuery: store.StatsQuery{SubAccountID: b.SubAccountID, GroupBy: q.groupBy, Since: a.Now().Add(-q.window)},
		Step:       q.step, Most: mostGroups, Weight: q.weight,
	})
	if err != nil {
		return nil, err
	}
	out := make(map[time.Time][]bucketView, len(spans))
	for _, s := range spans {
		out[s.At] = bucketViews(b, s.Buckets)
	}
	return out, nil
}
