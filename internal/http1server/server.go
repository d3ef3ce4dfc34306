// Package http1server serves the calls that a gateway gets most, plain POST requests
// of HTTP/1.1, with less effort than net/http, which it has serve everything
// else.
//
// A request is plain if it is one that all servers read alike: head below
// 4 KiB, one Host, one Content-Length of at most 256 KiB, nothing that changes
// the protocol or how the body is framed. The first other request that comes on
// a connection takes the connection to net/http, with all bytes of it, for
// good. So the server never refuses a request and never has to guess at one.
package http1server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"modelgate/internal/yield"
)

const (
	// newGrace is how long a connection that has not asked for anything yet
	// is left alone by Shutdown: its first request may be on its way.
	newGrace = 5 * time.Second
	// shutdownLook is how often Shutdown looks for connections that have come
	// to rest.
	shutdownLook = 20 * time.Millisecond
)

// Server serves the connections of one listener. Safe for concurrent use.
type Server struct {
	// standard serves what is not plain. Its Handler, ReadHeaderTimeout,
	// IdleTimeout and ErrorLog are the server's too.
	standard *http.Server
	handoffs chan net.Conn // to standard
	batcher  *yield.WriteBatcher
	outs     sync.Pool // of *output
	buffers  sync.Pool // of *[maxHead]byte

	mu       sync.Mutex
	conns    map[*conn]struct{}
	listener net.Listener
	closing  atomic.Bool
	done     chan struct{} // closed with closing
}

// New makes a server of one that is not serving yet. ReadHeaderTimeout and
// IdleTimeout of standard must be above 0. A nil batcher has each answer sent
// at once.
func New(standard *http.Server, batcher *yield.WriteBatcher) *Server {
	s := &Server{standard: standard, batcher: batcher, handoffs: make(chan net.Conn), conns: make(map[*conn]struct{}), done: make(chan struct{})}
	s.outs.New = func() any { return new(output) }
	s.buffers.New = func() any { return new([maxHead]byte) }
	return s
}

// Serve accepts connections until Shutdown or Close, and returns
// http.ErrServerClosed then. It is called once.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	if s.closing.Load() {
		return errors.Join(http.ErrServerClosed, l.Close())
	}
	rest := make(chan error, 1)
	go func() { rest <- s.standard.Serve(&handoffListener{s, l.Addr()}) }()
	err := s.accept(l)
	if !s.closing.Load() {
		return errors.Join(err, s.Close())
	}
	<-rest // it may call the end by another name
	return http.ErrServerClosed
}

// accept is the loop of Serve.
func (s *Server) accept(l net.Listener) error {
	var pause time.Duration
	for {
		raw, err := l.Accept()
		switch {
		case s.closing.Load():
			if err == nil {
				_ = raw.Close() // it came too late
			}
			return http.ErrServerClosed
		case err != nil && temporary(err):
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-s.done:
			}
		case err != nil:
			return err
		default:
			pause = 0
			c := newConn(s, raw)
			s.mu.Lock()
			s.conns[c] = struct{}{}
			s.mu.Unlock()
			go c.serve()
		}
	}
}

// temporary reports whether a fault of accepting may pass, such as having no file
// descriptor left.
func temporary(err error) bool {
	var timed interface{ Temporary() bool }
	return errors.As(err, &timed) && timed.Temporary()
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Shutdown stops accepting, closes connections that are at rest and waits for
// those that are not, as http.Server does. Errors: those of the context.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	rest := make(chan error, 1)
	go func() { rest <- s.standard.Shutdown(ctx) }()
	look := time.NewTicker(shutdownLook)
	defer look.Stop()
	for s.sweep() > 0 {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), <-rest)
		case <-look.C:
		}
	}
	return <-rest
}

// sweep closes the connections at rest and says how many others there are.
func (s *Server) sweep() (busy int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if !c.closeIfIdle() {
			busy++
		}
	}
	return busy
}

// Close closes everything at once.
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.raw.Close() // whoever uses it sees that
	}
	return s.standard.Close()
}

// stop closes the listener and begins the end, once.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Swap(true) {
		return
	}
	close(s.done)
	if s.listener != nil {
		_ = s.listener.Close() // accept has nothing to say any more
	}
}

// handoffListener is the listener of the standard server: it accepts connections that
// this server hands off.
type handoffListener struct {
	s    *Server
	addr net.Addr
}

// Accept waits for the next connection that is handed off.
func (l *handoffListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.s.handoffs:
		return c, nil
	case <-l.s.done:
		return nil, net.ErrClosed
	}
}

// Close does nothing: the server has closed what it accepts from.
func (l *handoffListener) Close() error { return nil }

// Addr is where the server listens.
func (l *handoffListener) Addr() net.Addr { return l.addr }

// handoffConn is a connection that was handed off, with what was read of it.
type handoffConn struct {
	net.Conn
	read []byte
}

// Read gives what was read before first.
func (c *handoffConn) Read(p []byte) (int, error) {
	if len(c.read) > 0 {
		n := copy(p, c.read)
		c.read = c.read[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite ends what is written, by which net/http lets a client read the
// refusal of a body before its connection is reset.
func (c *handoffConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
