package http1

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"modelgate/internal/provider/http1/http1test"
)

func parse(t testing.TB, base string) *url.URL {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// newPool fills in what the options leave out.
func newPool(t testing.TB, o Options) *Pool {
	t.Helper()
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Handshake == 0 {
		o.Handshake = 10 * time.Second
	}
	if o.FirstByte == 0 {
		o.FirstByte = 600 * time.Second
	}
	p := NewPool(o)
	t.Cleanup(p.Close)
	return p
}

func poolTo(t testing.TB, u *http1test.Peer) *Pool {
	t.Helper()
	return newPool(t, Options{Base: parse(t, u.URL()), TLS: u.ClientTLS()})
}

// call is one request of a test.
type call struct {
	method, path string
	body         []byte
}

func (c call) request(ctx context.Context, t testing.TB, p *Pool) Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, c.method, "http://"+p.address+c.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Request{Request: req, Target: c.path, Body: c.body, Held: new(atomic.Bool)}
}

// send makes one call and reads the reply to its end.
func send(ctx context.Context, t testing.TB, p *Pool, c call) (status int, body string, sent bool, err error) {
	t.Helper()
	resp, sent, err := p.RoundTrip(c.request(ctx, t, p))
	if err != nil {
		return 0, "", sent, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), sent, err
}
