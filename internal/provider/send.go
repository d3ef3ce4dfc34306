package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// maxStale is how many kept connections in a row may turn out to be closed by
// the provider before a call gives up.
const maxStale = 3

// Send makes the round trip: no redirects, no decompression, and never
// twice. Sent reports whether any byte of the request left; where none did
// because a kept connection had been closed meanwhile, another connection is
// tried. A credential that is refused or throttled rests for a while.
func (p *Provider) Send(a *Attempt) (resp *http.Response, sent bool, err error) {
	for range maxStale {
		var track tracker
		req := a.Request.WithContext(track.watch(a.Request.Context()))
		resp, err = p.transport.RoundTrip(req)
		if err == nil {
			p.secrets.note(a.used, resp.StatusCode, resp.Header.Get("Retry-After"))
			return resp, true, nil
		}
		if track.wrote() || !track.reused || a.Request.Context().Err() != nil {
			return nil, track.wrote(), err
		}
		if len(a.body) > 0 {
			a.Request.Body = io.NopCloser(bytes.NewReader(a.body))
		}
	}
	return nil, false, err
}

// tracker finds out whether a request was written to its connection.
type tracker struct {
	got    bool
	reused bool
	conn   *countedConn // nil where the connection hides it
	before int64
}

func (t *tracker) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		t.got, t.reused, t.conn = true, info.Reused, nil
		conn := info.Conn
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn()
		}
		if counted, ok := conn.(*countedConn); ok {
			t.conn, t.before = counted, counted.written.Load()
		}
	}})
}

// wrote errs on the side of yes: a connection shared with other calls, or
// one that cannot be counted, counts as written to.
func (t *tracker) wrote() bool {
	return t.got && (t.conn == nil || t.conn.written.Load() > t.before)
}

// countedConn counts the bytes written to a connection.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// counted makes connections that count what is written to them.
func counted(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn}, nil
	}
}
