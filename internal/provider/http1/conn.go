package http1

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"modelgate/internal/cancelctx"
)

const (
	// MaxReplyHeader is the longest header of a reply, in bytes, its interim
	// replies included.
	MaxReplyHeader = 256 << 10
	// maxInterim is how many 1xx replies may come before the real one.
	maxInterim = 8
	// wireBuffer is what is read ahead of a reply's header. Larger pieces of a
	// body are read past it.
	wireBuffer = 4 << 10
	// joined bodies go out in one piece with the header; what the socket does
	// not take at once of those longer than aside is written beside the reading, because a provider may answer, or
	// refuse, before it has taken them.
	joinedBody = 16 << 10
	asideBody  = 64 << 10
	// lookAgain bounds how long the end of a connection can go unseen that came
	// with the last bytes of a reply that is not whole.
	lookAgain = 250 * time.Millisecond
)

// errNothing is the error of a read that would have to wait.
const errNothing nothingYet = "nothing to read yet"

// nothingYet is a net.Error that is temporary: a TLS connection can be read again
// after it.
type nothingYet string

func (e nothingYet) Error() string { return string(e) }
func (nothingYet) Timeout() bool   { return false }
func (nothingYet) Temporary() bool { return true }

// conn is one connection. It serves one call at a time.
type conn struct {
	home *Pool
	tcp  net.Conn // what carries conn
	conn net.Conn // the TLS connection, or tcp itself
	// records is what the TLS connection reads from; nil without TLS. probe is what
	// it is read into to see whether it has anything.
	records *tlsRecords
	probe   [1]byte
	r       *bufio.Reader
	left    int64 // bytes that the header under way may still take; -1: no header
	since   time.Time
	until   time.Time       // when reading ends by itself; zero: never
	raw     syscall.RawConn // of tcp; nil where it has none
	// spoiled says that something came after a reply: the connection serves no
	// other call.
	spoiled bool
	silent  bool // whether the socket was, when it was last peeked at
	peek    func(fd uintptr)
	cut     func() // end, as a value

	// While a body is attended to, reading does not wait: fd is the socket, -1
	// at other times, ready what is called, more its answer. drained says that
	// the socket may have no more bytes, empty that it had nothing, nor an end.
	fd                   int
	ready                func() bool
	more, drained, empty bool
	arrived              func(fd uintptr) bool
}

func newConn(home *Pool, tcp, over net.Conn) *conn {
	c := &conn{home: home, tcp: tcp, conn: over, left: -1, fd: -1}
	c.r = bufio.NewReaderSize(c, wireBuffer)
	c.raw = rawConn(tcp)
	c.cut = c.end
	c.peek = func(fd uintptr) { c.silent = nothingToRead(fd) }
	c.arrived = c.comes
	return c
}

