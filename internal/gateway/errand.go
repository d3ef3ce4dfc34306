package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
)

// errand is a call about a job that was made earlier. It costs nothing and is
// not booked.
type errand struct {
	role     provider.Role
	task     modelgate.TaskID
	provider string        // "" on the door: the job says which
	call     provider.Call // on the proxy: as the client made it

	job *modelgate.Job
	at  *provider.Provider
	way *provider.Way
}

// videoJobs begins the paths of a job on the door.
const videoJobs = "/v1/videos/"

const (
	// errandTime bounds an exchange about a job, but for a download.
	errandTime = time.Minute
	// ledgerTime bounds one with the ledger; flushTime the wait for this
	// instance's own jobs to be in it.
	ledgerTime = 10 * time.Second
	flushTime  = 2 * time.Second
)

var (
	errTaskAway     = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task's provider cannot be reached right now; retry shortly"}
	errTaskLedger   = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task's outcome cannot be recorded right now; retry shortly"}
	errTaskLookup   = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task cannot be looked up right now; retry shortly"}
	errTaskProvider = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task's provider is not configured any more; the operator can bring it back"}
)

// resolveTask reads a call on the door: /v1/videos/{id}, which is also
// deleted, and /v1/videos/{id}/content.
func (y *Relay) resolveTask(c *call, rest string) error {
	e := &errand{role: provider.AsyncPoll}
	c.surface = videoJobs + "{id}"
	task, content := strings.CutSuffix(rest, "/content")
	allowed := "DELETE, GET, HEAD"
	switch {
	case content:
		allowed, e.role = "GET, HEAD", provider.AsyncContent
		c.surface += "/content"
	case c.r.Method == http.MethodDelete:
		e.role = provider.AsyncCancel
	}
	if !reads(c.r.Method) && e.role != provider.AsyncCancel {
		c.w.Header().Set("Allow", allowed)
		return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use %s", allowed)
	}
	e.task = modelgate.TaskID(task)
	c.errand = e
	return nil
}

// resolveJobPath reads a call on a provider's own path for a job.
func (y *Relay) resolveJobPath(c *call, p *provider.Provider, route *provider.Route, captures provider.Captures) error {
	task, err := route.Way.Task(captures, c.r.URL.RawQuery)
	if err != nil {
		return badRequest(err)
	}
	if err := p.JudgeQuery(c.r.URL.RawQuery, route.Query); err != nil {
		return badRequest(err)
	}
	_, template, _ := strings.Cut(route.Pattern, " ")
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet // the ledger needs what a poll brings
	}
	c.surface = "/" + p.Name() + template
	c.errand = &errand{role: route.Async, task: task, provider: p.Name(), call: provider.Call{
		Method: method, Path: strings.TrimPrefix(c.r.URL.EscapedPath(), "/"+p.Name()), Query: p.ClientQuery(c.r.URL.RawQuery),
	}}
	return nil
}

// runErrand finds whose the job is, and asks its provider.
func (y *Relay) runErrand(c *call) error {
	e := c.errand
	c.room = y.Room.For(string(c.caller.ClientID))
	if _, err := httpx.ReadBody(c.r, y.MaxBody, &c.room); err != nil { // none is sent on
		return err
	}
	var err error
	if e.job, err = y.findJob(c); err != nil {
		return err
	}
	if c.caller.KeyID != e.job.KeyID && !c.permitted(&attempt{name: e.job.Provider, model: e.job.Model}) {
		return modelgate.ErrModelDenied
	}
	if e.job.Reason == modelgate.ReasonRotated {
		return modelgate.ErrCredentialGone
	}
	if e.at = c.live.Providers[e.job.Provider]; e.at == nil {
		return errTaskProvider
	}
	if err := c.caller.RefuseRegion(e.at.Region()); err != nil {
		return err
	}
	if e.way = e.at.Way(e.job.Way); e.way == nil {
		return errTaskProvider
	}
	if e.provider == "" {
		if err := e.at.JudgeJobQuery(c.r.URL.RawQuery, e.way); err != nil {
			return badRequest(err)
		}
		if !e.way.Has(e.role) {
			if e.role == provider.AsyncContent && len(e.way.File) > 0 {
				return y.handOver(c)
			}
			return modelgate.Errorf(modelgate.BadRequest, "the provider of this task has no %s of its own; what a poll answers says what there is", e.role)
		}
		if e.call, err = e.way.Call(e.role, e.job); err != nil {
			return err
		}
		if e.call.Query == "" {
			e.call.Query = e.at.ClientQuery(c.r.URL.RawQuery)
		}
	}
	e.call.Header, e.call.Credential, e.call.MadeAt = c.r.Header, e.job.Credential, e.job.CreatedAt
	switch e.role {
	case provider.AsyncContent:
		return y.download(c)
	case provider.AsyncCancel:
		return y.cancelJob(c)
	}
	return y.pollJob(c)
}

