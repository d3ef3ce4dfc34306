package selfservice

import (
	"context"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/callview"
	"modelgate/internal/store"
)

// viewer is the caller, to be shown calls.
func (by actor) viewer() callview.Viewer {
	return callview.Viewer{Customer: by.SubAccountID != "", Markup: by.Markup}
}

// keyNames are the names of the keys of some rows that have one.
func (a *API) keyNames(ctx context.Context, by actor, rows []modelgate.UsageRow) (map[modelgate.KeyID]string, error) {
	seen := map[modelgate.KeyID]bool{}
	for i := range rows {
		seen[rows[i].KeyID] = true
	}
	return a.Store.KeyNames(ctx, by.ClientID, slices.Sorted(maps.Keys(seen)))
}

// usageQuery is the query of GET /gw/usage.
type usageQuery struct {
	provider    string
	parseStatus string
	id          string
	since       string
	window      time.Duration // 0: all time
	limit       int
	cursor      *string
}

func (q *usageQuery) read(x *exchange) error {
	p := x.query
	q.provider = p.Filter("provider")
	q.parseStatus = p.Filter("parse_status")
	q.limit = p.Int("limit", 1, 1000, 100)
	q.cursor = x.cursor()
	q.since, _ = p.Text("since")
	q.window = p.Since(0)
	text, given := p.Text("id")
	if !given {
		return nil
	}
	id, ok := modelgate.ParseUUID(text)
	if !ok {
		return modelgate.Errorf(modelgate.BadRequest, "id must be a UUID")
	}
	q.id = id.String()
	return nil
}

func (a *API) usage(ctx context.Context, by actor, q usageQuery) (page[callview.Row], error) {
	filter := filter("usage", by, q.provider, q.parseStatus, q.id, q.since)
	after, err := a.after(q.cursor, filter)
	if err != nil {
		return page[callview.Row]{}, err
	}
	list := store.UsageList{
		SubAccountID: by.SubAccountID,
		Provider:     q.provider,
		ParseStatus:  modelgate.ParseStatus(q.parseStatus),
		ID:           modelgate.UsageID(q.id),
		Limit:        q.limit,
		After:        after,
	}
	if q.window > 0 {
		list.Since = a.Now().Add(-q.window)
	}
	a.settle(ctx)
	rows, more, err := a.Store.Usage(ctx, by.ClientID, list)
	if err != nil {
		return page[callview.Row]{}, err
	}
	viewer := by.viewer()
	viewer.Keys, err = a.keyNames(ctx, by, rows)
	return page[callview.Row]{
		views(rows, viewer.Row),
		next(a, filter, rows, more, func(row *modelgate.UsageRow) (time.Time, string) { return row.At, row.ID.String() }),
	}, err
}
