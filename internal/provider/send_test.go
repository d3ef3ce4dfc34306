package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

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

// withoutALPN is a transport to a provider that does not say what it speaks.
func withoutALPN(u *surplusPeer) *surplusPeer {
	u.noALPN.Store(true)
	return u
}

// TestSurplusWhereHTTP2IsWanted runs calls of two tenants side by side at a
// provider that does not speak HTTP/2 and puts a reply behind its replies: those
// of one get no reply of the other's, and the log none at all.
func TestSurplusWhereHTTP2IsWanted(t *testing.T) {
	var logged syncBuffer
	log.SetOutput(&logged)
	defer log.SetOutput(io.Discard)
	for name, u := range map[string]*surplusPeer{
		"plain": newSurplusPeer(t, 0), "TLS": newSurplusPeer(t, tls.VersionTLS13), "TLS without ALPN": withoutALPN(newSurplusPeer(t, tls.VersionTLS13)),
	} {
		for _, head := range []string{"HTTP/1.1 204 No Content\r\n\r\n", hello} {
			u.writes.Store(&[]string{head + forged})
			p := u.provider(t, func(c *Config) { c.HTTP2 = true })
			own, ok := p.transport.(*shared)
			for transport, tr := range map[string]transport{"pooled": p.transport, "unpooled": viaNet(p)} {
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

// viaNet is how the provider is reached over a proxy, without the proxy.
func viaNet(p *Provider) transport {
	switch tr := p.transport.(type) {
	case *connPool:
		return newUnpooled(tr.dialer, tr.tls, p.timeouts)
	case *shared:
		own := tr.http1.(*connPool)
		return newUnpooled(own.dialer, own.tls, p.timeouts)
	}
	return nil
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
