package selfservice

import (
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

const (
	// usualCalls is how far back calls and reports go unless a window is given.
	usualCalls = 7 * 24 * time.Hour
	// mostFilterValues bounds the values of all filters of a request together.
	mostFilterValues = 50
)

// callFilter is the window and the filters of GET /gw/calls and GET /gw/report.
type callFilter struct {
	store.CallFilter
	asked string // all of it as it was sent, for cursors
}

// read reads the window, for which a whole minute is now, and the filters.
func (f *callFilter) read(x *exchange, now time.Time) error {
	p := x.query
	if err := f.readWindow(p, now.Truncate(time.Minute)); err != nil {
		return err
	}
	values := 0
	list := func(name string) []string {
		texts := p.List(name)
		values += len(texts)
		f.asked += "\x00" + name + "\x00" + strings.Join(texts, "\x00")
		return texts
	}
	f.Models, f.Authors, f.Providers = list("model"), list("author"), list("provider")
	f.Keys, f.ParseStatuses, f.Doors, f.Kinds = list("key_id"), list("parse_status"), list("door"), list("kind")
	f.SubAccounts = list("sub_account_id")
	for i, id := range f.SubAccounts {
		if id == "none" {
			f.SubAccounts[i] = ""
		}
	}
	if len(f.SubAccounts) > 0 && x.SubAccountID != "" {
		return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account cannot filter by sub_account_id")
	}
	for _, text := range list("status") {
		status, ok := store.ParseStatusRange(text)
		if !ok {
			return modelgate.Errorf(modelgate.BadRequest, "status must be ok, 4xx, 5xx or a status code such as 429")
		}
		f.Statuses = append(f.Statuses, status)
	}
	for _, text := range list("tag") {
		name, value, found := strings.Cut(text, ":")
		if !found || !modelgate.IsAttributionKey(name) {
			return modelgate.Errorf(modelgate.BadRequest, "tag must be an attribution key and its value, such as team:search")
		}
		f.Tags = append(f.Tags, store.Tag{Name: name, Value: value})
	}
	for _, text := range list("id") {
		id, ok := modelgate.ParseUUID(text)
		if !ok {
			return modelgate.Errorf(modelgate.BadRequest, "id must be a UUID")
		}
		f.IDs = append(f.IDs, id)
	}
	if values > mostFilterValues {
		return modelgate.Errorf(modelgate.BadRequest, "filters have %d values; at most %d fit in one request", values, mostFilterValues)
	}
	f.MinLatencyMS = int64(p.Int("min_latency_ms", 0, 1<<53-1, 0))
	return f.readMinCost(x)
}

// readWindow reads from and to, or since.
func (f *callFilter) readWindow(p *httpx.Params, now time.Time) error {
	since, relative := p.Text("since")
	length := p.Since(usualCalls)
	from, to := p.Instant("from"), p.Instant("to")
	switch {
	case relative && !(from.IsZero() && to.IsZero()):
		return modelgate.Errorf(modelgate.BadRequest, "from and to, or since: not both")
	case from.IsZero() && to.IsZero():
		from = now.Add(-length)
	case from.IsZero():
		from = to.Add(-usualCalls)
	case !to.IsZero() && !from.Before(to):
		return modelgate.Errorf(modelgate.BadRequest, "to must be after from")
	}
	f.From, f.To = from, to
	fromText, _ := p.Text("from")
	toText, _ := p.Text("to")
	f.asked = strings.Join([]string{since, fromText, toText}, "\x00")
	return nil
}

// readMinCost reads min_cost_usd, which is compared with what the caller sees.
func (f *callFilter) readMinCost(x *exchange) error {
	f.Client, f.SubAccountID = x.ClientID, x.SubAccountID
	text, given := x.query.Text("min_cost_usd")
	f.asked += "\x00" + text + "\x00" + strconv.FormatInt(f.MinLatencyMS, 10)
	if !given {
		return nil
	}
	least, err := modelgate.ParseUSD(text)
	if err != nil || least < 0 {
		return modelgate.Errorf(modelgate.BadRequest, "min_cost_usd must be an amount in USD such as 0.25")
	}
	f.MinCost = least
	if x.SubAccountID != "" {
		f.MinCost = store.LeastCost(least, x.Markup)
	}
	return nil
}
