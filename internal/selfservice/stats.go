package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// bucketView is what the calls of one key come to (spec: Stats bucket).
type bucketView struct {
	Key         string         `json:"key"`
	Requests    int64          `json:"requests"`
	TotalTokens int64          `json:"total_tokens"`
	Cost        modelgate.Nano `json:"total_cost_usd"`
}

// statsQuery is the query of GET /gw/stats.
type statsQuery struct {
	groupBy  modelgate.GroupBy
	provider string
	window   time.Duration
}

// statsWindow is how far back statistics go unless since says otherwise.
const statsWindow = "30d"

func (q *statsQuery) read(x *exchange) error {
	p := x.query
	var err error
	if q.provider, err = p.Filter("provider"); err != nil {
		return err
	}
	since, given, err := p.Text("since")
	if err != nil {
		return err
	}
	if !given {
		since = statsWindow
	}
	if q.window, err = httpx.Since(since); err != nil {
		return err
	}
	group, given, err := groupBy(p)
	if q.groupBy = group; err == nil && !given {
		q.groupBy = modelgate.ByProvider
	}
	return err
}

// groupBy reads the parameter group_by and whether it is given.
func groupBy(p *httpx.Params) (modelgate.GroupBy, bool, error) {
	text, given, err := p.Text("group_by")
	group := modelgate.GroupBy(text)
	if err == nil && given && !group.BuiltIn() && !modelgate.IsAttributionKey(text) {
		err = modelgate.Errorf(modelgate.BadRequest,
			"group_by must be provider, model, model_slug, author, day, region or an attribution key of [A-Za-z0-9_.-]{1,64}")
	}
	return group, given, err
}

// stats sums calls. An end customer sees what they were billed in place of
// what they cost: the exact costs summed, marked up and rounded once.
func (a *API) stats(ctx context.Context, b by, q statsQuery) ([]bucketView, error) {
	a.settle(ctx)
	buckets, err := a.Store.Stats(ctx, b.ClientID, store.StatsQuery{
		SubAccountID: b.SubAccountID,
		GroupBy:      q.groupBy,
		Provider:     q.provider,
		Since:        a.Now().Add(-q.window),
	})
	if err != nil {
		return nil, err
	}
	return bucketViews(b, buckets), nil
}

func bucketViews(b by, buckets []modelgate.StatsBucket) []bucketView {
	out := make([]bucketView, 0, len(buckets))
	for _, s := range buckets {
		if b.SubAccountID != "" {
			s.Cost = s.Cost.Billed(b.Markup)
		}
		out = append(out, bucketView(s))
	}
	return out
}
