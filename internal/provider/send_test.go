package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate/internal/provider/http1/http1test"
)

// peered is a provider that a peer stands for.
func peered(t testing.TB, u *http1test.Peer, edit func(*Config)) *Provider {
	t.Helper()
	cfg := Config{Format: "openai", BaseURL: u.URL(), Credentials: []string{"sk"}}
	if u.Secure != nil {
		cfg.CAFile = caFile(t, u.Secure)
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

// http2Server speaks HTTP/2, and HTTP/1.1 to those that ask for it.
func http2Server(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestHTTP2 shares a connection where the provider speaks HTTP/2, and keeps one
// that does not for a call at a time.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	handler := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }
	many := http2Server(t, handler)
	one := httptest.NewTLSServer(http.HandlerFunc(handler))
	t.Cleanup(one.Close)
	plain := httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(plain.Close)
	for server, want := range map[*httptest.Server]string{many: "HTTP/2.0", one: "HTTP/1.1", plain: "HTTP/1.1"} {
		cfg := Config{Format: "openai", BaseURL: server.URL, Credentials: []string{"sk"}, HTTP2: true}
		if server != plain {
			cfg.CAFile = caFile(t, server)
		}
		p := setup(t, cfg)
		for range 3 {
			if _, body, _, err := send(t.Context(), t, p, Call{Method: "POST", Path: "/x", Body: []byte("{}")}); body != want || err != nil {
				t.Errorf("%s: %q, %v; want %s", server.URL, body, err, want)
			}
		}
	}
}

// TestAttemptLeft: whoever gave the body may write in it again once nobody
// reads it any more, which net/http never tells.
func TestAttemptLeft(t *testing.T) {
	t.Parallel()
	reads := http1test.NewPeer(t, http1test.Says(http1test.Hello))
	release := make(chan struct{})
	early := http1test.NewPeer(t, func(conn net.Conn, r *http.Request) bool {
		_, _ = io.WriteString(conn, http1test.Hello)
		<-release
		_, _ = io.Copy(io.Discard, r.Body)
		return false
	})
	const long = 16 << 20 // more than a socket takes
	many := http2Server(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	shares := setup(t, Config{Format: "openai", BaseURL: many.URL, CAFile: caFile(t, many), Credentials: []string{"sk"}, HTTP2: true})
	for _, c := range []struct {
		name string
		peer *http1test.Peer // nil for one that speaks HTTP/2
		size int
		left bool // when there is a reply
	}{
		{name: "none", peer: reads, left: true},
		{name: "joined", peer: reads, size: 16 << 10, left: true},
		{name: "of its own", peer: reads, size: 16<<10 + 1, left: true},
		{name: "long", peer: reads, size: long, left: true},
		{name: "long, answered early", peer: early, size: long},
		{name: "none, over HTTP/2", left: true},
		{name: "over HTTP/2", size: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := shares
			if c.peer != nil {
				p = peered(t, c.peer, nil)
			}
			a, err := p.Outbound(t.Context(), Call{Method: "POST", Path: "/x", Body: make([]byte, c.size)})
			if err != nil {
				t.Fatal(err)
			}
			resp, _, err := p.Send(a)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if c.left && c.peer != nil {
				await(t, a.Left) // it may still be on its way out
			}
			if left := a.Left(); left != c.left {
				t.Errorf("left: %v, want %v", left, c.left)
			}
			if c.left || c.peer == nil {
				return
			}
			resp.Body.Close() // which ends the connection
			await(t, a.Left)
			close(release)
		})
	}
}

// await fails where something does not become so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not left although nobody can be writing it any more")
		}
	}
}

// withoutALPN is a transport to a provider that does not say what it speaks.
func withoutALPN(u *http1test.SurplusPeer) *http1test.SurplusPeer {
	u.NoALPN.Store(true)
	return u
}

