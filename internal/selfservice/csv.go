package selfservice

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

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
func (a *API) callsCSV(x *exchange, q callsQuery) error {
	owner := string(x.ClientID) + "/" + string(x.SubAccountID)
	if _, busy := a.exporting.LoadOrStore(owner, true); busy {
		return modelgate.Errorf(modelgate.RateLimited, "one export at a time")
	}
	defer a.exporting.Delete(owner)
	ctx := x.r.Context() // an export takes as long as its client does
	if n, err := a.allCalls(ctx, q); err != nil {
		return err
	} else if n > mostExported {
		return modelgate.Errorf(modelgate.BadRequest, "more than %d calls match; a file has at most so many: narrow the range or add a filter", mostExported)
	}
	file := csvfile.New(fileWriter{x.w, "calls-" + days(q.From, q.To, a.Now())})
	if err := a.writeCalls(ctx, x.actor, q, file); err != nil {
		if !file.Begun() {
			return tooManyCalls(q.order, err)
		}
		a.Log.Error("a file of calls was cut", "client_id", x.ClientID, "request_id", x.requestID, "error", err)
		panic(http.ErrAbortHandler) // ends the connection without the end of the body
	}
	return nil
}

// allCalls counts the calls of a query that has no filters, up to one more than
// a file may have; 0 for others, which are counted as they are written.
func (a *API) allCalls(ctx context.Context, q callsQuery) (int, error) {
	if q.Narrow() {
		return 0, nil
	}
	return a.Store.CountCalls(ctx, q.CallFilter, mostExported+1)
}

// writeCalls writes the file up to its end.
func (a *API) writeCalls(ctx context.Context, by actor, q callsQuery, file *csvfile.File) error {
	list := store.CallList{CallFilter: q.CallFilter, Order: q.order, Limit: exportPage}
	columns := callColumns(by)
	head, cells := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.name
	}
	var names callNames
	for written := 0; ; {
		rows, next, err := a.Store.Calls(ctx, list)
		if err != nil {
			return err
		}
		if written += len(rows); written > mostExported {
			return fmt.Errorf("more than %d calls", mostExported)
		}
		if err := a.callNames(ctx, by, rows, &names); err != nil {
			return err
		}
		if !file.Begun() {
			file.Row(head...)
		}
		for i := range rows {
			v := viewCall(by, &names, &rows[i])
			for j, c := range columns {
				cells[j] = c.text(&v)
			}
			file.Row(cells...)
		}
		if err := file.Flush(); err != nil || next == nil {
			return err
		}
		list.After = next
	}
}

// callColumn is a column of a file of calls.
type callColumn struct {
	name string
	text func(*ownCallView) string
}

// callColumns are fixed, for one side and for the other.
func callColumns(by actor) []callColumn {
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	columns := []callColumn{
		{"id", func(v *ownCallView) string { return v.ID }},
		{"created_at", func(v *ownCallView) string { return v.CreatedAt.UTC().Format(time.RFC3339Nano) }},
		{"key_id", func(v *ownCallView) string { return string(v.KeyID) }},
		{"key_name", func(v *ownCallView) string { return orEmpty(v.KeyName) }},
		{"sub_account_id", func(v *ownCallView) string { return string(orEmpty(v.SubAccountID)) }},
		{"sub_account_name", func(v *ownCallView) string { return orEmpty(v.SubAccountName) }},
		{"provider", func(v *ownCallView) string { return v.Provider }},
		{"model", func(v *ownCallView) string { return v.Model }},
		{"model_slug", func(v *ownCallView) string { return v.Slug }},
		{"author", func(v *ownCallView) string { return v.Author }},
		{"kind", func(v *ownCallView) string { return string(orEmpty(v.Kind)) }},
		{"door", func(v *ownCallView) string { return v.Door }},
		{"status_code", func(v *ownCallView) string { return strconv.Itoa(v.StatusCode) }},
		{"parse_status", func(v *ownCallView) string { return string(v.ParseStatus) }},
		{"via_sdk", func(v *ownCallView) string { return strconv.FormatBool(v.ViaSDK) }},
		{"latency_ms", func(v *ownCallView) string { return integer(v.LatencyMS) }},
		{"first_byte_ms", func(v *ownCallView) string { return textOf(v.FirstByteMS, integer) }},
		{"total_tokens", func(v *ownCallView) string { return integer(v.TotalTokens) }},
		{"input_tokens", func(v *ownCallView) string { return integer(v.Tokens.Input) }},
		{"cached_input_tokens", func(v *ownCallView) string { return integer(v.Tokens.CachedInput) }},
		{"cache_write_tokens", func(v *ownCallView) string { return integer(v.Tokens.CacheWrite) }},
		{"output_tokens", func(v *ownCallView) string { return integer(v.Tokens.Output) }},
		{"audio_input_tokens", func(v *ownCallView) string { return integer(v.Tokens.AudioInput) }},
		{"audio_output_tokens", func(v *ownCallView) string { return integer(v.Tokens.AudioOutput) }},
		{"units", func(v *ownCallView) string { return jsonText(v.Units) }},
		{"attribution", func(v *ownCallView) string { return jsonText(v.Attribution) }},
		{"cost_usd", func(v *ownCallView) string { return v.Cost.String() }},
		{"billed_usd", func(v *ownCallView) string { return textOf(v.Billed, modelgate.Nano.String) }},
	}
	if by.SubAccountID == "" {
		columns = append(columns,
			callColumn{"margin_usd", func(v *ownCallView) string { return textOf(v.Margin, modelgate.Nano.String) }},
			callColumn{"region", func(v *ownCallView) string { return orEmpty(v.Region) }},
			callColumn{"rates", func(v *ownCallView) string { return orEmpty(v.Rates) }})
	}
	return columns
}

func orEmpty[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// textOf is "" for null.
func textOf[T any](p *T, text func(T) string) string {
	if p == nil {
		return ""
	}
	return text(*p)
}

func jsonText(v any) string {
	text, _ := json.Marshal(v, json.Deterministic(true)) // maps of plain values always marshal
	return string(text)
}

// fileWriter answers with a file. Its head is written before the first piece.
type fileWriter struct {
	http.ResponseWriter
	name string // without its ending
}

// Begin writes the head of the answer.
func (w fileWriter) Begin() {
	httpx.BoundWrites(w.ResponseWriter, exportStall)
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", `attachment; filename="`+w.name+`.csv"`)
}

// days names a window in the name of a file.
func days(from, to, now time.Time) string {
	if to.IsZero() {
		to = now
	}
	return from.UTC().Format(time.DateOnly) + "-" + to.UTC().Format(time.DateOnly)
}
