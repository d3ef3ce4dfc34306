package web

import (
	"io"
	"net/http"
	"time"
)

// How long a client may hold a connection without getting on.
const (
	bodyGrace = 10 * time.Second // between two pieces of a request body, and before the first
	bodyRate  = 1 << 10          // bytes a second that a body must keep past the grace
	stall     = time.Minute      // for a piece of an answer to be taken
)

// pacedBody is a request body that must keep coming. A client that stops, or
// sends less than bodyRate, gets no further; without this a connection could
// be held for ever, by anyone, and a large body with it.
type pacedBody struct {
	io.ReadCloser
	control  *http.ResponseController
	began    time.Time
	received int64
	until    time.Time
}

// paceBody bounds the reading of a request's body, if it has one. It also
// bounds what the server reads of a body that nobody wanted.
func paceBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.Body == nil {
		return
	}
	b := &pacedBody{ReadCloser: r.Body, control: http.NewResponseController(w), began: time.Now()}
	b.extend(b.began)
	r.Body = b
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
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// patient extends the time in which the client must take what is written.
// Streams of HTTP/2 have no such time: there it would end a call that has
// nothing to write yet, and a connection's streams are bounded.
func (t *tracker) patient() {
	now := time.Now()
	if t.http2 || t.until.Sub(now) > stall/2 {
		return
	}
	t.until = now.Add(stall)
	_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(t.until)
}