// TestSurplusWhereHTTP2IsWanted runs calls of two tenants side by side at a
// provider that does not speak HTTP/2 and puts a reply behind its replies: those
// of one get no reply of the other's, and the log none at all.
func TestSurplusWhereHTTP2IsWanted(t *testing.T) {
	var logged syncBuffer
	log.SetOutput(&logged)
	defer log.SetOutput(io.Discard)
	for name, u := range map[string]*http1test.SurplusPeer{
		"plain": http1test.NewSurplusPeer(t, 0), "TLS": http1test.NewSurplusPeer(t, tls.VersionTLS13), "TLS without ALPN": withoutALPN(http1test.NewSurplusPeer(t, tls.VersionTLS13)),
	} {
		for _, head := range []string{"HTTP/1.1 204 No Content\r\n\r\n", http1test.Hello} {
			u.Writes.Store(&[]string{head + http1test.Forged})
			p := peered(t, u.Peer, func(c *Config) { c.HTTP2 = true })
			own, ok := p.transport.(*shared)
			for transport, tr := range map[string]transport{"pooled": p.transport, "unpooled": viaNet(p, u.Peer)} {
				if ok && transport == "unpooled" {
					own.plain.Store(true)
				}
				p.transport = tr
				if n := mixUp(t, p); n > 0 {
					t.Errorf("%s, %s: %d calls got a reply that nobody asked for", name, transport, n)
				}
			}
		}
	}
	if text := logged.String(); text != "" {
		t.Errorf("the log has %.200q", text)
	}
}

// viaNet is how the provider that a peer stands for is reached over a proxy, without
// the proxy.
func viaNet(p *Provider, u *http1test.Peer) transport {
	dialer := &net.Dialer{Timeout: p.timeouts.Connect, Control: RefuseMetadata}
	return newUnpooled(dialer, u.ClientTLS(), p.timeouts)
}

// mixUp makes calls with a surplus and calls of another tenant's at once, and
// counts those of the latter that got another answer than their own.
func mixUp(t *testing.T, p *Provider) int64 {
	var wrong atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				if i%2 == 0 {
					_, _, _, _ = send(context.Background(), t, p, Call{Method: "POST", Path: "/surplus", Body: []byte("{}")})
					continue
				}
				want := fmt.Sprint(i, " ", j)
				if _, body, _, err := send(context.Background(), t, p, Call{Method: "POST", Path: "/mine", Body: []byte(want)}); err != nil || body != want {
					wrong.Add(1)
				}
			}
		})
	}
	all.Wait()
	return wrong.Load()
}

// syncBuffer is a buffer that goroutines share.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestErrorsDoNotQuoteReplies reads replies that break the rules: the errors, of
// headers and of bodies, hold nothing of them.
func TestErrorsDoNotQuoteReplies(t *testing.T) {
	t.Parallel()
	const words = "words-mark"
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	for _, reply := range []string{
		words + "\r\n\r\n", "HTTP/1.1 " + words + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + words + "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: " + words + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + words + "\r\n\r\n", chunked + "\r\n" + words, chunked + "Trailer: X\r\n\r\n2\r\nab\r\n0\r\n" + words + "\r\n\r\n",
		chunked + "\r\n2\r\nab\r\n0\r\n" + words + "\r\n\r\n", chunked + "Pragma: x\r\n\r\n" + words + "\r\n",
	} {
		u := http1test.NewPeer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(conn, reply)
			return false
		})
		own := peered(t, u, nil)
		for name, p := range map[string]*Provider{"own": own, "net/http": {transport: viaNet(own, u), base: own.base, format: own.format}} {
			p.secrets = own.secrets
			_, _, _, err := send(t.Context(), t, p, Call{Method: "POST", Path: "/x", Body: []byte("{}")})
			var known *Unreachable
			if !errors.As(err, &known) || strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q: %v, want an error in other words", name, reply, err)
			}
		}
	}
}

// failingConn fails every write once it is told to, before a byte has left.
type failingConn struct {
	net.Conn
	failing *atomic.Bool
}

func (c failingConn) Write(b []byte) (int, error) {
	if c.failing.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// TestNotSentOnAStaleConnection has net/http find that a kept connection takes no
// byte and that no other can be made: the call has not left, and may go elsewhere.
func TestNotSentOnAStaleConnection(t *testing.T) {
	t.Parallel()
	u := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer u.Close()
	var failing atomic.Bool
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if failing.Load() {
			return nil, errors.New("no connection")
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return failingConn{conn, &failing}, err
	}}
	defer transport.CloseIdleConnections()
	call := func() (*http.Response, bool, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 2
		return overNet(transport, &Attempt{Request: req, body: []byte("{}")})
	}
	resp, sent, err := call()
	if err != nil || !sent {
		t.Fatalf("first call: sent %v, %v", sent, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	failing.Store(true)
	if _, sent, err := call(); err == nil || sent {
		t.Errorf("call on a stale connection: sent %v, %v, want an error before anything was sent", sent, err)
	}
}