// reads reports whether a method only asks for something.
func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// reaches reports whether the job is one that the caller may know of.
func (c *call) reaches(j *modelgate.Job) bool {
	return c.caller.SubAccountID == "" || c.caller.SubAccountID == j.SubAccountID
}

// findJob looks a job up that the caller may know of. One that was made a
// moment ago may still be on its way into the ledger: from this instance it is
// waited for, and so it is for a while from others. Where this instance cannot
// book what it has answered, nobody is told that a job does not exist.
func (y *Relay) findJob(c *call) (*modelgate.Job, error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), ledgerTime)
	defer cancel()
	find := func() (*modelgate.Job, error) {
		j, err := y.Jobs.Job(ctx, c.caller.ClientID, c.errand.provider, c.errand.task)
		if err == nil && !c.reaches(j) {
			return nil, modelgate.ErrNoTask // after the same time as one that nobody has made
		}
		if err != nil && modelgate.KindOf(err) == modelgate.Internal {
			y.Log.Error("job cannot be looked up", "request_id", c.id.String(), "error", err)
			err = errTaskLookup
		}
		return j, err
	}
	j, err := find()
	if !errors.Is(err, modelgate.ErrNoTask) {
		return j, err
	}
	flush, stop := context.WithTimeout(ctx, flushTime)
	defer stop()
	missing := error(modelgate.ErrNoTask)
	if err := y.Flushed(flush); err != nil {
		y.Log.Warn("a job cannot be looked for before all calls are booked", "request_id", c.id.String(), "error", err)
		missing = errTaskLookup // it may be one that is not in the ledger yet
	}
	for pause, waited := 50*time.Millisecond, time.Duration(0); ; pause *= 2 {
		if j, err = find(); !errors.Is(err, modelgate.ErrNoTask) {
			return j, err
		}
		if waited >= y.Lag {
			return nil, missing
		}
		pause = min(pause, y.Lag-waited)
		waited += pause
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, missing
		}
	}
}

// finishJob ends the job where the news do.
func (y *Relay) finishJob(c *call, news modelgate.JobNews) error {
	final, ok := c.errand.job.Finish(news)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), ledgerTime)
	defer cancel()
	ended, err := y.Jobs.FinishJobs(ctx, []modelgate.JobFinal{final})
	if err != nil {
		y.Log.Error("the end of a job cannot be recorded; it stays pending", "request_id", c.id.String(), "task_id", c.errand.job.TaskID, "error", err)
		return errTaskLedger
	}
	for i := range ended {
		y.JobEnded(&ended[i])
	}
	c.errand.job.Status = final.Status // or another's: final in any case
	return nil
}

// JobEnded counts a job that has ended, whoever noticed.
func (y *Relay) JobEnded(f *modelgate.JobFinal) {
	y.Metrics.jobEnded(f)
	if f.Status == modelgate.JobSucceeded {
		end := modelgate.CallEnd{StatusCode: http.StatusOK, Cost: f.Cost, Usage: f.Usage}
		y.recent.note(&attempt{name: f.Job.Provider, model: f.Job.Model}, f.Job.Kind, &end, false)
	}
}

// sendErrand sends the client's request with the credential of the job. A job
// that has ended is asked for with any other where that is gone; one that is
// pending has then ended too.
func (y *Relay) sendErrand(ctx context.Context, c *call) (*http.Response, error) {
	e := c.errand
	out, err := e.at.Outbound(ctx, e.call)
	if errors.Is(err, modelgate.ErrCredentialGone) {
		if e.job.Status == modelgate.JobPending {
			return nil, y.lose(c)
		}
		e.call.Credential = ""
		out, err = e.at.Outbound(ctx, e.call)
	}
	if err != nil {
		return nil, err
	}
	resp, _, err := e.at.Send(out)
	if err != nil {
		y.unreached(c, e.at.Name(), err)
		return nil, errTaskAway
	}
	return resp, nil
}

// lose ends a job whose credential is gone.
func (y *Relay) lose(c *call) error {
	if err := y.finishJob(c, modelgate.JobNews{Event: modelgate.JobLost}); err != nil {
		return err
	}
	return modelgate.ErrCredentialGone
}