// rawConn is the socket of a connection; nil where it has none.
func rawConn(conn net.Conn) syscall.RawConn {
	if s, ok := conn.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// Read is for the buffered reader, and for bodies once that is empty. Only a
// header has a time by which it must come.
func (c *conn) Read(b []byte) (int, error) {
	if c.fd >= 0 {
		return c.readNow(b)
	}
	if c.left < 0 {
		if !c.until.IsZero() {
			if err := c.expire(time.Time{}); err != nil {
				return 0, err
			}
		}
		return c.conn.Read(b)
	}
	if c.left == 0 {
		return 0, errReplyHead
	}
	n, err := c.conn.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// readNow reads without waiting; errNothing says that there is nothing.
func (c *conn) readNow(b []byte) (int, error) {
	n, err := readAtOnce(c.fd, b)
	c.empty = err == errNothing
	c.drained = c.empty || err == nil && n < len(b)
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// plain reports whether what is read is what the socket gives.
func (c *conn) plain() bool { return c.raw != nil && c.conn == c.tcp }

// attend calls ready whenever something has come, until it returns false, or
// until waiting has failed and ready been told by reading. A plain read tries
// the socket before it waits, to see an end that came with bytes that it has
// read already; here that is done once in lookAgain, which saves a system call
// for each event of a stream.
func (c *conn) attend(ready func() bool) (more bool) {
	c.ready = ready
	defer func() { c.ready, c.fd = nil, -1 }()
	for {
		if !c.until.IsZero() && c.expire(time.Time{}) != nil {
			return ready()
		}
		switch err := c.raw.Read(c.arrived); {
		case err == nil:
			return c.more
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return ready()
		}
	}
}

// comes is called when something may have come, and returns whether waiting is
// over. The poller tells of everything that comes after the last read before
// which it was asked to wait; of what came before, the reading has to.
func (c *conn) comes(fd uintptr) (over bool) {
	c.fd = int(fd)
	for c.drained = false; !c.drained; {
		if c.more = c.ready(); !c.more {
			break
		}
	}
	c.fd = -1
	if c.more && (c.empty || !c.until.IsZero()) {
		return false
	}
	return !c.more || c.expire(time.Now().Add(lookAgain)) != nil
}

// clear reports whether nothing that was read is left: neither in the buffer nor in
// the TLS connection.
func (c *conn) clear() bool {
	return c.r.Buffered() == 0 && (c.records == nil || c.exhausted(readNothing))
}

// quiet reports whether a kept connection, which was clear then, is open and has
// nothing to say. One that was closed, or that speaks without having been asked, is
// of no use, nor is one that cannot be asked.
func (c *conn) quiet() bool {
	c.silent = false
	if c.raw == nil || c.raw.Control(c.peek) != nil {
		return false
	}
	return c.silent || c.records != nil && c.exhausted(readAtHand)
}

// expire says when reading ends by itself.
func (c *conn) expire(at time.Time) error {
	c.until = at
	return c.conn.SetReadDeadline(at)
}

// await bounds the time until the header of a reply. To set a deadline costs as
// much as to find the reply's members, so one that is right within a
// thirty-second part stays.
func (c *conn) await(now time.Time) error {
	within := c.home.firstByte
	off := within / 32
	if left := c.until.Sub(now); left >= within-off && left <= within+off {
		return nil
	}
	return c.expire(now.Add(within + off))
}

// end closes the connection. The TLS layer is not asked, because it would
// wait for a write under way.
func (c *conn) end() { _ = c.tcp.Close() }

// roundTrip sends the request and reads the reply up to its body, which gives
// the connection back.
func (c *conn) roundTrip(req Request) (*http.Response, bool, error) {
	stop := cancelctx.AfterFunc(req.Request.Context(), c.cut)
	r := &connReply{body: Body{c: c, stop: stop}}
	if err := c.write(req, &r.body.writing); err != nil {
		stop()
		c.end()
		return nil, r.body.writing.any(), err
	}
	resp, err := c.readHead(req.Request, r)
	if err != nil {
		stop()
		c.end()
		return nil, true, err
	}
	r.body.last = resp.Close || resp.StatusCode < 200
	resp.Body = &r.body
	return resp, true, nil
}

// connReply is what one reply takes.
type connReply struct {
	resp  http.Response
	body  Body
	piece chunked
	span  lengthBody
}

// writing is a request on its way out.
type writing struct {
	n     int64
	aside chan error // of a body that is written beside the reading; nil for none
}

func (w *writing) any() bool { return w.n > 0 || w.aside != nil }

// done reports whether the request has left whole.
func (w *writing) done() bool {
	if w.aside == nil {
		return true
	}
	select {
	case err := <-w.aside:
		return err == nil
	default:
		return false
	}
}

// headBuffer holds a request's header, and a short body behind it.
type headBuffer struct{ b []byte }

func newHeadBuffer() any { return &headBuffer{b: make([]byte, 0, joinedBody+4<<10)} }

// write sends header and body in as few pieces as possible.
func (c *conn) write(req Request, w *writing) error {
	head := c.home.heads.Get().(*headBuffer)
	defer c.home.heads.Put(head)
	head.b = appendHead(head.b[:0], req)
	body := req.Body
	if len(body) <= joinedBody {
		head.b, body = append(head.b, body...), nil
	}
	switch {
	case len(body) == 0:
		n, err := c.conn.Write(head.b)
		w.n = int64(n)
		return err
	case len(body) > asideBody:
		return c.writeLong(head.b, body, req.Held, w)
	}
	pieces := net.Buffers{head.b, body}
	n, err := pieces.WriteTo(c.conn)
	w.n = n
	return err
}

// writeLong gives the socket what it takes at once, mostly all, and writes the
// rest of the body beside the reading.
func (c *conn) writeLong(head, body []byte, held *atomic.Bool, w *writing) error {
	taken := c.writeNow(head, body)
	w.n = int64(taken)
	if taken < len(head) {
		n, err := c.conn.Write(head[taken:])
		if w.n += int64(n); err != nil {
			return err
		}
		taken = len(head)
	}
	body = body[taken-len(head):]
	if len(body) == 0 {
		return nil
	}
	w.aside = make(chan error, 1)
	held.Store(true)
	go func() {
		_, err := c.conn.Write(body)
		held.Store(false)
		w.aside <- err
	}()
	return nil
}

// writeNow writes without waiting, where the connection is a plain socket, and
// returns how much was taken. An error is left to the next write to find.
func (c *conn) writeNow(head, body []byte) (n int) {
	if !c.plain() {
		return 0
	}
	_ = c.raw.Control(func(fd uintptr) { n = writeAtOnce(fd, head, body) })
	return n
}

// appendHead writes the request line and the header, which were checked before.
func appendHead(b []byte, r Request) []byte {
	req := r.Request
	b = append(append(b, req.Method...), ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(append(b, req.Host...), "\r\n"...)
	for name, values := range req.Header {
		for _, v := range values {
			if name == "User-Agent" && v == "" {
				continue
			}
			b = append(append(b, name...), ": "...)
			b = append(append(b, v...), "\r\n"...)
		}
	}
	if n := len(r.Body); n > 0 || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, int64(n), 10), "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// readHead reads up to the body of the reply that is not an interim one.
func (c *conn) readHead(req *http.Request, r *connReply) (*http.Response, error) {
	if err := c.await(time.Now()); err != nil {
		return nil, err
	}
	c.left = MaxReplyHeader
	defer func() { c.left = -1 }()
	for range maxInterim {
		if c.plainHead(req, r) {
			return &r.resp, nil
		}
		resp, err := http.ReadResponse(c.r, req)
		if err != nil {
			return nil, headError(err)
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			r.body.from = resp.Body
			return resp, nil
		}
	}
	return nil, errInterim
}
