// Package callquery answers questions about booked calls: lists of calls and
// sums of them, as JSON and as files. Organizations and their end customers ask
// about their own at /gw, whoever runs the gateway about everybody's at
// /operator/v1.
package callquery

import (
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// Asker is who asks.
type Asker struct {
	// Client is the organization whose calls are asked about.
	Client modelgate.ClientID
	// Operator is whoever runs the gateway, who asks about the calls of all
	// organizations; Client is "" then.
	Operator bool
	// SubAccountID is an end customer of Client; "" is the organization itself.
	SubAccountID modelgate.SubAccountID
	Markup       modelgate.Markup // of the end customer
}

func (by *Asker) customer() bool { return by.SubAccountID != "" }

const (
	// LongestHours is the longest time that is shown by the hour.
	LongestHours = 62 * 24 * time.Hour
	// usualCalls is how far back calls and reports go unless a window is given.
	usualCalls = 7 * 24 * time.Hour
	// mostFilterValues bounds the values of all filters of a request together.
	mostFilterValues = 50
)

// Filter is the window and the filters of lists and reports.
type Filter struct {
	store.CallFilter
	asked string // all of it as it was sent, for cursors
}

// read reads the window, for which a whole minute is now, and the filters.
func (f *Filter) read(p *httpx.Params, by Asker, now time.Time) error {
	f.Client, f.Everyone, f.SubAccountID = by.Client, by.Operator, by.SubAccountID
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
	if by.Operator {
		for _, text := range list("organization") {
			id, ok := modelgate.ParseUUID(text)
			if !ok {
				return modelgate.Errorf(modelgate.BadRequest, "organization must be the id of one")
			}
			f.Clients = append(f.Clients, modelgate.ClientID(id.String()))
		}
	}
	f.SubAccounts = list("sub_account_id")
	for i, id := range f.SubAccounts {
		if id == "none" {
			f.SubAccounts[i] = ""
		}
	}
	if len(f.SubAccounts) > 0 && by.customer() {
		return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account cannot filter by sub_account_id")
	}
	if err := f.readParsed(list); err != nil {
		return err
	}
	if values > mostFilterValues {
		return modelgate.Errorf(modelgate.BadRequest, "filters have %d values; at most %d fit in one request", values, mostFilterValues)
	}
	f.MinLatencyMS = int64(p.Int("min_latency_ms", 0, 1<<53-1, 0))
	return f.readMinCost(p, by)
}

// readParsed reads the filters whose values have a form.
func (f *Filter) readParsed(list func(name string) []string) error {
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
	return nil
}

// readWindow reads from and to, or since.
func (f *Filter) readWindow(p *httpx.Params, now time.Time) error {
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
func (f *Filter) readMinCost(p *httpx.Params, by Asker) error {
	text, given := p.Text("min_cost_usd")
	f.asked += "\x00" + text + "\x00" + strconv.FormatInt(f.MinLatencyMS, 10)
	if !given {
		return nil
	}
	least, err := modelgate.ParseUSD(text)
	if err != nil || least < 0 {
		return modelgate.Errorf(modelgate.BadRequest, "min_cost_usd must be an amount in USD such as 0.25")
	}
	f.MinCost = least
	if by.customer() {
		f.MinCost = store.LeastCost(least, by.Markup)
	}
	return nil
}
