package selfservice

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/evidence"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
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
type evidenceQuery struct{ store.EvidenceRange }

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
	a.chain(ctx, x.ClientID)
	stored, err := a.Store.Evidence(ctx, x.ClientID, q.EvidenceRange)
	if err != nil {
		return err
	}
	e := export{api: a, signer: signer, stored: stored, part: evidence.Part{
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
	defer e.end(context.WithoutCancel(ctx))
	if err := e.send(ctx, x.w); err != nil {
		if !e.begun {
			return err
		}
		a.Log.Error("an evidence export was cut", "client_id", x.ClientID, "request_id", x.requestID, "error", err)
		panic(http.ErrAbortHandler) // ends the connection without the end of the body
	}
	return nil
}

// chain waits until what is booked is in the client's chain. What is not
// there in time is in a later export.
func (a *API) chain(ctx context.Context, client modelgate.ClientID) {
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	if err := a.Store.ChainAllEvidence(ctx, client); err != nil {
		a.Log.Debug("exporting before all records are chained", "error", err)
	}
}

// export is one export under way.
type export struct {
	api     *API
	signer  *evidence.Signer
	stored  store.EvidencePart
	part    evidence.Part
	ticket  store.ExportTicket
	renewed time.Time
	begun   bool // something was sent
}

func (e *export) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	if err := e.api.Store.ExtendExport(ctx, &e.ticket, 0); err != nil {
		e.api.Log.Warn("the next evidence export of a client has to wait", "client_id", e.part.Org, "error", err)
	}
}

func (e *export) send(ctx context.Context, w http.ResponseWriter) error {
	e.renewed = time.Now()
	header, err := e.signer.Header(e.part)
	if err != nil {
		return err
	}
	buf := append(make([]byte, 0, 2*exportFlush), header...)
	err = e.api.Store.EvidenceLines(ctx, e.stored, func(l store.EvidenceLine) error {
		buf = evidence.AppendRecord(buf, l.Seq, l.Prev, l.Hash, l.Record)
		if len(buf) < exportFlush {
			return nil
		}
		err := e.write(ctx, w, buf)
		buf = buf[:0]
		return err
	})
	if err != nil {
		return err
	}
	head, err := e.signer.Head(e.part, header)
	if err != nil {
		return err
	}
	return e.write(ctx, w, append(buf, head...))
}

// write sends a piece, and keeps the ticket while there are more.
func (e *export) write(ctx context.Context, w http.ResponseWriter, piece []byte) error {
	if time.Since(e.renewed) > exportLease/2 {
		if err := e.api.Store.ExtendExport(ctx, &e.ticket, exportLease); err != nil {
			return err
		}
		e.renewed = time.Now()
	}
	if !e.begun {
		e.begun = true
		httpx.BoundWrites(w, exportStall)
		h := w.Header()
		h.Set("Content-Type", "application/x-ndjson")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="evidence-%s-%d-%d.ndjson"`, e.part.Org, e.part.From, e.part.To))
	}
	_, err := w.Write(piece)
	return err
}
