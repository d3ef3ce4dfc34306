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
	"time"
)

// Send makes the round trip: no redirects, no decompression, and never
// twice. Sent reports whether any byte of the request left; where none did
// because a kept connection had been closed meanwhile, another connection is
// tried. A credential that is refused or throttled rests for a while.
func (p *Provider) Send(a *Attempt) (resp *http.Response, sent bool, err error) {
	resp, sent, err = p.transport.roundTrip(a)
	if err == nil {
		p.secrets.note(a.used, resp)
	}
	return resp, sent, err
}

// shared reaches a provider through net/http: over a proxy, or with the calls
// of all tenants side by side on connections of HTTP/2.
type shared struct{ *http.Transport }

// newShared makes the connection pool of one provider.
func newShared(dialer *net.Dialer, config *tls.Config, t Timeouts) shared {
	return shared{&http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            counted(dialer.DialContext),
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    t.Connect,
		ResponseHeaderTimeout:  t.FirstByte,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxReplyHead,
	}}
}

func (s shared) close() { s.CloseIdleConnections() }

func (s shared) roundTrip(a *Attempt) (resp *http.Response, sent bool, err error) {
	for range maxStale {
		var track tracker
		req := a.Request.WithContext(track.watch(a.Request.Context()))
		if len(a.body) > 0 {
			a.held.Store(true) // for good: net/http may read it after its answer
			// A body of this very type lets net/http write it with the header.
			req.Body = io.NopCloser(bytes.NewReader(a.body))
		}
		resp, err = s.RoundTrip(req)
		if err == nil {
			return resp, true, nil
		}
		if track.wrote() || !track.reused || a.Request.Context().Err() != nil {
			return nil, track.wrote(), err
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
