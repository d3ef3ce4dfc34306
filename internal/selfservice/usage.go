package selfservice

import (
	"context"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

// usageView is a booked call (spec: Usage row).
type usageView struct {
	ID          string                `json:"id"`
	ClientID    modelgate.ClientID    `json:"client_id"`
	Provider    string                `json:"provider"`
	Model       string                `json:"model"`
	Slug        string                `json:"model_slug,omitzero"`
	Author      string                `json:"author,omitzero"`
	Cost        modelgate.Nano        `json:"cost_usd"`
	TotalTokens int64                 `json:"total_tokens"`
	Tokens      modelgate.TokenKinds  `json:"tokens"`
	StatusCode  int                   `json:"status_code"`
	LatencyMS   int64                 `json:"latency_ms"`
	FirstByteMS *int64                `json:"first_byte_ms"` // null where none came
	ParseStatus modelgate.ParseStatus `json:"parse_status"`
	ViaSDK      bool                  `json:"via_sdk"`
	KeyName     *string               `json:"key_name"`
	Attribution map[string]string     `json:"attribution"`
	CreatedAt   time.Time             `json:"created_at"`
}

// viewUsage shows a row. An end customer sees the billed price in place of
// the cost, and author and slug in place of provider and native model.
func viewUsage(by actor, keys keyNames, row *modelgate.UsageRow) usageView {
	v := usageView{
		row.ID.String(), row.ClientID, row.CallBegin.Provider, row.CallBegin.Model, row.Slug, row.Author, row.Cost.Billed(by.Markup),
		row.Usage.TotalTokens(), row.Usage.TokenKinds(), row.StatusCode, row.LatencyMS, orNull(row.FirstByteMS), row.ParseStatus, row.ViaSDK,
		orNull(keys[row.KeyID]), row.Attribution, row.At,
	}
	if by.SubAccountID != "" && row.Slug != "" {
		v.Provider, v.Model = row.Author, row.Slug
	}
	return v
}

// keyNames are the names of the keys that have one.
type keyNames map[modelgate.KeyID]string

// keyNames are those of the keys of some rows.
func (a *API) keyNames(ctx context.Context, by actor, rows []modelgate.UsageRow) (keyNames, error) {
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

func (a *API) usage(ctx context.Context, by actor, q usageQuery) (page[usageView], error) {
	filter := filter("usage", by, q.provider, q.parseStatus, q.id, q.since)
	after, err := a.after(q.cursor, filter)
	if err != nil {
		return page[usageView]{}, err
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
		return page[usageView]{}, err
	}
	keys, err := a.keyNames(ctx, by, rows)
	return page[usageView]{
		views(rows, func(row *modelgate.UsageRow) usageView { return viewUsage(by, keys, row) }),
		next(a, filter, rows, more, func(row *modelgate.UsageRow) (time.Time, string) { return row.At, row.ID.String() }),
	}, err
}
