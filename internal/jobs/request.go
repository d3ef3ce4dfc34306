package jobs

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/target"
)

// DoorPath begins the paths of a job on the door.
const DoorPath = "/v1/videos/"

const (
	// requestTimeout bounds an exchange with a provider, except for a download.
	requestTimeout = time.Minute
	// ledgerTimeout bounds one with the ledger, flushTimeout the wait for this
	// instance's own jobs to be in it.
	ledgerTimeout = 10 * time.Second
	flushTimeout  = 2 * time.Second
)

var (
	errUnreached     = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task's provider cannot be reached right now; retry shortly"}
	errNotRecorded   = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task's outcome cannot be recorded right now; retry shortly"}
	errNoLookup      = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task cannot be looked up right now; retry shortly"}
	errNotConfigured = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the task's provider is not configured any more; the operator can bring it back"}
)

// Request is a client's request about a job. It costs nothing and is not booked.
// Who makes one sets the exported fields down to Providers.
type Request struct {
	W         http.ResponseWriter
	R         *http.Request
	ID        modelgate.UUID
	Caller    *modelgate.Caller // may use inference
	Catalog   *modelgate.Catalog
	Providers map[string]*provider.Provider

	// Surface is the pattern of the path, set by Door and Proxy.
	Surface string

	role   provider.Role
	task   modelgate.TaskID
	byDoor bool // not on a provider's own path
	call   provider.Call

	job      *modelgate.Job
	provider Client
	protocol *provider.JobProtocol
}

// Door serves a request on DoorPath: {id}, which may also be deleted, and
// {id}/content. An error is to be answered by the caller.
func (h *Handler) Door(q *Request) error {
	task, content := strings.CutSuffix(strings.TrimPrefix(q.R.URL.Path, DoorPath), "/content")
	q.Surface, q.role, q.byDoor = DoorPath+"{id}", provider.AsyncPoll, true
	allowed := "DELETE, GET, HEAD"
	switch {
	case content:
		allowed, q.role = "GET, HEAD", provider.AsyncContent
		q.Surface += "/content"
	case q.R.Method == http.MethodDelete:
		q.role = provider.AsyncCancel
	}
	if q.R.Method != http.MethodGet && q.R.Method != http.MethodHead && q.role != provider.AsyncCancel {
		q.W.Header().Set("Allow", allowed)
		return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use %s", allowed)
	}
	q.task = modelgate.TaskID(task)
	return h.serve(q, "")
}

// Proxy serves a request on a provider's own path for a job.
func (h *Handler) Proxy(q *Request, p *provider.Provider, route *provider.Route, captures target.Captures) (err error) {
	_, template, _ := strings.Cut(route.Pattern, " ")
	q.Surface, q.role = "/"+p.Name()+template, route.Async
	if q.task, err = route.Job.Task(captures, q.R.URL.RawQuery); err != nil {
		return badRequest(err)
	}
	if err := p.JudgeQuery(q.R.URL.RawQuery, route.Query); err != nil {
		return badRequest(err)
	}
	method := q.R.Method
	if method == http.MethodHead {
		method = http.MethodGet // the ledger needs what a poll brings
	}
	q.call = provider.Call{
		Method: method, Path: strings.TrimPrefix(q.R.URL.EscapedPath(), "/"+p.Name()), Query: p.ClientQuery(q.R.URL.RawQuery),
	}
	return h.serve(q, p.Name())
}

// badRequest turns what the parser of a query says into an answer.
func badRequest(err error) error {
	if syntax, ok := errors.AsType[*reqscan.SyntaxError](err); ok {
		return modelgate.Errorf(modelgate.BadRequest, "%s", syntax.Message)
	}
	return err
}

// serve finds the job, at any provider for "", and asks its provider.
func (h *Handler) serve(q *Request, at string) error {
	if err := h.readBody(q); err != nil {
		return err
	}
	var err error
	if q.job, err = h.find(q, at); err != nil {
		return err
	}
	if err := q.permit(); err != nil {
		return err
	}
	if q.byDoor {
		if q.role == provider.AsyncContent && !q.protocol.Has(q.role) && len(q.protocol.File) > 0 {
			return h.redirectDownload(q)
		}
		if err := q.translate(); err != nil {
			return err
		}
	}
	q.authorize()
	switch q.role {
	case provider.AsyncContent:
		return h.download(q)
	case provider.AsyncCancel:
		return h.cancel(q)
	}
	return h.poll(q)
}

