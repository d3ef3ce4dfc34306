package http1server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"modelgate/internal/cancelctx"
)

// abortLinger is how long the body of an aborted transaction is read on.
const abortLinger = time.Second

// transaction is one request and its answer. Everything about it is one
// allocation, which may outlive it in the hands of who was told of it: what
// comes late finds it over.
type transaction struct {
	c     *conn
	r     *http.Request
	url   url.URL
	life  cancelctx.Context // of the call: its client is there
	body  body
	reply reply
}

// transaction makes a plain request one of net/http.
func (c *conn) transaction(h *head) *transaction {
	t := &transaction{c: c, url: *c.parsed}
	t.body = body{t: t, left: h.length}
	t.reply = reply{t: t, header: make(http.Header), length: unknown}
	r := c.base.WithContext(&t.life)
	r.URL, r.RequestURI, r.Host, r.Header = &t.url, h.target, h.host, h.header
	r.ContentLength, r.Body = h.length, &t.body
	if h.length == 0 {
		r.Body = http.NoBody
	}
	t.r = r
	return t
}

// serve has the request answered and reports whether the connection can go
// on.
func (t *transaction) serve() (again bool) {
	c := t.c
	if t.body.left == 0 {
		c.watch.start(t)
	}
	whole := t.handle()
	if whole {
		again = t.reply.finish()
	} else {
		t.abort()
	}
	t.life.Cancel(context.Canceled)
	c.watch.stop(c)
	t.reply.over()
	return again
}

// handle calls the handler. It is false where the handler panicked: what has
// been sent of the answer is all of it.
func (t *transaction) handle() (whole bool) {
	defer func() {
		if reason := recover(); reason != nil && !whole {
			if err, ok := reason.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				t.c.s.logf("panic in a handler: %v\n%s", reason, debug.Stack())
			}
		}
	}()
	t.c.s.standard.Handler.ServeHTTP(&t.reply, t.r)
	return true
}

// abort takes what is still coming of the body for a moment: a connection that is
// closed before is reset, and what has been sent of the answer is lost with it.
func (t *transaction) abort() {
	if t.body.left > 0 {
		t.c.readUntil(time.Now().Add(abortLinger))
		t.body.discard()
	}
}

func (s *Server) logf(format string, args ...any) {
	if s.standard.ErrorLog != nil {
		s.standard.ErrorLog.Printf(format, args...)
	}
}

// deadline sets when reading the request must have come to an end. What has
// come already has no end to wait for.
func (t *transaction) deadline(at time.Time) {
	if !t.body.Whole() {
		t.c.readUntil(at)
	}
}
