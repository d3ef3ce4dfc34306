package selfservice

import (
	"context"
	"strconv"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// jobView is a job in the ledger (spec: Async job ledger entry).
type jobView struct {
	TaskID      modelgate.TaskID     `json:"task_id"`
	Provider    string               `json:"provider"`
	Model       string               `json:"model"`
	Kind        modelgate.ModelKind  `json:"kind"`
	Status      modelgate.JobStatus  `json:"status"`
	Provisional modelgate.Nano       `json:"provisional_cost_usd"`
	Final       modelgate.Nano       `json:"final_cost_usd"`
	Reason      *modelgate.JobReason `json:"expiration_reason"`
	Attribution map[string]string    `json:"attribution"`
	CreatedAt   time.Time            `json:"created_at"`
	FinalizedAt *time.Time           `json:"finalized_at"`
}

// uncatalogued stands for the vendor of a route that the catalog does not
// know.
const uncatalogued = "other"

// viewJob shows a job. Nobody learns which provider serves it; an end customer
// sees billed prices, and what it asked for in place of the native model.
func viewJob(b by, j *modelgate.Job) jobView {
	v := jobView{
		TaskID: j.TaskID, Provider: j.Author, Model: j.Model, Kind: j.Kind, Status: j.Status,
		Provisional: j.Provisional, Final: j.Final, Attribution: j.Attribution, CreatedAt: j.CreatedAt,
	}
	if j.Slug == "" {
		v.Provider = uncatalogued
	}
	if j.Reason != "" {
		v.Reason = &j.Reason
	}
	if !j.FinalizedAt.IsZero() {
		v.FinalizedAt = &j.FinalizedAt
	}
	if b.SubAccountID != "" {
		v.Provisional, v.Final = j.Provisional.Billed(b.Markup), j.Final.Billed(b.Markup)
		if j.Slug != "" {
			v.Model = j.Slug
		}
	}
	return v
}

// jobPage is the answer of GET /gw/async.
type jobPage struct {
	Data []jobView `json:"data"`
	Next string    `json:"next_cursor"`
}

// jobQuery is the query of GET /gw/async.
type jobQuery struct {
	whole         bool // scope=client
	status        string
	kind          string
	after, before time.Time // zero: no bound
	limit         int
	cursor        string
	paged         bool
}

// The bounds of limit; a value outside is moved to the nearer one.
const (
	defaultJobs = 100
	mostJobs    = 500
)

func (q *jobQuery) read(x *exchange) error {
	p := x.query
	var err error
	if q.status, err = p.Filter("status"); err != nil {
		return err
	}
	if q.kind, err = p.Filter("kind"); err != nil {
		return err
	}
	scope, scoped, err := p.Text("scope")
	if err != nil {
		return err
	}
	var after, before, limit string
	for name, into := range map[string]*string{"created_after": &after, "created_before": &before, "limit": &limit} {
		if *into, _, err = p.Text(name); err != nil {
			return err
		}
	}
	if q.cursor, q.paged, err = p.Text("cursor"); err != nil {
		return err
	}
	q.paged = q.paged && q.cursor != "" // next_cursor of the last page, sent back
	switch {
	case !scoped, scope == "key":
	case scope == "client":
		q.whole = true
	default:
		return modelgate.Errorf(modelgate.BadRequest, "scope must be key or client")
	}
	q.after, q.before = bound(after), bound(before)
	q.limit = clampLimit(limit)
	return nil
}

// bound reads an instant; one that is malformed bounds nothing.
func bound(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

func clampLimit(text string) int {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && n == 0 {
		return defaultJobs
	}
	return int(min(max(n, 1), mostJobs))
}

func (a *API) jobs(ctx context.Context, b by, q jobQuery) (jobPage, error) {
	list := store.JobList{
		Status: modelgate.JobStatus(q.status), Kind: modelgate.ModelKind(q.kind),
		CreatedAfter: q.after, CreatedBefore: q.before, Limit: q.limit,
	}
	scope := "client"
	if q.whole {
		list.SubAccountID = b.SubAccountID
	} else {
		scope = string(b.KeyID)
		list.KeyID = b.KeyID
	}
	filter := filter("async", b, scope, q.status, q.kind, q.after.UTC().String(), q.before.UTC().String())
	var err error
	if list.After, err = a.after(q.cursor, q.paged, filter); err != nil {
		return jobPage{}, err
	}
	a.settle(ctx)
	rows, more, err := a.Store.Jobs(ctx, b.ClientID, list)
	if err != nil {
		return jobPage{}, err
	}
	out := jobPage{Data: make([]jobView, 0, len(rows))}
	for i := range rows {
		out.Data = append(out.Data, viewJob(b, &rows[i]))
	}
	if more {
		last := rows[len(rows)-1]
		out.Next = a.Cursors.Sign(httpx.Position{At: last.CreatedAt, ID: last.ID.String()}, filter)
	}
	return out, nil
}
