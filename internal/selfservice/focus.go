package selfservice

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/focus"
	"modelgate/internal/focus/source"
	"modelgate/internal/httpx"
)

const (
	mostTags      = 8
	mostTagValues = 1000 // of each tag
	// focusPatience bounds the time that a file takes.
	focusPatience = 30 * time.Minute
)

// focusQuery is the query of GET /gw/focus.
type focusQuery struct {
	from, to   time.Time
	hourly     bool
	billed     bool
	tags       []string
	subAccount modelgate.SubAccountID
}

func (q *focusQuery) read(x *exchange) error {
	p := x.query
	from, gaveFrom := p.Text("from")
	to, gaveTo := p.Text("to")
	q.hourly = httpx.OneOf(p, "granularity", "day", "day", "hour") == "hour"
	view := httpx.OneOf(p, "view", "", "cost", "billed")
	q.billed = view == "billed" || view == "" && x.SubAccountID != ""
	format, _ := p.Text("format")
	tags, _ := p.Text("tags")
	sub, _ := p.Text("sub_account_id")
	if err := p.Err(); err != nil {
		return err
	}
	if q.subAccount = modelgate.SubAccountID(sub); x.SubAccountID != "" {
		if !q.billed || sub != "" && q.subAccount != x.SubAccountID {
			return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account reads what its sub-account is billed")
		}
		q.subAccount = x.SubAccountID
	}
	if format != "" && format != "csv" {
		return modelgate.Errorf(modelgate.BadRequest, "unknown format %q; use csv", format)
	}
	if !gaveFrom || !gaveTo {
		return modelgate.Errorf(modelgate.BadRequest, "from and to are required")
	}
	var err error
	if q.from, q.to, err = focus.Window(from, to, q.hourly); err != nil {
		return modelgate.Errorf(modelgate.BadRequest, "%s", err.Error())
	}
	if tags != "" {
		q.tags = slices.Compact(slices.Sorted(strings.SplitSeq(tags, ",")))
	}
	if len(q.tags) > mostTags {
		return modelgate.Errorf(modelgate.BadRequest, "at most %d tags", mostTags)
	}
	return nil
}

// focus is GET /gw/focus. The answer is made while it is sent; one that fails on
// the way is cut.
func (a *API) focus(_ context.Context, x *exchange) error {
	var q focusQuery
	if err := x.read(q.read); err != nil {
		return err
	}
	done, err := a.questions.Export(x.asker())
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(x.r.Context(), focusPatience)
	defer cancel()
	a.settle(ctx)
	final, err := a.checkFocus(ctx, x, &q)
	if err != nil {
		return err
	}
	export, err := source.Export(ctx, a.Store, a.Focus, a.Catalog(), x.ClientID, q.subAccount)
	if err != nil {
		return err
	}
	export.From, export.To, export.Hourly, export.Billed, export.Tags = q.from, q.to, q.hourly, q.billed, q.tags
	record := a.audit(x.actor, "focus.export", "client", string(x.ClientID), map[string]any{
		"from": q.from, "to": q.to, "billed": q.billed, "sub_account_id": q.subAccount,
	})
	if err := a.Store.AddAudit(ctx, x.ClientID, record); err != nil {
		return err
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="focus-1.3-%s-%s.csv"`, q.from.Format(time.DateOnly), q.to.Format(time.DateOnly)))
	h.Set("X-Gateway-Final-Through", final.UTC().Format(time.RFC3339))
	httpx.BoundWrites(x.w, exportStall)
	if err := export.Write(ctx, x.w, true); err != nil {
		a.Log.Error("a FOCUS export was cut", "client_id", x.ClientID, "request_id", x.requestID, "error", err)
		panic(http.ErrAbortHandler) // ends the connection without the end of the body
	}
	return nil
}

// checkFocus refuses what cannot be answered, before anything is sent, and
// returns until when rows can no longer change.
func (a *API) checkFocus(ctx context.Context, x *exchange, q *focusQuery) (final time.Time, err error) {
	pruned, final, err := a.Store.UsageBounds(ctx, x.ClientID)
	if err != nil {
		return final, err
	}
	if q.from.Before(pruned) {
		return final, modelgate.Errorf(modelgate.BadRequest, "usage before %s is pruned", pruned.UTC().Format(time.DateOnly))
	}
	for _, tag := range q.tags {
		n, err := a.Store.TagValues(ctx, x.ClientID, q.subAccount, q.from, q.to, tag, mostTagValues+1)
		if err != nil {
			return final, err
		}
		if n > mostTagValues {
			return final, modelgate.Errorf(modelgate.BadRequest, "tag %q has more than %d values in this window", tag, mostTagValues)
		}
	}
	return final, nil
}
