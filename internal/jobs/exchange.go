package jobs

import (
	"context"
	"errors"
	"net/http"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/provider"
)

// send sends the client's request with the credential of the job. Where that
// credential is gone, a job that has ended is asked for with any other, and one
// that is pending has ended too.
func (h *Handler) send(ctx context.Context, q *Request) (*http.Response, error) {
	out, err := q.provider.Outbound(ctx, q.call)
	if errors.Is(err, modelgate.ErrCredentialGone) {
		if q.job.Status == modelgate.JobPending {
			return nil, h.markLost(q)
		}
		q.call.Credential = ""
		out, err = q.provider.Outbound(ctx, q.call)
	}
	if err != nil {
		return nil, err
	}
	resp, _, err := q.provider.Send(out)
	if err != nil {
		return nil, h.unreached(q, err)
	}
	return resp, nil
}

// unreached notes that the provider of a job was not reached, or has not
// answered what it was asked. A client that has left has caused that itself.
func (h *Handler) unreached(q *Request, err error) error {
	if unreachable, ok := errors.AsType[*provider.Unreachable](err); !ok {
		h.Log.Warn("a job's provider does not answer", "request_id", q.ID.String(), "provider", q.provider.Name(), "error", err)
	} else if q.R.Context().Err() == nil {
		h.Unreached(q.ID, q.provider.Name(), unreachable)
	}
	return errUnreached
}

// poll passes on what the provider says of the job, errors too, once the ledger
// knows it.
func (h *Handler) poll(q *Request) error {
	ctx, cancel := context.WithTimeout(q.R.Context(), requestTimeout)
	defer cancel()
	resp, raw, plain, err := h.exchange(ctx, q)
	if err != nil {
		return err
	}
	if q.job.Status == modelgate.JobPending {
		if err := h.recordOutcome(ctx, q, resp, plain); err != nil {
			return err
		}
	}
	return h.answer(q, resp, raw, plain)
}

// exchange sends the client's request and reads the whole reply; its body is
// closed. For raw and plain see provider.ReadReply.
func (h *Handler) exchange(ctx context.Context, q *Request) (resp *http.Response, raw, plain []byte, err error) {
	if resp, err = h.send(ctx, q); err != nil {
		return nil, nil, nil, err
	}
	defer resp.Body.Close()
	if raw, plain, err = provider.ReadReply(resp); err != nil {
		return nil, nil, nil, h.unreached(q, err)
	}
	return resp, raw, plain, nil
}

// cancel has the provider end the job. The job is polled before: one that has
// ended unnoticed is charged, and cannot be cancelled.
func (h *Handler) cancel(q *Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.R.Context()), requestTimeout)
	defer cancel()
	if err := h.refresh(ctx, q); err != nil {
		return err
	}
	resp, raw, plain, err := h.exchange(ctx, q)
	if err != nil {
		return err
	}
	if succeeded(resp) {
		news := q.protocol.Read(resp.StatusCode, plain)
		if news.Event == modelgate.JobRuns && !q.protocol.Asks {
			news.Event = modelgate.JobIsCancelled
		}
		if err := h.finish(q, news); err != nil {
			return err
		}
	}
	return h.answer(q, resp, raw, plain)
}

func succeeded(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode <= 299 }

// recordOutcome finishes the job where the reply to a poll says that it has
// ended.
func (h *Handler) recordOutcome(ctx context.Context, q *Request, resp *http.Response, body []byte) error {
	if q.role == provider.AsyncResult {
		if !succeeded(resp) {
			return nil // it may still be running; its state says
		}
		news, _ := q.protocol.ReadResult(resp.StatusCode, resp.Header, body) // false comes without an event
		return h.finish(q, news)
	}
	news, err := q.provider.complete(ctx, q.job, q.protocol.Read(resp.StatusCode, body))
	if err != nil {
		return h.unreached(q, err)
	}
	return h.finish(q, news)
}

// refresh polls a job that is pending as far as is known.
func (h *Handler) refresh(ctx context.Context, q *Request) error {
	if q.job.Status != modelgate.JobPending {
		return nil
	}
	news, err := q.provider.Poll(ctx, q.job)
	switch {
	case errors.Is(err, modelgate.ErrCredentialGone):
		return h.markLost(q)
	case err != nil:
		return h.unreached(q, err)
	}
	return h.finish(q, news)
}

// markLost ends a job whose credential is gone.
func (h *Handler) markLost(q *Request) error {
	if err := h.finish(q, modelgate.JobNews{Event: modelgate.JobLost}); err != nil {
		return err
	}
	return modelgate.ErrCredentialGone
}

// finish ends the job in the ledger where the news end it.
func (h *Handler) finish(q *Request, news modelgate.JobNews) error {
	final, ok := pricing.FinishJob(q.job, news)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.R.Context()), ledgerTimeout)
	defer cancel()
	ended, err := h.Ledger.FinishJobs(ctx, []modelgate.JobFinal{final})
	if err != nil {
		h.Log.Error("the end of a job cannot be recorded; it stays pending", "request_id", q.ID.String(), "task_id", q.job.TaskID, "error", err)
		return errNotRecorded
	}
	for i := range ended {
		h.Ended(&ended[i])
	}
	q.job.Status = final.Status // or another's: final in any case
	return nil
}

// answer passes on a reply that was read whole.
func (h *Handler) answer(q *Request, resp *http.Response, raw, plain []byte) error {
	if q.Caller.SubAccountID != "" {
		var ok bool
		if raw, ok = q.provider.WithoutCosts(resp, raw, plain); !ok {
			return errUnreached
		}
	}
	h.writeHeader(q, resp)
	_, _ = q.W.Write(raw) // a client that has left gets nothing
	return nil
}

// writeHeader passes on the head of a reply. An end customer who came through
// the door is not shown a provider's redirect, which would name the provider.
func (h *Handler) writeHeader(q *Request, resp *http.Response) {
	header := q.W.Header()
	q.provider.ResponseHeaders(header, resp.Header)
	if q.byDoor && q.Caller.SubAccountID != "" {
		header.Del("Location")
	}
	h.Metrics.answered(q, resp.StatusCode)
	q.W.WriteHeader(resp.StatusCode)
}
