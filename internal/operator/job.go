package operator

import (
	"context"
	"errors"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/jobs"
	"modelgate/internal/null"
	"modelgate/internal/pricing"
	"modelgate/internal/store"
)

// jobView is an asynchronous job of any organization.
type jobView struct {
	ID           string                  `json:"id"` // and that of its usage row
	TaskID       modelgate.TaskID        `json:"task_id"`
	Organization modelgate.ClientID      `json:"organization_id"`
	KeyID        modelgate.KeyID         `json:"key_id"`
	SubAccountID *modelgate.SubAccountID `json:"sub_account_id"`
	Provider     string                  `json:"provider"`
	Model        string                  `json:"model"`
	Kind         modelgate.ModelKind     `json:"kind"`
	Status       modelgate.JobStatus     `json:"status"`
	Reason       *modelgate.JobReason    `json:"expiration_reason"`
	Provisional  modelgate.Nano          `json:"provisional_cost_usd"`
	Final        modelgate.Nano          `json:"final_cost_usd"`
	CreatedAt    time.Time               `json:"created_at"`
	Deadline     time.Time               `json:"deadline"`
	FinalizedAt  *time.Time              `json:"finalized_at"`
}

func viewJob(j *modelgate.Job) jobView {
	return jobView{
		j.ID.String(), j.TaskID, j.ClientID, j.KeyID, null.IfZero(j.SubAccountID), j.Provider, j.Model, j.Kind, j.Status,
		null.IfZero(j.Reason), j.Provisional, j.Final, j.CreatedAt, j.Deadline, null.IfZero(j.FinalizedAt),
	}
}

// jobs lists jobs of one organization or of all, the newest first.
func (a *API) jobs(ctx context.Context, x *exchange) (any, error) {
	p := x.query
	list := store.JobList{
		Status: httpx.OneOf(p, "status", "", modelgate.JobPending, modelgate.JobSucceeded, modelgate.JobFailed, modelgate.JobCancelled, modelgate.JobExpired),
		Limit:  p.Int("limit", 1, 200, 50),
	}
	cursor, continued := p.Text("cursor")
	org, err := x.organizationFilter()
	if err != nil {
		return nil, err
	}
	filter := strings.Join([]string{"operator jobs", string(org), string(list.Status)}, "\x00")
	if continued {
		at, err := a.Cursors.Read(cursor, filter)
		if err != nil {
			return nil, err
		}
		list.After = &store.Cursor{At: at.At, ID: at.ID}
	}
	var found []modelgate.Job
	var more bool
	if org == "" {
		found, more, err = a.Store.JobsOfAll(ctx, list)
	} else {
		found, more, err = a.Store.Jobs(ctx, org, list)
	}
	if err != nil {
		return nil, err
	}
	if more {
		last := &found[len(found)-1]
		x.w.Header().Set("X-Next-Cursor", a.Cursors.Sign(httpx.Position{At: last.CreatedAt, ID: last.ID.String()}, filter))
	}
	views := []jobView{}
	for i := range found {
		views = append(views, viewJob(&found[i]))
	}
	return views, nil
}

// pollJob asks a job's provider for its state now, and ends the job where it has
// ended there.
func (a *API) pollJob(ctx context.Context, x *exchange) (any, error) {
	org, err := x.org()
	if err = errors.Join(err, x.ready(), httpx.SkipBody(x.r, x.maxBody)); err != nil {
		return nil, err
	}
	name, task := x.r.PathValue("provider"), modelgate.TaskID(x.r.PathValue("task_id"))
	job, err := a.Store.Job(ctx, org, name, task)
	if errors.Is(err, modelgate.ErrNoTask) {
		return nil, modelgate.Errorf(modelgate.NotFound, "job not found")
	}
	if err != nil || job.Status != modelgate.JobPending {
		return answerJob(job, err)
	}
	at := a.Providers()[job.Provider]
	if at == nil {
		return nil, modelgate.Errorf(modelgate.Unavailable, "provider %s is not configured any more", job.Provider)
	}
	if err := a.Store.AddAudit(ctx, org, a.audit(x, org, "job.poll", "job", job.ID.String(), nil)); err != nil {
		return nil, err
	}
	news, err := jobs.Client{Provider: at}.Poll(ctx, job)
	switch {
	case errors.Is(err, modelgate.ErrCredentialGone):
		news = modelgate.JobNews{Event: modelgate.JobLost}
	case err != nil:
		a.Log.Warn("a job's provider could not be asked", "provider", job.Provider, "task_id", job.TaskID, "error", err)
		return nil, modelgate.Errorf(modelgate.Unavailable, "provider %s could not be asked for the job; its test says more", job.Provider)
	}
	if final, ends := pricing.FinishJob(job, news); ends {
		ended, err := a.Store.FinishJobs(ctx, []modelgate.JobFinal{final})
		if err != nil {
			return nil, err
		}
		for i := range ended {
			a.JobEnded(&ended[i])
		}
	}
	return answerJob(a.Store.Job(ctx, org, name, task))
}

func answerJob(job *modelgate.Job, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return viewJob(job), nil
}
