// Package http1 is a pooled client of HTTP/1.1 for one server: it writes requests that
// were checked before and reads replies strictly. What a reply says in an unusual way is
// left to net/http to judge. A connection serves another call only where nothing is left
// of it anywhere.
package http1

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxIdle is how many connections a pool keeps for later.
	MaxIdle = 1024
	// IdleTime is how long a pool keeps a connection that nobody uses.
	IdleTime = 90 * time.Second
	// maxStale is how many kept connections in a row may turn out to be closed
	// by the server before a call gives up.
	maxStale = 3
)

// Options say how a server is reached, and how long it may take.
type Options struct {
	// Base names the server: http or https, and a host; what follows them is not
	// used. Without a port it is that of the scheme.
	Base *url.URL
	// Dial makes a connection to an address, host:port, of the network "tcp".
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is cloned and used where the base is https; nil is the default.
	TLS *tls.Config
	// Handshake bounds the TLS handshake, FirstByte the time from the request
	// written to the header of its reply. Both must be set.
	Handshake, FirstByte time.Duration
}

// Request is a request that is ready to be written, once. Nothing of it is checked
// any more: its method, target, host and header must be such that every server
// reads them as one request, and its header must hold none of those that say where
// it goes or ends.
type Request struct {
	// Request gives the method, the host, the header and the context, not the body.
	Request *http.Request
	// Target is what stands in the request line (RFC 9112, 3.2).
	Target string
	Body   []byte
	// Held is set while another goroutine may be reading Body, which can be longer
	// than until RoundTrip returns. It must not be nil.
	Held *atomic.Bool
}

// Pool holds the connections to one server, each for one call at a time. The
// goroutine of a call writes its request and reads its reply itself: no other
// goroutine is woken on the way. The zero value is not usable. Safe for concurrent
// use.
type Pool struct {
	address   string      // host:port
	tls       *tls.Config // nil for plain HTTP
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	handshake time.Duration
	firstByte time.Duration
	heads     sync.Pool // of *headBuffer

	mu     sync.Mutex
	idle   []*conn // the one used last at the end
	reaper *time.Timer
	closed bool
}

// NewPool makes a pool without connections.
func NewPool(o Options) *Pool {
	p := &Pool{dial: o.Dial, handshake: o.Handshake, firstByte: o.FirstByte}
	p.heads.New = newHeadBuffer
	port := o.Base.Port()
	if o.Base.Scheme == "https" {
		p.tls = o.TLS.Clone()
		if p.tls == nil {
			p.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		p.tls.ServerName = o.Base.Hostname()
		p.tls.NextProtos = []string{"http/1.1"}
		p.tls.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		if port == "" {
			port = "443"
		}
	} else if port == "" {
		port = "80"
	}
	p.address = net.JoinHostPort(o.Base.Hostname(), port)
	return p
}

// RoundTrip sends a request and returns its reply, whatever the status, up to the
// body. Sent reports whether any byte of the request may have left. Another
// connection is tried where a kept one turns out to be closed and nothing has been
// written to it, and nowhere else. A reply that is none is ErrMalformed; other
// errors are those of the dialer, of TLS and of the connection. The end of the
// request's context ends the connection.
//
// The body must be closed, by the goroutine that reads it, and has a method Attend
// beside Read and Close; see [Body].
func (p *Pool) RoundTrip(r Request) (resp *http.Response, sent bool, err error) {
	ctx := r.Request.Context()
	for range maxStale {
		c := p.take()
		reused := c != nil
		if c == nil {
			if c, err = p.connect(ctx); err != nil {
				return nil, false, err
			}
		}
		resp, sent, err = c.roundTrip(r)
		if err == nil || sent || !reused || ctx.Err() != nil {
			return resp, sent, err
		}
	}
	return nil, false, err
}

// take is a kept connection that is still open, nil for none.
func (p *Pool) take() *conn {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if c.quiet() {
			return c
		}
		c.end()
	}
}

// keep puts a connection aside for the next call.
func (p *Pool) keep(c *conn) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= MaxIdle {
		c.end()
		return
	}
	p.idle = append(p.idle, c)
	if p.reaper == nil {
		p.reaper = time.AfterFunc(IdleTime/2, p.reap)
	}
}

// reap ends the connections that nobody has used for long. The oldest stand
// in front.
func (p *Pool) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, old := time.Now(), 0
	for old < len(p.idle) && now.Sub(p.idle[old].since) >= IdleTime {
		p.idle[old].end()
		old++
	}
	p.idle = append(p.idle[:0], p.idle[old:]...)
	clear(p.idle[len(p.idle):cap(p.idle)])
	p.reaper = nil
	if len(p.idle) > 0 && !p.closed {
		p.reaper = time.AfterFunc(IdleTime/2, p.reap)
	}
}

// Close ends idle connections, and those in use once they are free.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.end()
	}
	p.idle = nil
	if p.reaper != nil {
		p.reaper.Stop()
	}
}

// connect makes a connection, over TLS where the base is https.
func (p *Pool) connect(ctx context.Context) (*conn, error) {
	conn, err := p.dial(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	if p.tls == nil {
		return newConn(p, conn, conn), nil
	}
	records := newTLSRecords(conn)
	secure := tls.Client(records, p.tls)
	bounded, cancel := context.WithTimeout(ctx, p.handshake)
	defer cancel()
	if err := secure.HandshakeContext(bounded); err != nil {
		_ = conn.Close() // of no use any more
		return nil, err
	}
	c := newConn(p, conn, secure)
	c.records = records
	return c, nil
}
