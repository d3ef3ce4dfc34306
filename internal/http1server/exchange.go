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

// abortLinger is how long the body of an aborted exchange is read on.
const abortLinger = time.Second

// exchange is one request and its answer. Everything about it is one
// allocation, which may outlive it in the hands of who was told of it: what
// comes late finds it over.
type exchange struct {
	c     *conn
	r     *http.Request
	url   url.URL
	life  cancelctx.Context // of the call: its client is there
	body  body
	reply reply
}

// exchange makes a plain request one of net/http.
func (c *conn) exchange(h *head) *exchange {
	x := &exchange{c: c, url: *c.parsed}
	x.body = body{x: x, left: h.length}
	x.reply = reply{x: x, header: make(http.Header), length: unknown}
	r := c.base.WithContext(&x.life)
	r.URL, r.RequestURI, r.Host, r.Header = &x.url, h.target, h.host, h.header
	r.ContentLength, r.Body = h.length, &x.body
	if h.length == 0 {
		r.Body = http.NoBody
	}
	x.r = r
	return x
}

// serve has the request answered and reports whether the connection can go
// on.
func (x *exchange) serve() (again bool) {
	c := x.c
	if x.body.left == 0 {
		c.watch.start(x)
	}
	whole := x.handle()
	if whole {
		again = x.reply.finish()
	} else {
		x.abort()
	}
	x.life.Cancel(context.Canceled)
	c.watch.stop(c)
	x.reply.over()
	return again
}

// handle calls the handler. It is false where the handler panicked: what has
// been sent of the answer is all of it.
func (x *exchange) handle() (whole bool) {
	defer func() {
		if reason := recover(); reason != nil && !whole {
			if err, ok := reason.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				x.c.s.logf("panic in a handler: %v\n%s", reason, debug.Stack())
			}
		}
	}()
	x.c.s.standard.Handler.ServeHTTP(&x.reply, x.r)
	return true
}

// abort takes what is still coming of the body for a moment: a connection that is
// closed before is reset, and what has been sent of the answer is lost with it.
func (x *exchange) abort() {
	if x.body.left > 0 {
		x.c.readUntil(time.Now().Add(abortLinger))
		x.body.discard()
	}
}

func (s *Server) logf(format string, args ...any) {
	if s.standard.ErrorLog != nil {
		s.standard.ErrorLog.Printf(format, args...)
	}
}

// deadline sets when reading the request must have come to an end. What has
// come already has no end to wait for.
func (x *exchange) deadline(t time.Time) {
	if !x.body.Whole() {
		x.c.readUntil(t)
	}
}
