package jobs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
)

var errTooLong = errors.New("the result is too long")

// download streams what the job has made.
func (h *Handler) download(q *Request) error {
	ctx, cancel := context.WithTimeout(q.R.Context(), h.Lifetime)
	defer cancel()
	defer context.AfterFunc(h.running, cancel)()
	q.call.Set = map[string]string{}
	for _, name := range []string{"Range", "If-Range"} {
		if value := q.R.Header.Get(name); value != "" {
			q.call.Set[name] = value
		}
	}
	resp, err := h.send(ctx, q)
	switch {
	case errors.Is(err, errUnreached):
		h.bareStatus(ctx, q)
		return nil
	case err != nil:
		return err
	}
	if next := q.provider.Redirected(q.protocol, resp); next != nil {
		resp.Body.Close()
		q.call.Method, q.call.Path, q.call.Query = next.Method, next.Path, next.Query
		if resp, err = h.send(ctx, q); err != nil {
			h.bareStatus(ctx, q)
			return nil
		}
	}
	defer resp.Body.Close()
	if q.R.Method == http.MethodHead {
		return h.answer(q, resp, nil, nil)
	}
	h.stream(q, resp, cancel)
	return nil
}

// bareStatus answers a download that got no reply: a status and nothing else.
func (h *Handler) bareStatus(ctx context.Context, q *Request) {
	if q.R.Context().Err() != nil {
		return // the client has left
	}
	status := http.StatusBadGateway
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		status = http.StatusGatewayTimeout
	}
	q.W.Header().Set("Content-Length", "0")
	q.W.WriteHeader(status)
}

// stream copies the reply to the client. A reply that breaks off is broken off
// for the client too: what has come of it is sent, and the connection cut.
func (h *Handler) stream(q *Request, resp *http.Response, cancel func()) {
	var costs *provider.CostStripper
	if q.Caller.SubAccountID != "" {
		var ok bool
		if costs, ok = q.provider.StripCosts(resp); !ok {
			h.Log.Warn("reply withheld: it may state a cost, and its coding is unknown", "request_id", q.ID.String(), "provider", q.provider.Name())
			h.Metrics.answered(q, resp.StatusCode)
			q.W.Header().Set("Content-Length", "0")
			q.W.WriteHeader(http.StatusBadGateway)
			return
		}
		defer costs.Close()
	}
	h.writeHeader(q, resp)
	out := timedWriter{q.W, http.NewResponseController(q.W), h.Stuck, resp.ContentLength < 0}
	err := h.copy(out, resp.Body, costs, q.provider.Timeouts().Idle, cancel)
	if err == nil {
		return
	}
	if errors.Is(err, errTooLong) {
		h.Log.Warn("reply cut: it is too long", "request_id", q.ID.String(), "provider", q.provider.Name())
	}
	_ = out.control.Flush() // for a client that is still there
	panic(http.ErrAbortHandler)
}

// copy copies a reply until its end. cancel ends it once the provider has sent
// nothing for idle.
func (h *Handler) copy(out timedWriter, from io.Reader, costs *provider.CostStripper, idle time.Duration, cancel func()) error {
	stalled := time.AfterFunc(idle, cancel)
	defer stalled.Stop()
	buf := make([]byte, 32<<10)
	for left := h.MaxReply; ; {
		stalled.Reset(idle)
		n, err := from.Read(buf)
		stalled.Stop()
		if left -= int64(n); left < 0 {
			return errTooLong
		}
		chunk := buf[:n]
		if costs != nil {
			var ok bool
			if chunk, ok = costs.Filter(chunk); !ok {
				return errUnreached
			}
		}
		if writeErr := out.write(chunk); writeErr != nil {
			return writeErr
		}
		switch {
		case err == io.EOF && costs != nil:
			return out.write(costs.Rest(nil))
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// timedWriter writes to a client that must take what is written within a time.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	most    time.Duration // for one write
	flush   bool          // each write at once
}

func (w timedWriter) write(chunk []byte) (err error) {
	if len(chunk) == 0 {
		return nil
	}
	// A connection that knows no deadlines cannot be helped.
	stuck := time.AfterFunc(w.most, func() { _ = w.control.SetWriteDeadline(time.Unix(1, 0)) })
	defer stuck.Stop()
	if w.flush {
		return httpx.Send(w.ResponseWriter, chunk)
	}
	_, err = w.Write(chunk)
	return err
}

// redirectDownload answers a download where the provider has no path for it:
// with the address that the provider names, or with what lies there where only
// the provider's credential opens it.
func (h *Handler) redirectDownload(q *Request) error {
	ctx, cancel := context.WithTimeout(q.R.Context(), requestTimeout)
	defer cancel()
	if err := h.refresh(ctx, q); err != nil {
		return err
	}
	switch q.job.Status {
	case modelgate.JobSucceeded:
	case modelgate.JobPending:
		return modelgate.Errorf(modelgate.Conflict, "the task has not ended; poll it until it has")
	default:
		return modelgate.Errorf(modelgate.Conflict, "the task has not succeeded; there is nothing to download")
	}
	at, err := q.provider.locate(ctx, q.job)
	if errors.Is(err, modelgate.ErrCredentialGone) {
		q.job.Credential = "" // the job has ended: any other may ask for it
		at, err = q.provider.locate(ctx, q.job)
	}
	switch {
	case errors.Is(err, provider.ErrNoFile):
		return modelgate.Errorf(modelgate.NotFound, "the provider names no result of this task any more")
	case err != nil:
		return h.unreached(q, err)
	case at.Own != nil:
		q.call = *at.Own
		q.authorize()
		return h.download(q)
	case !dropsKey(q.R.Header):
		return modelgate.Errorf(modelgate.BadRequest, "the result lies at the address that a poll answers; only a key in Authorization: Bearer is redirected there")
	}
	h.Metrics.answered(q, http.StatusFound)
	q.W.Header().Set("Location", at.URL)
	q.W.WriteHeader(http.StatusFound)
	return nil
}

// dropsKey reports whether the client's key stands where clients leave it out
// when they follow a redirect to another host: in Authorization and nowhere
// else.
func dropsKey(h http.Header) bool {
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if h.Get(name) != "" {
			return false
		}
	}
	return h.Get("Authorization") != ""
}
