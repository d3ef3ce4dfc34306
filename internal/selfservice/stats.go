package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// bucketView is what the calls of one key come to.
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

// defaultWindow is how far back statistics go unless since says otherwise.
const defaultWindow = 30 * 24 * time.Hour

func (q *statsQuery) read(x *exchange) error {
	q.provider = x.query.Filter("provider")
	q.window = x.query.Since(defaultWindow)
	var err error
	q.groupBy, err = groupBy(x.query, modelgate.ByProvider)
	return err
}

// groupBy reads the parameter group_by.
func groupBy(p *httpx.Params, absent modelgate.GroupBy) (modelgate.GroupBy, error) {
	text, given := p.Text("group_by")
	group := modelgate.GroupBy(text)
	if !given {
		return absent, nil
	}
	if !group.BuiltIn() && !modelgate.IsAttributionKey(text) {
		return "", modelgate.Errorf(modelgate.BadRequest,
			"group_by must be provider, model, model_slug, author, day, region or an attribution key of [A-Za-z0-9_.-]{1,64}")
	}
	return group, nil
}

// stats sums calls. An end customer sees what they were billed in place of
// what they cost: the exact costs summed, marked up and rounded once.
func (a *API) stats(ctx context.Context, by actor, q statsQuery) ([]bucketView, error) {
	a.settle(ctx)
	buckets, err := a.Store.Stats(ctx, by.ClientID, store.StatsQuery{
		SubAccountID: by.SubAccountID,
		GroupBy:      q.groupBy,
		Provider:     q.provider,
		Since:        a.Now().Add(-q.window),
	})
	if err != nil {
		return nil, err
	}
	return bucketViews(by, buckets), nil
}

func bucketViews(by actor, buckets []modelgate.StatsBucket) []bucketView {
	return views(buckets, func(s *modelgate.StatsBucket) bucketView {
		v := bucketView(*s)
		v.Cost = v.Cost.Billed(by.Markup)
		return v
	})
}
