package selfservice

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/evidence"
	"modelgate/internal/httpx"
	chain "modelgate/internal/store/evidence"
)

const (
	// maxEvidence bounds the records of one export.
	maxEvidence = 100_000
	// exportLease is until another export may begin when the instance of one
	// has died; a living one prolongs it half-way.
	exportLease = time.Minute
	// exportStall is how long a client may take nothing before its export is
	// cut: half of the lease, which then outlasts a stalled write.
	exportStall = 30 * time.Second
	// exportFlush is how much is gathered for one write.
	exportFlush = 64 << 10
)

// evidenceQuery is the query of GET /gw/evidence.
type evidenceQuery struct{ chain.Range }

func (q *evidenceQuery) read(x *exchange, now time.Time) error {
	const largest = 1<<53 - 1 // that JavaScript counts to
	p := x.query
	q.From, q.To = int64(p.Int("from_seq", 1, largest, 0)), int64(p.Int("to_seq", 1, largest, 0))
	q.Since, q.Until = p.Time("since", now), p.Time("until", now)
	q.Limit = int64(p.Int("limit", 1, maxEvidence, maxEvidence))
	switch {
	case q.From > 0 && q.To > 0 && q.To < q.From:
		return modelgate.Errorf(modelgate.BadRequest, "to_seq must not be less than from_seq")
	case !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until):
		return modelgate.Errorf(modelgate.BadRequest, "until must be after since")
	}
	return nil
}

// evidence is GET /gw/evidence. The answer is made while it is sent; one that
// fails on the way is cut, so that its head line is missing. One that fails
// before is an error as any other.
func (a *API) evidence(_ context.Context, x *exchange) error {
	var q evidenceQuery
	if err := x.read(func(x *exchange) error { return q.read(x, a.Now()) }); err != nil {
		return err
	}
	ctx := x.r.Context() // an export takes as long as its client does
	signer, err := a.Signer(ctx)
	if err != nil {
		return err
	}
	a.settle(ctx)
	a.await(ctx, "exporting before all records are chained", func(ctx context.Context) error { return a.Store.ChainAllEvidence(ctx, x.ClientID) })
	stored, err := a.Store.Evidence(ctx, x.ClientID, q.Range)
	if err != nil {
		return err
	}
	e := export{api: a, ctx: ctx, w: x.w, signer: signer, stored: stored, renewed: time.Now(), part: evidence.Part{
		Org: x.ClientID, From: stored.From, To: stored.To, Latest: stored.Head.Seq,
		Prev: stored.Prev, Last: stored.Last, Anchor: stored.Anchor, At: a.Now(),
	}}
	if stored.Anchor != "" {
		pruned := evidence.Head{ClientID: x.ClientID, Seq: e.part.From - 1, Hash: e.part.Prev}
		if e.part.Anchor, err = signer.Anchored(pruned, stored.Anchor, e.part.At); err != nil {
			return err
		}
	}
	record := a.audit(x.actor, "evidence.export", "client", string(x.ClientID), map[string]any{
		"from_seq": e.part.From, "to_seq": e.part.To, "latest_seq": e.part.Latest, "hash": e.part.Last.String(), "key": signer.Key.VKey(),
	})
	if e.ticket, err = a.Store.BeginExport(ctx, x.ClientID, exportLease, record); err != nil {
		return err
	}
	defer e.releaseTicket()
	if err := e.send(); err != nil {
		if !e.begun {
			return err
		}
		a.Log.Error("an evidence export was cut", "client_id", x.ClientID, "request_id", x.requestID, "error", err)
		panic(http.ErrAbortHandler) // ends the connection without the end of the body
	}
	return nil
}

// export is one export under way.
type export struct {
	api     *API
	ctx     context.Context // of the request
	w       http.ResponseWriter
	signer  *evidence.Signer
	stored  chain.Part
	part    evidence.Part
	ticket  chain.ExportTicket
	renewed time.Time
	begun   bool // something was sent
}

// releaseTicket lets the client's next export begin at once.
func (e *export) releaseTicket() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), flushPatience)
	defer cancel()
	if err := e.api.Store.ExtendExport(ctx, &e.ticket, 0); err != nil {
		e.api.Log.Warn("the next evidence export of a client has to wait", "client_id", e.part.Org, "error", err)
	}
}

// send writes the header, the records and the signed head.
func (e *export) send() error {
	header, err := e.signer.Header(e.part)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(e, exportFlush) // keeps its first error
	_, _ = out.Write(header)
	err = e.api.Store.EvidenceLines(e.ctx, e.stored, func(l chain.Line) error {
		_, err := out.Write(evidence.AppendRecord(out.AvailableBuffer(), l.Seq, l.Prev, l.Hash, l.Record))
		return err
	})
	if err != nil {
		return err
	}
	head, err := e.signer.Head(e.part, header)
	if err != nil {
		return err
	}
	_, _ = out.Write(head)
	return out.Flush()
}

// Write sends a piece, and renews the ticket half-way through its lease.
func (e *export) Write(piece []byte) (int, error) {
	if time.Since(e.renewed) > exportLease/2 {
		if err := e.api.Store.ExtendExport(e.ctx, &e.ticket, exportLease); err != nil {
			return 0, err
		}
		e.renewed = time.Now()
	}
	if !e.begun {
		e.begun = true
		httpx.BoundWrites(e.w, exportStall)
		h := e.w.Header()
		h.Set("Content-Type", "application/x-ndjson")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="evidence-%s-%d-%d.ndjson"`, e.part.Org, e.part.From, e.part.To))
	}
	return e.w.Write(piece)
}
