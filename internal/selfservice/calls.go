package selfservice

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/callview"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// callsQuery is the query of GET /gw/calls.
type callsQuery struct {
	callFilter
	order  store.CallOrder
	limit  int
	cursor *string
	csv    bool
}

func (q *callsQuery) read(x *exchange, now time.Time) error {
	p := x.query
	if err := q.callFilter.read(x, now); err != nil {
		return err
	}
	orders := store.CallOrders()
	q.order = httpx.OneOf(p, "sort", orders[0], orders...)
	q.limit = p.Int("limit", 1, 1000, 100)
	q.cursor = x.cursor()
	q.csv = httpx.OneOf(p, "format", "json", "json", "csv") == "csv"
	_, limited := p.Text("limit")
	if q.csv && (limited || q.cursor != nil) {
		return modelgate.Errorf(modelgate.BadRequest, "format csv has all calls; leave limit and cursor out")
	}
	return nil
}

// callNames reads the names for some rows. Sub-accounts that are known already
// are not read again.
func (a *API) callNames(ctx context.Context, by actor, rows []modelgate.UsageRow, names *callview.Viewer) (err error) {
	if names.Keys, err = a.keyNames(ctx, by, rows); err != nil {
		return err
	}
	for i := range rows {
		id := rows[i].SubAccountID
		if _, known := names.Accounts[id]; known || id == "" {
			continue
		}
		if err := a.readAccounts(ctx, by, id, names); err != nil {
			return err
		}
	}
	return nil
}

// readAccounts reads a sub-account, for an organization the first time with all
// others.
func (a *API) readAccounts(ctx context.Context, by actor, id modelgate.SubAccountID, names *callview.Viewer) error {
	if names.Accounts == nil {
		names.Accounts = make(map[modelgate.SubAccountID]modelgate.SubAccount)
		if by.SubAccountID == "" {
			all, err := a.Store.SubAccounts(ctx, by.ClientID)
			for _, account := range all {
				names.Accounts[account.ID] = account
			}
			return err
		}
	}
	account, err := a.Store.SubAccount(ctx, by.ClientID, id)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return err
	}
	names.Accounts[id] = account
	return nil
}

// calls is GET /gw/calls.
func (a *API) calls(ctx context.Context, x *exchange) error {
	var q callsQuery
	if err := x.read(func(x *exchange) error { return q.read(x, a.Now()) }); err != nil {
		return err
	}
	a.settle(ctx)
	if q.csv {
		return a.callsCSV(x, q)
	}
	if current, err := a.unchanged(ctx, x, q.From); err != nil || current {
		return err
	}
	scope := filter("calls", x.actor, q.asked, string(q.order))
	list := store.CallList{CallFilter: q.CallFilter, Order: q.order, Limit: q.limit}
	if q.cursor != nil {
		var err error
		if list.After, err = a.afterCall(*q.cursor, scope); err != nil {
			return err
		}
	}
	rows, next, err := a.Store.Calls(ctx, list)
	if err != nil {
		return tooManyCalls(q.order, err)
	}
	viewer := x.viewer()
	if err := a.callNames(ctx, x.actor, rows, &viewer); err != nil {
		return err
	}
	if next != nil {
		x.w.Header().Set("X-Next-Cursor", a.Cursors.Sign(httpx.Position{
			At: time.UnixMicro(next.At), ID: strconv.FormatInt(next.Value, 10) + "/" + next.ID,
		}, scope))
	}
	if x.SubAccountID != "" {
		return httpx.WriteJSON(x.w, views(rows, func(r *modelgate.UsageRow) callview.Call { return viewer.Own(r).Call }))
	}
	return httpx.WriteJSON(x.w, views(rows, viewer.Own))
}

// afterCall is the position in a cursor.
func (a *API) afterCall(cursor, scope string) (*store.CallPosition, error) {
	at, err := a.Cursors.Read(cursor, scope)
	if err != nil {
		return nil, err
	}
	value, id, _ := strings.Cut(at.ID, "/")
	n, err := strconv.ParseInt(value, 10, 64)
	return &store.CallPosition{Value: n, At: at.At.UnixMicro(), ID: id}, err
}

// tooManyCalls explains to the client that an order has too much to sort.
func tooManyCalls(order store.CallOrder, err error) error {
	if !errors.Is(err, store.ErrTooManyCalls) {
		return err
	}
	by, _, _ := strings.Cut(strings.TrimPrefix(string(order), "-"), "_")
	names := map[string]string{"total": "tokens", "first": "first byte"}
	if name, ok := names[by]; ok {
		by = name
	}
	return modelgate.Errorf(modelgate.BadRequest, "sort by %s needs at most %d matching calls; narrow the range or add a filter", by, store.MostCallsRead)
}

// unchanged sets the entity tag of an answer about the calls of a window, and
// answers 304 where the client has it already. The tag stands for what the
// answer depends on, and is read before it: a client that is told of no change
// has missed none.
func (a *API) unchanged(ctx context.Context, x *exchange, window ...time.Time) (bool, error) {
	revision, err := a.Store.UsageRevision(ctx, x.ClientID)
	if err != nil {
		return false, err
	}
	texts := []string{revision, string(x.ClientID), string(x.SubAccountID), strconv.FormatInt(int64(x.Markup), 10), x.r.URL.Path, x.r.URL.RawQuery}
	for _, at := range window {
		texts = append(texts, at.Format(time.RFC3339Nano))
	}
	tag := httpx.WeakTag(texts...)
	x.w.Header().Set("ETag", tag)
	if !httpx.TagMatches(x.r.Header.Values("If-None-Match"), tag) {
		return false, nil
	}
	x.w.Header().Set("Cache-Control", "no-store")
	x.w.WriteHeader(http.StatusNotModified)
	return true, nil
}
