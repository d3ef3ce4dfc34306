// Package http1test has servers for tests that speak raw HTTP/1.1, over plain TCP and
// TLS, in pieces and with replies that nobody asked for.
package http1test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// Layout is how a server's bytes travel. The zero value is plain TCP, each write at
// once.
type Layout struct {
	Name    string
	Version uint16 // of TLS; 0: plain TCP
	Piece   int    // bytes of a write, a record over TLS; 0: all at once
	Joined  bool   // the pieces of a text leave in one segment
}

// Layouts are those that a client is tested with.
func Layouts() []Layout {
	return []Layout{
		{Name: "plain"},
		{Name: "plain in pieces", Piece: 7},
		{Name: "TLS 1.2", Version: tls.VersionTLS12},
		{Name: "TLS 1.3", Version: tls.VersionTLS13},
		{Name: "TLS 1.3, small records", Version: tls.VersionTLS13, Piece: 7},
		{Name: "TLS 1.2, small records in one segment", Version: tls.VersionTLS12, Piece: 7, Joined: true},
		{Name: "TLS 1.3, small records in one segment", Version: tls.VersionTLS13, Piece: 7, Joined: true},
		{Name: "TLS 1.3, large records in one segment", Version: tls.VersionTLS13, Piece: 61, Joined: true},
	}
}

// OverEach runs a test over every layout, side by side.
func OverEach(t *testing.T, test func(t *testing.T, over Layout)) {
	for _, over := range Layouts() {
		t.Run(over.Name, func(t *testing.T) {
			t.Parallel()
			test(t, over)
		})
	}
}

// HeldConn writes nothing while Held is set.
type HeldConn struct {
	*net.TCPConn
	Held bool
	text bytes.Buffer
}

// Write writes, or keeps what is held.
func (h *HeldConn) Write(b []byte) (int, error) {
	if h.Held {
		return h.text.Write(b)
	}
	return h.TCPConn.Write(b)
}

// Release writes what was held.
func (h *HeldConn) Release() error {
	h.Held = false
	_, err := h.text.WriteTo(h.TCPConn)
	return err
}

// Conn is a server's end of a connection: what is written goes out in the pieces of
// its layout.
type Conn struct {
	net.Conn // TLS, or Below itself
	Below    *HeldConn
	over     Layout
}

// Write writes all of b, in pieces.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.Below.Held = c.over.Joined
	for err == nil && n < len(b) {
		size := len(b) - n
		if c.over.Piece > 0 {
			size = min(size, c.over.Piece)
		}
		var wrote int
		wrote, err = c.Conn.Write(b[n : n+size])
		n += wrote
	}
	if c.over.Joined && err == nil {
		err = c.Below.Release()
	}
	return n, err
}

// Peer is a server that speaks raw HTTP/1.1.
type Peer struct {
	net.Listener
	over   Layout
	Secure *httptest.Server // whose certificate it has; nil for plain TCP
	Conns  atomic.Int64     // accepted so far
	NoALPN atomic.Bool      // it does not say what it speaks
	wg     sync.WaitGroup
}

// NewPeer is a peer over plain TCP; see Layout.Peer.
func NewPeer(t testing.TB, serve func(conn net.Conn, r *http.Request) bool) *Peer {
	t.Helper()
	return Layout{}.Peer(t, serve)
}

// Peer is a server whose bytes travel so, until the test ends: serve answers one
// request and says whether the connection stays open.
func (over Layout) Peer(t testing.TB, serve func(conn net.Conn, r *http.Request) bool) *Peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Peer{Listener: l, over: over}
	if over.Version != 0 {
		p.Secure = httptest.NewTLSServer(nil)
		t.Cleanup(p.Secure.Close)
	}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.Conns.Add(1)
			p.wg.Go(func() { p.serve(conn.(*net.TCPConn), serve) })
		}
	})
	t.Cleanup(func() { l.Close() })
	return p
}

func (p *Peer) serve(tcp *net.TCPConn, serve func(conn net.Conn, r *http.Request) bool) {
	defer tcp.Close()
	below := &HeldConn{TCPConn: tcp}
	conn := &Conn{Conn: below, Below: below, over: p.over}
	if p.Secure != nil {
		config := &tls.Config{Certificates: p.Secure.TLS.Certificates, MinVersion: p.over.Version, MaxVersion: p.over.Version}
		if !p.NoALPN.Load() {
			config.NextProtos = []string{"http/1.1"}
		}
		conn.Conn = tls.Server(below, config)
	}
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil || !serve(conn, r) {
			break
		}
	}
	if secure, ok := conn.Conn.(*tls.Conn); ok {
		_ = secure.CloseWrite() // or else the client could not tell an end from a cut
	}
}

// Says answers every request with the text, once it has read the body.
func Says(text string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		_, err := io.WriteString(conn, text)
		return err == nil
	}
}

// URL is the base URL of the peer.
func (p *Peer) URL() string {
	if p.Secure != nil {
		return "https://" + p.Addr().String()
	}
	return "http://" + p.Addr().String()
}

// ClientTLS trusts the peer's certificate. It is of no use for plain TCP.
func (p *Peer) ClientTLS() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.Secure != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AddCert(p.Secure.Certificate())
	}
	return config
}

// Hello is a short reply.
const Hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
