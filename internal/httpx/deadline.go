package httpx

import (
	"io"
	"net/http"
	"time"
)

// How long a client may hold a connection without getting on.
const (
	bodyGrace = 10 * time.Second // between two pieces of a request body, and before the first
	bodyRate  = 1 << 10          // bytes a second that a body must keep past the grace
	stall     = time.Minute      // for a piece of a response to be taken, unless Options say otherwise
)

// pacedBody is a request body that must keep coming. A client that stops, or
// sends less than bodyRate, gets no further; without this a connection could
// be held for ever, by anyone, and a large body with it.
type pacedBody struct {
	io.ReadCloser
	control  *http.ResponseController
	began    time.Time
	length   int64 // -1 for one that is chunked
	received int64
	until    time.Time
	waits    bool // the client sends it once it is asked for (Expect)
	ended    bool // there is nothing more to read, or nothing that can be read
}

// paceBody bounds the reading of a request's body, if there is one still to
// come. It also bounds what the server reads of a body that nobody wanted. The
// tracker is told of a body that it has to look after, see unread: the server does
// so itself, and HTTP/2 needs nobody to.
func (t *tracker) paceBody(r *http.Request) {
	if r.ContentLength == 0 || r.Body == nil {
		return
	}
	body, ours := r.Body.(interface{ Whole() bool })
	if ours && body.Whole() {
		return
	}
	b := &pacedBody{
		ReadCloser: r.Body, control: http.NewResponseController(t.ResponseWriter), began: time.Now(), length: r.ContentLength,
		waits: r.Header.Get("Expect") != "",
	}
	b.extend(b.began)
	r.Body = b
	if !ours && !t.http2 {
		t.body = b
	}
}

// extend sets the time by which the next piece must have come.
func (b *pacedBody) extend(now time.Time) {
	until := now.Add(bodyGrace)
	if last := b.began.Add(bodyGrace + time.Duration(b.received/bodyRate)*time.Second); last.Before(until) {
		until = last
	}
	if until.Sub(b.until) >= time.Second {
		b.until = until
		_ = b.control.SetReadDeadline(until) // a connection that knows no deadlines cannot be helped
	}
}

// Read reads on within the time. At the end the time is over: the connection
// is watched from then on for its client's departure.
func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	switch err {
	case nil:
		b.extend(time.Now())
	case io.EOF:
		b.ended = true
		_ = b.control.SetReadDeadline(time.Time{})
	default:
		b.ended = true
	}
	return n, err
}

// This file is the one place that sets the write deadline of a connection. A write
// may take the tracker's stall; BoundWrites changes that and AbortWrites ends it.

// BoundWrites sets how long the client may take nothing of the rest of a response. A
// writer that Wrap has not made is left alone.
func BoundWrites(w http.ResponseWriter, stall time.Duration) {
	for {
		switch v := w.(type) {
		case *tracker:
			v.stall, v.until = stall, time.Time{}
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return
		}
	}
}

// AbortWrites makes the write that is under way fail, and those after it. It may be
// called beside a write.
func AbortWrites(w http.ResponseWriter) { setWriteDeadline(w, time.Unix(1, 0)) }

// beginWrite extends the time in which the client must take what is written. On
// HTTP/2 a deadline ends a stream also while nothing is written, so there it is set
// for one write alone, see endWrite; calls of models bound their writes by
// themselves.
func (t *tracker) beginWrite() {
	now := time.Now()
	if t.http2 {
		if t.bounded {
			setWriteDeadline(t.ResponseWriter, now.Add(t.stall))
		}
		return
	}
	// One that lies further off was set for an earlier response.
	if left := t.until.Sub(now); left > t.stall/2 && left <= t.stall {
		return
	}
	t.until = now.Add(t.stall)
	setWriteDeadline(t.ResponseWriter, t.until)
}

// endWrite removes the deadline of a write on HTTP/2.
func (t *tracker) endWrite() {
	if t.http2 && t.bounded {
		setWriteDeadline(t.ResponseWriter, time.Time{})
	}
}

// boundRest bounds what the server writes of an HTTP/2 stream once its handler has
// returned: a client that opens no window could hold streams for ever.
func (t *tracker) boundRest() {
	if t.http2 {
		setWriteDeadline(t.ResponseWriter, time.Now().Add(t.stall))
	}
}

// setWriteDeadline ignores errors: the connection is gone, or has no deadlines.
func setWriteDeadline(w http.ResponseWriter, until time.Time) {
	if own, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = own.SetWriteDeadline(until)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(until)
}
