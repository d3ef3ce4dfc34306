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

// jobRequest is a call about a job that was made earlier. It costs nothing and is
// not booked.
type jobRequest struct {
	role     provider.Role
	task     modelgate.TaskID
	provider string        // "" on the door: the job says which
	call     provider.Call // on the proxy: as the client made it

	job *modelgate.Job
	at  *provider.Provider
	way *provider.JobProtocol
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
func (g *Gateway) resolveTask(c *call, rest string) error {
	e := &jobRequest{role: provider.AsyncPoll}
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
	c.jobRequest = e
	return nil
}

// resolveJobPath reads a call on a provider's own path for a job.
func (g *Gateway) resolveJobPath(c *call, p *provider.Provider, route *provider.Route, captures provider.Captures) error {
	task, err := route.Job.Task(captures, c.r.URL.RawQuery)
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
	c.jobRequest = &jobRequest{role: route.Async, task: task, provider: p.Name(), call: provider.Call{
		Method: method, Path: strings.TrimPrefix(c.r.URL.EscapedPath(), "/"+p.Name()), Query: p.ClientQuery(c.r.URL.RawQuery),
	}}
	return nil
}

// runErrand finds whose the job is, and asks its provider.
func (g *Gateway) runErrand(c *call) error {
	e := c.jobRequest
	c.room = g.Memory.For(string(c.caller.ClientID))
	if _, err := httpx.ReadBody(c.r, g.MaxBody, &c.room); err != nil { // none is sent on
		return err
	}
	var err error
	if e.job, err = g.findJob(c); err != nil {
		return err
	}
	if c.caller.KeyID != e.job.KeyID && !c.permitted(&attempt{name: e.job.Provider, model: e.job.Model}) {
		return modelgate.ErrModelDenied
	}
	if e.job.Reason == modelgate.ReasonRotated {
		return modelgate.ErrCredentialGone
	}
	if e.at = c.snapshot.Providers[e.job.Provider]; e.at == nil {
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
				return g.redirectDownload(c)
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
		return g.download(c)
	case provider.AsyncCancel:
		return g.cancelJob(c)
	}
	return g.pollJob(c)
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
func (g *Gateway) findJob(c *call) (*modelgate.Job, error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), ledgerTime)
	defer cancel()
	find := func() (*modelgate.Job, error) {
		j, err := g.Jobs.Job(ctx, c.caller.ClientID, c.jobRequest.provider, c.jobRequest.task)
		if err == nil && !c.reaches(j) {
			return nil, modelgate.ErrNoTask // after the same time as one that nobody has made
		}
		if err != nil && modelgate.KindOf(err) == modelgate.Internal {
			g.Log.Error("job cannot be looked up", "request_id", c.id.String(), "error", err)
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
	if err := g.Flushed(flush); err != nil {
		g.Log.Warn("a job cannot be looked for before all calls are booked", "request_id", c.id.String(), "error", err)
		missing = errTaskLookup // it may be one that is not in the ledger yet
	}
	for pause, waited := 50*time.Millisecond, time.Duration(0); ; pause *= 2 {
		if j, err = find(); !errors.Is(err, modelgate.ErrNoTask) {
			return j, err
		}
		if waited >= g.Lag {
			return nil, missing
		}
		pause = min(pause, g.Lag-waited)
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
func (g *Gateway) finishJob(c *call, news modelgate.JobNews) error {
	final, ok := c.jobRequest.job.Finish(news)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), ledgerTime)
	defer cancel()
	ended, err := g.Jobs.FinishJobs(ctx, []modelgate.JobFinal{final})
	if err != nil {
		g.Log.Error("the end of a job cannot be recorded; it stays pending", "request_id", c.id.String(), "task_id", c.jobRequest.job.TaskID, "error", err)
		return errTaskLedger
	}
	for i := range ended {
		g.JobEnded(&ended[i])
	}
	c.jobRequest.job.Status = final.Status // or another's: final in any case
	return nil
}

// JobEnded counts a job that has ended, whoever noticed.
func (g *Gateway) JobEnded(f *modelgate.JobFinal) {
	g.Metrics.jobEnded(f)
	if f.Status == modelgate.JobSucceeded {
		end := modelgate.CallEnd{StatusCode: http.StatusOK, Cost: f.Cost, Usage: f.Usage}
		g.recent.note(&attempt{name: f.Job.Provider, model: f.Job.Model}, f.Job.Kind, &end, false)
	}
}

// sendErrand sends the client's request with the credential of the job. A job
// that has ended is asked for with any other where that is gone; one that is
// pending has then ended too.
func (g *Gateway) sendErrand(ctx context.Context, c *call) (*http.Response, error) {
	e := c.jobRequest
	out, err := e.at.Outbound(ctx, e.call)
	if errors.Is(err, modelgate.ErrCredentialGone) {
		if e.job.Status == modelgate.JobPending {
			return nil, g.lose(c)
		}
		e.call.Credential = ""
		out, err = e.at.Outbound(ctx, e.call)
	}
	if err != nil {
		return nil, err
	}
	resp, _, err := e.at.Send(out)
	if err != nil {
		g.unreached(c, e.at.Name(), err)
		return nil, errTaskAway
	}
	return resp, nil
}

// lose ends a job whose credential is gone.
func (g *Gateway) lose(c *call) error {
	if err := g.finishJob(c, modelgate.JobNews{Event: modelgate.JobLost}); err != nil {
		return err
	}
	return modelgate.ErrCredentialGone
}

// pollJob passes on what the provider says of the job, errors too, once the
// ledger knows it.
func (g *Gateway) pollJob(c *call) error {
	e := c.jobRequest
	ctx, cancel := context.WithTimeout(c.r.Context(), errandTime)
	defer cancel()
	resp, err := g.sendErrand(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, plain, err := provider.ReadReply(resp)
	if err != nil {
		g.jobAway(c, err)
		return errTaskAway
	}
	if e.job.Status == modelgate.JobPending {
		if err := g.learn(ctx, c, resp, plain); err != nil {
			return err
		}
	}
	return g.answer(c, resp, raw, plain)
}

// learn takes news out of a reply.
func (g *Gateway) learn(ctx context.Context, c *call, resp *http.Response, body []byte) error {
	e, status := c.jobRequest, resp.StatusCode
	if e.role == provider.AsyncResult {
		if status >= 200 && status <= 299 {
			if news, ok := e.way.ReadResult(status, resp.Header, body); ok {
				return g.finishJob(c, news)
			}
		}
		return nil // it may still be running: its state tells
	}
	news, err := e.at.Result(ctx, e.job, e.way.Read(status, body))
	if err != nil {
		g.jobAway(c, err)
		return errTaskAway
	}
	return g.finishJob(c, news)
}

// answer passes on a reply that was taken in.
func (g *Gateway) answer(c *call, resp *http.Response, raw, plain []byte) error {
	raw, fine := c.tell(c.jobRequest.at, resp, raw, plain)
	if !fine {
		return errTaskAway
	}
	c.replyHeaders(c.jobRequest.at, resp.Header)
	g.Metrics.errand(c, resp.StatusCode)
	c.w.WriteHeader(resp.StatusCode)
	_, _ = c.w.Write(raw) // a client that has left gets nothing
	return nil
}

// cancelJob lets the provider end the job. It is polled before, because one
// that has come to its end unnoticed is charged, and cannot be cancelled.
func (g *Gateway) cancelJob(c *call) error {
	e := c.jobRequest
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), errandTime)
	defer cancel()
	if err := g.refresh(ctx, c); err != nil {
		return err
	}
	resp, err := g.sendErrand(ctx, c)
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
		if err := g.finishJob(c, news); err != nil {
			return err
		}
	}
	return g.answer(c, resp, raw, plain)
}