// pollJob passes on what the provider says of the job, errors too, once the
// ledger knows it.
func (y *Relay) pollJob(c *call) error {
	e := c.errand
	ctx, cancel := context.WithTimeout(c.r.Context(), errandTime)
	defer cancel()
	resp, err := y.sendErrand(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, plain, err := provider.ReadReply(resp)
	if err != nil {
		y.jobAway(c, err)
		return errTaskAway
	}
	if e.job.Status == modelgate.JobPending {
		if err := y.learn(ctx, c, resp, plain); err != nil {
			return err
		}
	}
	return y.answer(c, resp, raw, plain)
}

// learn takes news out of a reply.
func (y *Relay) learn(ctx context.Context, c *call, resp *http.Response, body []byte) error {
	e, status := c.errand, resp.StatusCode
	if e.role == provider.AsyncResult {
		if status >= 200 && status <= 299 {
			if news, ok := e.way.ReadResult(status, resp.Header, body); ok {
				return y.finishJob(c, news)
			}
		}
		return nil // it may still be running: its state tells
	}
	news, err := e.at.Result(ctx, e.job, e.way.Read(status, body))
	if err != nil {
		y.jobAway(c, err)
		return errTaskAway
	}
	return y.finishJob(c, news)
}

// answer passes on a reply that was taken in.
func (y *Relay) answer(c *call, resp *http.Response, raw, plain []byte) error {
	raw, fine := c.tell(c.errand.at, resp, raw, plain)
	if !fine {
		return errTaskAway
	}
	c.replyHeaders(c.errand.at, resp.Header)
	y.Metrics.errand(c, resp.StatusCode)
	c.w.WriteHeader(resp.StatusCode)
	_, _ = c.w.Write(raw) // a client that has left gets nothing
	return nil
}

// cancelJob lets the provider end the job. It is polled before, because one
// that has come to its end unnoticed is charged, and cannot be cancelled.
func (y *Relay) cancelJob(c *call) error {
	e := c.errand
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), errandTime)
	defer cancel()
	if err := y.refresh(ctx, c); err != nil {
		return err
	}
	resp, err := y.sendErrand(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, plain, err := provider.ReadReply(resp)
	if err != nil {
		return errTaskAway
	}
	if accepted := resp.StatusCode >= 200 && resp.StatusCode <= 299; accepted {
		news := e.way.Read(resp.StatusCode, plain)
		if news.Event == modelgate.JobRuns && !e.way.Asks {
			news.Event = modelgate.JobIsCancelled
		}
		if err := y.finishJob(c, news); err != nil {
			return err
		}
	}
	return y.answer(c, resp, raw, plain)
}

// refresh asks how a job stands that is pending as far as is known.
func (y *Relay) refresh(ctx context.Context, c *call) error {
	e := c.errand
	if e.job.Status != modelgate.JobPending {
		return nil
	}
	news, err := e.at.Ask(ctx, e.job)
	switch {
	case errors.Is(err, modelgate.ErrCredentialGone):
		return y.lose(c)
	case err != nil:
		y.jobAway(c, err)
		return errTaskAway
	}
	return y.finishJob(c, news)
}

// jobAway notes that the provider of a job was not reached, or has not answered
// what it was asked.
func (y *Relay) jobAway(c *call, err error) {
	var unreachable *provider.Unreachable
	if errors.As(err, &unreachable) {
		y.unreached(c, c.errand.at.Name(), err)
		return
	}
	y.Log.Warn("a job's provider does not answer", "request_id", c.id.String(), "provider", c.errand.at.Name(), "error", err)
}

// download streams what the job has made.
func (y *Relay) download(c *call) error {
	e := c.errand
	c.free = true
	c.attempts = []attempt{{name: e.at.Name(), provider: e.at}}
	defer y.watch(c)()
	e.call.Set = map[string]string{}
	for _, name := range []string{"Range", "If-Range"} {
		if value := c.r.Header.Get(name); value != "" {
			e.call.Set[name] = value
		}
	}
	resp, err := y.sendErrand(&c.life, c)
	switch {
	case errors.Is(err, errTaskAway):
		c.fail(err)
		return nil
	case err != nil:
		return err
	}
	defer func() { resp.Body.Close() }()
	if next := e.at.Redirected(e.way, resp); next != nil {
		resp.Body.Close()
		e.call.Method, e.call.Path, e.call.Query = next.Method, next.Path, next.Query
		if resp, err = y.sendErrand(&c.life, c); err != nil {
			c.fail(err)
			return nil
		}
	}
	if c.r.Method == http.MethodHead {
		return y.answer(c, resp, nil, nil)
	}
	y.Metrics.errand(c, resp.StatusCode)
	y.pass(c, resp)
	return nil
}