// readBody reads the request's body, which goes nowhere.
func (h *Handler) readBody(q *Request) error {
	memory := h.Memory.For(string(q.Caller.ClientID))
	defer memory.Release()
	defer memory.Recycle()
	_, err := httpx.ReadBody(q.R, h.MaxBody, &memory)
	return err
}

// permit finds the provider of the job, and refuses a caller that may not use
// it. The key that made a job may always ask for it.
func (q *Request) permit() error {
	if q.Caller.KeyID != q.job.KeyID && !q.Caller.PermitNative(q.Catalog, q.job.Provider, q.job.Model) {
		return modelgate.ErrModelDenied
	}
	if q.job.Reason == modelgate.ReasonRotated {
		return modelgate.ErrCredentialGone
	}
	p := q.Providers[q.job.Provider]
	if p == nil {
		return errNotConfigured
	}
	if err := q.Caller.RefuseRegion(p.Region(q.job.Model)); err != nil {
		return err
	}
	if q.protocol = p.JobProtocol(q.job.Protocol); q.protocol == nil {
		return errNotConfigured
	}
	q.provider = Client{p}
	if q.byDoor {
		return badRequest(p.JudgeJobQuery(q.R.URL.RawQuery, q.protocol))
	}
	return nil
}

// translate makes a request on the door one on the provider's own path.
func (q *Request) translate() (err error) {
	if !q.protocol.Has(q.role) {
		return modelgate.Errorf(modelgate.BadRequest, "the provider of this task has no %s of its own; what a poll answers says what there is", q.role)
	}
	if q.call, err = q.protocol.Call(q.role, q.job); err != nil {
		return err
	}
	if q.call.Query == "" {
		q.call.Query = q.provider.ClientQuery(q.R.URL.RawQuery)
	}
	return nil
}

// authorize has the call to the provider made with the credential of the job.
func (q *Request) authorize() {
	q.call.Header, q.call.Credential, q.call.MadeAt = q.R.Header, q.job.Credential, q.job.CreatedAt
}

// find looks a job up that the caller may know of. One that was made a moment
// ago may still be on its way into the ledger: the handler waits until this
// instance has booked its own, and for Lag for those of others. Where this
// instance cannot book its calls, nobody is told that a job does not exist.
func (h *Handler) find(q *Request, at string) (*modelgate.Job, error) {
	ctx, cancel := context.WithTimeout(q.R.Context(), ledgerTimeout)
	defer cancel()
	j, err := h.lookUp(ctx, q, at)
	if !errors.Is(err, modelgate.ErrNoTask) {
		return j, err
	}
	flush, stop := context.WithTimeout(ctx, flushTimeout)
	defer stop()
	missing := error(modelgate.ErrNoTask)
	if err := h.Flushed(flush); err != nil {
		h.Log.Warn("a job cannot be looked for before all calls are booked", "request_id", q.ID.String(), "error", err)
		missing = errNoLookup // it may be one that is not in the ledger yet
	}
	for pause, waited := 50*time.Millisecond, time.Duration(0); ; pause *= 2 {
		if j, err = h.lookUp(ctx, q, at); !errors.Is(err, modelgate.ErrNoTask) {
			return j, err
		}
		if pause = min(pause, h.Lag-waited); pause <= 0 {
			return nil, missing
		}
		waited += pause
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, missing
		}
	}
}

// lookUp asks the ledger for a job that the caller may know of: one of its
// sub-account, and with a browser token one of the same key and end user. Another takes as long as one that does not exist.
func (h *Handler) lookUp(ctx context.Context, q *Request, at string) (*modelgate.Job, error) {
	j, err := h.Ledger.Job(ctx, q.Caller.ClientID, at, q.task)
	switch {
	case err == nil && q.Caller.SubAccountID != "" && q.Caller.SubAccountID != j.SubAccountID:
		return nil, modelgate.ErrNoTask
	case err == nil && q.Caller.Token != nil && (q.Caller.KeyID != j.KeyID || !q.Caller.Token.Made(j.Attribution)):
		return nil, modelgate.ErrNoTask
	case err != nil && modelgate.KindOf(err) == modelgate.Internal:
		h.Log.Error("job cannot be looked up", "request_id", q.ID.String(), "error", err)
		return nil, errNoLookup
	}
	return j, err
}