// refresh asks how a job stands that is pending as far as is known.
func (g *Gateway) refresh(ctx context.Context, c *call) error {
	e := c.jobRequest
	if e.job.Status != modelgate.JobPending {
		return nil
	}
	news, err := e.at.Ask(ctx, e.job)
	switch {
	case errors.Is(err, modelgate.ErrCredentialGone):
		return g.lose(c)
	case err != nil:
		g.jobAway(c, err)
		return errTaskAway
	}
	return g.finishJob(c, news)
}

// jobAway notes that the provider of a job was not reached, or has not answered
// what it was asked.
func (g *Gateway) jobAway(c *call, err error) {
	var unreachable *provider.Unreachable
	if errors.As(err, &unreachable) {
		g.unreached(c, c.jobRequest.at.Name(), err)
		return
	}
	g.Log.Warn("a job's provider does not answer", "request_id", c.id.String(), "provider", c.jobRequest.at.Name(), "error", err)
}

// download streams what the job has made.
func (g *Gateway) download(c *call) error {
	e := c.jobRequest
	c.free = true
	c.attempts = []attempt{{name: e.at.Name(), provider: e.at}}
	defer g.watch(c)()
	e.call.Set = map[string]string{}
	for _, name := range []string{"Range", "If-Range"} {
		if value := c.r.Header.Get(name); value != "" {
			e.call.Set[name] = value
		}
	}
	resp, err := g.sendErrand(&c.life, c)
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
		if resp, err = g.sendErrand(&c.life, c); err != nil {
			c.fail(err)
			return nil
		}
	}
	if c.r.Method == http.MethodHead {
		return g.answer(c, resp, nil, nil)
	}
	g.Metrics.errand(c, resp.StatusCode)
	g.streamReply(c, resp)
	return nil
}
