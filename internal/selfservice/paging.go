package selfservice

import (
	"strings"
	"time"

	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// page is the output of a list: a flat array, and the cursor of the next
// page in X-Next-Cursor while there is one.
type page[T any] struct {
	rows []T
	next string
}

func (p page[T]) cursor() (any, string) { return p.rows, p.next }

// views are what rows are shown as; [] for none.
func views[Row, View any](rows []Row, view func(*Row) View) []View {
	out := make([]View, 0, len(rows))
	for i := range rows {
		out = append(out, view(&rows[i]))
	}
	return out
}

// cursor is the parameter of that name, nil where it was not sent.
func (x *exchange) cursor() *string {
	if text, given := x.query.Text("cursor"); given {
		return &text
	}
	return nil
}

// filter is what a cursor is valid for: the list, its organization and
// sub-account, and the filters.
func filter(list string, by actor, asked ...string) string {
	return strings.Join(append([]string{list, string(by.ClientID), string(by.SubAccountID)}, asked...), "\x00")
}

// after is the position that a list continues behind, nil at its beginning.
func (a *API) after(cursor *string, filter string) (*store.Cursor, error) {
	if cursor == nil {
		return nil, nil
	}
	at, err := a.Cursors.Read(*cursor, filter)
	return &store.Cursor{At: at.At, ID: at.ID}, err
}

// next is the cursor of the next page, "" on the last one. position is the time
// and id of a row.
func next[Row any](a *API, filter string, rows []Row, more bool, position func(*Row) (time.Time, string)) string {
	if !more {
		return ""
	}
	at, id := position(&rows[len(rows)-1])
	return a.Cursors.Sign(httpx.Position{At: at, ID: id}, filter)
}
