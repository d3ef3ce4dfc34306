package callquery

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/callview"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// Calls is a question for calls.
type Calls struct {
	Filter
	order  store.CallOrder
	limit  int
	cursor *string
	csv    bool
}

// Read reads the question from the parameters of a request.
func (q *Calls) Read(p *httpx.Params, by Asker, now time.Time) error {
	if err := q.Filter.read(p, by, now); err != nil {
		return err
	}
	orders := store.CallOrders()
	q.order = httpx.OneOf(p, "sort", orders[0], orders...)
	q.limit = p.Int("limit", 1, 1000, 100)
	if text, given := p.Text("cursor"); given {
		q.cursor = &text
	}
	q.csv = httpx.OneOf(p, "format", "json", "json", "csv") == "csv"
	_, limited := p.Text("limit")
	if q.csv && (limited || q.cursor != nil) {
		return modelgate.Errorf(modelgate.BadRequest, "format csv has all calls; leave limit and cursor out")
	}
	return nil
}

// ServeCalls answers a question for calls.
func (s *Service) ServeCalls(ctx context.Context, x Exchange, q *Calls) error {
	if q.csv {
		return s.callsCSV(x, q)
	}
	if current, err := s.unchanged(ctx, x, q.From); err != nil || current {
		return err
	}
	scope := strings.Join([]string{"calls", string(x.By.Client), string(x.By.SubAccountID), q.asked, string(q.order)}, "\x00")
	list := store.CallList{CallFilter: q.CallFilter, Order: q.order, Limit: q.limit}
	if q.cursor != nil {
		var err error
		if list.After, err = s.afterCall(*q.cursor, scope); err != nil {
			return err
		}
	}
	rows, next, err := s.Store.Calls(ctx, list)
	if err != nil {
		return tooManyCalls(q, err)
	}
	viewer := x.By.viewer()
	if err := s.callNames(ctx, x.By, rows, &viewer); err != nil {
		return err
	}
	if next != nil {
		x.W.Header().Set("X-Next-Cursor", s.Cursors.Sign(httpx.Position{
			At: time.UnixMicro(next.At), ID: strconv.FormatInt(next.Value, 10) + "/" + next.ID,
		}, scope))
	}
	switch {
	case x.By.customer():
		return httpx.WriteJSON(x.W, shown(rows, func(r *modelgate.UsageRow) callview.Call { return viewer.Own(r).Call }))
	case x.By.Operator:
		return httpx.WriteJSON(x.W, shown(rows, viewer.Any))
	}
	return httpx.WriteJSON(x.W, shown(rows, viewer.Own))
}

// shown is what rows are shown as; [] for none.
func shown[View any](rows []modelgate.UsageRow, view func(*modelgate.UsageRow) View) []View {
	out := make([]View, 0, len(rows))
	for i := range rows {
		out = append(out, view(&rows[i]))
	}
	return out
}

// afterCall is the position in a cursor.
func (s *Service) afterCall(cursor, scope string) (*store.CallPosition, error) {
	at, err := s.Cursors.Read(cursor, scope)
	if err != nil {
		return nil, err
	}
	value, id, _ := strings.Cut(at.ID, "/")
	n, err := strconv.ParseInt(value, 10, 64)
	return &store.CallPosition{Value: n, At: at.At.UnixMicro(), ID: id}, err
}

// tooManyCalls explains to the client that an order has too much to sort.
func tooManyCalls(q *Calls, err error) error {
	if !errors.Is(err, store.ErrTooManyCalls) {
		return err
	}
	by, _, _ := strings.Cut(strings.TrimPrefix(string(q.order), "-"), "_")
	names := map[string]string{"total": "tokens", "first": "first byte"}
	if name, ok := names[by]; ok {
		by = name
	}
	return modelgate.Errorf(modelgate.BadRequest, "sort by %s needs at most %d matching calls; narrow the range or add a filter", by, q.MostRead())
}
