package http1server

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"
)

// What a connection is doing.
const (
	fresh   int32 = iota // it has not asked for anything yet
	resting              // between two requests
	busy
	closed
)

// conn is one connection. One goroutine serves it; beside it there is only the
// watch, while a call is under way.
type conn struct {
	s     *Server
	raw   net.Conn
	since time.Time
	state atomic.Int32

	in input

	// The deadlines that are set, zero for none.
	readBy, writeBy time.Time

	base   http.Request // what all requests of the connection share
	known  known
	target string // of the request before, and what it was parsed to
	parsed *url.URL

	watch watch
}

func newConn(s *Server, raw net.Conn) *conn {
	c := &conn{s: s, raw: raw, since: time.Now()}
	c.in.open(raw, &s.buffers)
	c.base = http.Request{Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if a := raw.RemoteAddr(); a != nil {
		c.base.RemoteAddr = a.String()
	}
	return c
}

// serve is the goroutine of the connection.
func (c *conn) serve() {
	defer c.s.forget(c)
	defer c.in.release()
	c.readUntil(c.since.Add(c.s.standard.ReadHeaderTimeout))
	for {
		h, ok := c.request()
		if !ok {
			return
		}
		if !c.transaction(&h).serve() || !c.again() {
			c.end()
			return
		}
	}
}

// request waits for the next request and reads its head. It is false where the
// connection is not the server's any more: it is closed, or handed off.
func (c *conn) request() (h head, ok bool) {
	c.watch.giveBack(&c.in)
	for begun := false; ; {
		read := c.in.unread()
		if len(read) > 0 && !c.wake() {
			return h, false
		}
		if end := endOfHead(read); end > 0 {
			if h, ok = c.head(read[:end]); ok {
				c.in.skip(end)
				return h, true
			}
			c.handOff()
			return h, false
		}
		if len(read) == maxHead {
			c.handOff()
			return h, false
		}
		if len(read) > 0 && !begun {
			begun = true
			c.readUntil(time.Now().Add(c.s.standard.ReadHeaderTimeout))
		}
		if err := c.in.fill(); err != nil {
			c.broken(err)
			return h, false
		}
	}
}

// head is the head that b is, and its target parsed; false for one that is not
// plain.
func (c *conn) head(b []byte) (head, bool) {
	if h, same := c.known.again(b); same {
		return h, true
	}
	text := string(b)
	h, ok := parseHead(text)
	if !ok || !c.parse(h.target) {
		return h, false
	}
	c.known.remember(h, text)
	return h, true
}

// parse makes a target a URL, as net/http does.
func (c *conn) parse(target string) bool {
	if c.parsed != nil && c.target == target {
		return true
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	c.target, c.parsed = target, u
	return true
}

// broken ends a connection that gave no whole head. net/http has an answer to
// a head that breaks off.
func (c *conn) broken(err error) {
	if c.in.empty() || errors.Is(err, os.ErrDeadlineExceeded) || !c.wake() {
		c.end()
		return
	}
	c.handOff()
}

// handOff gives the connection to net/http, with all bytes that have been read.
func (c *conn) handOff() {
	c.readUntil(time.Time{})
	c.writeUntil(time.Time{})
	select {
	case c.s.handoffs <- &handoffConn{Conn: c.raw, read: bytes.Clone(c.in.unread())}:
	case <-c.s.done:
		c.end()
	}
}

// wake ends a rest. It is false where Shutdown was first.
func (c *conn) wake() bool {
	for {
		switch was := c.state.Load(); was {
		case busy:
			return true
		case closed:
			return false
		default:
			if c.state.CompareAndSwap(was, busy) {
				return true
			}
		}
	}
}

// again lets the connection rest until its next request.
func (c *conn) again() bool {
	c.state.Store(resting)
	idle := c.s.standard.IdleTimeout
	// Setting a deadline costs more than being exact about this one is worth.
	now := time.Now()
	if left := c.readBy.Sub(now); left > idle || left < idle-idle/8 {
		c.readUntil(now.Add(idle))
	}
	return !c.s.closing.Load() || !c.state.CompareAndSwap(resting, closed)
}

// closeIfIdle closes a connection at rest, for Shutdown, and reports whether it is
// closed.
func (c *conn) closeIfIdle() bool {
	if c.state.CompareAndSwap(resting, closed) || time.Since(c.since) > newGrace && c.state.CompareAndSwap(fresh, closed) {
		_ = c.raw.Close() // its goroutine sees that and ends
	}
	return c.state.Load() == closed
}

func (c *conn) end() {
	c.state.Store(closed)
	_ = c.raw.Close() // nobody wants anything of it any more
}

// readUntil and writeUntil set deadlines; a connection that knows none cannot
// be helped.
func (c *conn) readUntil(t time.Time) {
	if c.readBy != t {
		c.readBy = t
		_ = c.raw.SetReadDeadline(t)
	}
}

func (c *conn) writeUntil(t time.Time) {
	if c.writeBy != t {
		c.writeBy = t
		_ = c.raw.SetWriteDeadline(t)
	}
}
