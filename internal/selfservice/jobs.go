package selfservice

import (
	"context"
	"strconv"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/null"
	"modelgate/internal/store"
)

// jobView is a job in the ledger.
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

// viewJob shows a job. It does not reveal which provider serves it. An end
// customer sees billed prices, and the slug in place of the native model.
func viewJob(by actor, j *modelgate.Job) jobView {
	v := jobView{
		j.TaskID, j.Author, j.Model, j.Kind, j.Status, j.Provisional.Billed(by.Markup), j.Final.Billed(by.Markup), null.IfZero(j.Reason),
		j.Attribution, j.CreatedAt, null.IfZero(j.FinalizedAt),
	}
	switch {
	case j.Slug == "":
		v.Provider = uncatalogued
	case by.SubAccountID != "":
		v.Model = j.Slug
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
	scope         string // key or client
	status        string
	kind          string
	after, before time.Time // zero: no bound
	limit         int
	cursor        *string
}

// The bounds of limit; a value outside is moved to the nearer one.
const (
	defaultJobs = 100
	mostJobs    = 500
)

func (q *jobQuery) read(x *exchange) error {
	p := x.query
	q.status = p.Filter("status")
	q.kind = p.Filter("kind")
	q.scope = httpx.OneOf(p, "scope", "key", "key", "client")
	after, _ := p.Text("created_after")
	before, _ := p.Text("created_before")
	q.after, q.before = bound(after), bound(before)
	limit, _ := p.Text("limit")
	q.limit = clampLimit(limit)
	if q.cursor = x.cursor(); q.cursor != nil && *q.cursor == "" {
		q.cursor = nil // next_cursor of the last page, sent back
	}
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

func (a *API) jobs(ctx context.Context, by actor, q jobQuery) (jobPage, error) {
	list := store.JobList{
		Status: modelgate.JobStatus(q.status), Kind: modelgate.ModelKind(q.kind),
		CreatedAfter: q.after, CreatedBefore: q.before, Limit: q.limit,
	}
	scope := q.scope
	if scope == "client" {
		list.SubAccountID = by.SubAccountID
	} else {
		scope = string(by.KeyID)
		list.KeyID = by.KeyID
	}
	filter := filter("async", by, scope, q.status, q.kind, q.after.UTC().String(), q.before.UTC().String())
	var err error
	if list.After, err = a.after(q.cursor, filter); err != nil {
		return jobPage{}, err
	}
	a.settle(ctx)
	rows, more, err := a.Store.Jobs(ctx, by.ClientID, list)
	return jobPage{
		views(rows, func(j *modelgate.Job) jobView { return viewJob(by, j) }),
		next(a, filter, rows, more, func(j *modelgate.Job) (time.Time, string) { return j.CreatedAt, j.ID.String() }),
	}, err
}
