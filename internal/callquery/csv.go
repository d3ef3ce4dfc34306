package callquery

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/csvfile"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

const (
	// mostExported is how many calls a file may have.
	mostExported = 1_000_000
	// exportPage is how many of them are read at once.
	exportPage = 2_000
)

// callsCSV writes all calls of a query, page by page.
func (s *Service) callsCSV(x Exchange, q *Calls) error {
	done, err := s.Export(x.By)
	if err != nil {
		return err
	}
	defer done()
	ctx := x.R.Context() // an export takes as long as its client does
	if n, err := s.allCalls(ctx, q); err != nil {
		return err
	} else if n > mostExported {
		return modelgate.Errorf(modelgate.BadRequest, "more than %d calls match; a file has at most so many: narrow the range or add a filter", mostExported)
	}
	file := csvfile.New(httpx.CSVWriter{ResponseWriter: x.W, Name: "calls-" + days(q.From, q.To, s.Now()), Stall: Stall})
	if err := s.writeCalls(ctx, x.By, q, file); err != nil {
		if !file.Begun() {
			return tooManyCalls(q, err)
		}
		s.Log.Error("a file of calls was cut", "client_id", x.By.Client, "request_id", httpx.RequestID(x.W).String(), "error", err)
		panic(http.ErrAbortHandler) // ends the connection without the end of the body
	}
	return nil
}

// allCalls counts the calls of a query that has no filters, up to one more than
// a file may have; 0 for others, which are counted as they are written.
func (s *Service) allCalls(ctx context.Context, q *Calls) (int, error) {
	if q.Narrow() {
		return 0, nil
	}
	return s.Store.CountCalls(ctx, q.CallFilter, mostExported+1)
}

// writeCalls writes the file up to its end.
func (s *Service) writeCalls(ctx context.Context, by Asker, q *Calls, file *csvfile.File) error {
	list := store.CallList{CallFilter: q.CallFilter, Order: q.order, Limit: exportPage}
	viewer := by.viewer()
	columns := viewer.Columns()
	head, cells := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.Name
	}
	for written := 0; ; {
		rows, next, err := s.Store.Calls(ctx, list)
		if err != nil {
			return err
		}
		if written += len(rows); written > mostExported {
			return fmt.Errorf("more than %d calls", mostExported)
		}
		if err := s.callNames(ctx, by, rows, &viewer); err != nil {
			return err
		}
		if !file.Begun() {
			file.Row(head...)
		}
		for i := range rows {
			v := viewer.Any(&rows[i])
			for j, c := range columns {
				cells[j] = c.Text(&v)
			}
			file.Row(cells...)
		}
		if err := file.Flush(); err != nil || next == nil {
			return err
		}
		list.After = next
	}
}

// days names a window in the name of a file.
func days(from, to, now time.Time) string {
	if to.IsZero() {
		to = now
	}
	return from.UTC().Format(time.DateOnly) + "-" + to.UTC().Format(time.DateOnly)
}
