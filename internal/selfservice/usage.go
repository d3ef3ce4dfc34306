package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
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
	StatusCode  int                   `json:"status_code"`
	LatencyMS   int64                 `json:"latency_ms"`
	ParseStatus modelgate.ParseStatus `json:"parse_status"`
	ViaSDK      bool                  `json:"via_sdk"`
	Attribution map[string]string     `json:"attribution"`
	CreatedAt   time.Time             `json:"created_at"`
}

// viewUsage shows a row. An end customer sees the billed price in place of
// the cost, and what it asked for in place of where that ran.
func viewUsage(b by, row *modelgate.UsageRow) usageView {
	v := usageView{
		ID:          row.ID.String(),
		ClientID:    row.ClientID,
		Provider:    row.CallBegin.Provider,
		Model:       row.CallBegin.Model,
		Slug:        row.Slug,
		Author:      row.Author,
		Cost:        row.Cost,
		TotalTokens: row.Usage.TotalTokens(),
		StatusCode:  row.StatusCode,
		LatencyMS:   row.LatencyMS,
		ParseStatus: row.ParseStatus,
		ViaSDK:      row.ViaSDK,
		Attribution: row.Attribution,
		CreatedAt:   row.At,
	}
	if b.SubAccountID == "" {
		return v
	}
	v.Cost = row.Cost.Billed(b.Markup)
	if row.Slug != "" {
		v.Provider, v.Model = row.Author, row.Slug
	}
	return v
}

// usageQuery is the query of GET /gw/usage.
type usageQuery struct {
	provider    string
	parseStatus string
	id          string
	since       string
	window      time.Duration // 0: all time
	limit       int
	cursor      string
	paged       bool
}

func (q *usageQuery) read(x *exchange) error {
	p := x.query
	var err error
	if q.provider, err = p.Filter("provider"); err != nil {
		return err
	}
	if q.parseStatus, err = p.Filter("parse_status"); err != nil {
		return err
	}
	if q.limit, err = p.Int("limit", httpx.Bounds{Min: 1, Max: 1000}, 100); err != nil {
		return err
	}
	if q.cursor, q.paged, err = p.Text("cursor"); err != nil {
		return err
	}
	if err := q.readSince(p); err != nil {
		return err
	}
	return q.readID(p)
}

func (q *usageQuery) readSince(p *httpx.Params) error {
	text, given, err := p.Text("since")
	if err != nil || !given {
		return err
	}
	q.since = text
	q.window, err = httpx.Since(text)
	return err
}

func (q *usageQuery) readID(p *httpx.Params) error {
	text, given, err := p.Text("id")
	if err != nil || !given {
		return err
	}
	id, ok := modelgate.ParseUUID(text)
	if !ok {
		return modelgate.Errorf(modelgate.BadRequest, "id must be a UUID")
	}
	q.id = id.String()
	return nil
}

func (a *API) usage(ctx context.Context, b by, q usageQuery) (page[usageView], error) {
	filter := filter("usage", b, q.provider, q.parseStatus, q.id, q.since)
	after, err := a.after(q.cursor, q.paged, filter)
	if err != nil {
		return page[usageView]{}, err
	}
	list := store.UsageList{
		SubAccountID: b.SubAccountID,
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
	rows, more, err := a.Store.Usage(ctx, b.ClientID, list)
	if err != nil {
		return page[usageView]{}, err
	}
	out := page[usageView]{rows: make([]usageView, 0, len(rows))}
	for i := range rows {
		out.rows = append(out.rows, viewUsage(b, &rows[i]))
	}
	if more {
		last := rows[len(rows)-1]
		out.next = a.Cursors.Sign(httpx.Position{At: last.At, ID: last.ID.String()}, filter)
	}
	return out, nil
}
