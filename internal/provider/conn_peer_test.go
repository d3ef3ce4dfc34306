package provider

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// layout is how a provider's bytes travel.
type layout struct {
	name    string
	version uint16 // of TLS; 0: plain TCP
	piece   int    // bytes of a write, a record over TLS; 0: all at once
	joined  bool   // the pieces of a text leave in one segment
}

func layouts() []layout {
	return []layout{
		{name: "plain"},
		{name: "plain in pieces", piece: 7},
		{name: "TLS 1.2", version: tls.VersionTLS12},
		{name: "TLS 1.3", version: tls.VersionTLS13},
		{name: "TLS 1.3, small records", version: tls.VersionTLS13, piece: 7},
		{name: "TLS 1.2, small records in one segment", version: tls.VersionTLS12, piece: 7, joined: true},
		{name: "TLS 1.3, small records in one segment", version: tls.VersionTLS13, piece: 7, joined: true},
		{name: "TLS 1.3, large records in one segment", version: tls.VersionTLS13, piece: 61, joined: true},
	}
}

// overEach runs a test over every layout.
func overEach(t *testing.T, test func(t *testing.T, over layout)) {
	for _, over := range layouts() {
		t.Run(over.name, func(t *testing.T) {
			t.Parallel()
			test(t, over)
		})
	}
}

// heldConn writes nothing while it is held.
type heldConn struct {
	*net.TCPConn
	held bool
	text bytes.Buffer
}

func (h *heldConn) Write(b []byte) (int, error) {
	if h.held {
		return h.text.Write(b)
	}
	return h.TCPConn.Write(b)
}

func (h *heldConn) release() error {
	h.held = false
	_, err := h.text.WriteTo(h.TCPConn)
	return err
}

// peerConn is a provider's end of a connection: what is written goes out in the
// pieces of its layout.
type peerConn struct {
	net.Conn // TLS, or below itself
	below    *heldConn
	over     layout
}

func (c *peerConn) Write(b []byte) (n int, err error) {
	c.below.held = c.over.joined
	for err == nil && n < len(b) {
		size := len(b) - n
		if c.over.piece > 0 {
			size = min(size, c.over.piece)
		}
		var wrote int
		wrote, err = c.Conn.Write(b[n : n+size])
		n += wrote
	}
	if c.over.joined && err == nil {
		err = c.below.release()
	}
	return n, err
}

// peer is a provider that speaks raw HTTP/1.1: serve answers one request and
// says whether the connection stays open.
type peer struct {
	net.Listener
	over   layout
	secure *httptest.Server // whose certificate it has; nil for plain TCP
	conns  atomic.Int64
	noALPN atomic.Bool // it does not say what it speaks
	wg     sync.WaitGroup
}

func newPeer(t testing.TB, serve func(conn net.Conn, r *http.Request) bool) *peer {
	t.Helper()
	return layout{}.peer(t, serve)
}

// peer is a provider whose bytes travel so.
func (over layout) peer(t testing.TB, serve func(conn net.Conn, r *http.Request) bool) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{Listener: l, over: over}
	if over.version != 0 {
		p.secure = httptest.NewTLSServer(nil)
		t.Cleanup(p.secure.Close)
	}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.conns.Add(1)
			p.wg.Go(func() { p.serve(conn.(*net.TCPConn), serve) })
		}
	})
	t.Cleanup(func() { l.Close() })
	return p
}

func (p *peer) serve(tcp *net.TCPConn, serve func(conn net.Conn, r *http.Request) bool) {
	defer tcp.Close()
	below := &heldConn{TCPConn: tcp}
	conn := &peerConn{Conn: below, below: below, over: p.over}
	if p.secure != nil {
		config := &tls.Config{Certificates: p.secure.TLS.Certificates, MinVersion: p.over.version, MaxVersion: p.over.version}
		if !p.noALPN.Load() {
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

// says answers every request with the text, once it has read the body.
func says(text string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		_, err := io.WriteString(conn, text)
		return err == nil
	}
}

func (p *peer) provider(t testing.TB, edit func(*Config)) *Provider {
	t.Helper()
	cfg := Config{Format: "openai", BaseURL: "http://" + p.Addr().String(), Credentials: []string{"sk"}}
	if p.secure != nil {
		cfg.BaseURL, cfg.CAFile = "https://"+p.Addr().String(), caFile(t, p.secure)
	}
	if edit != nil {
		edit(&cfg)
	}
	return setup(t, cfg)
}

// send makes one call and reads the reply to its end.
func send(ctx context.Context, t testing.TB, p *Provider, call Call) (status int, body string, sent bool, err error) {
	t.Helper()
	a, err := p.Outbound(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	resp, sent, err := p.Send(a)
	if err != nil {
		return 0, "", sent, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), sent, err
}

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
