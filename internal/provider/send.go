package provider

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"modelgate/internal/provider/http1"
)

// Unreachable is the error of a call that got no reply, or not a whole one.
type Unreachable = http1.Unreachable

// Send makes the round trip: no redirects, no decompression, and never
// twice. Sent reports whether any byte of the request left; where none did
// because a kept connection had been closed meanwhile, another connection is
// tried. A credential that is refused or throttled rests for a while. Errors are
// of type *Unreachable, and so are those of reading the body but io.EOF.
func (p *Provider) Send(a *Attempt) (resp *http.Response, sent bool, err error) {
	if err := sendable(a); err != nil {
		return nil, false, http1.Unreached(err)
	}
	resp, sent, err = p.transport.roundTrip(a)
	if err != nil {
		if ended := a.Request.Context().Err(); ended != nil {
			err = fmt.Errorf("%w: %w", ended, err) // that is why
		}
		return nil, sent, http1.Unreached(err)
	}
	p.secrets.Note(a.used, resp)
	if p.identity != nil {
		p.identity.Replied(resp)
	}
	return resp, sent, nil
}

// errNotHTTP2 says that a provider does not speak HTTP/2.
var errNotHTTP2 = errors.New("provider does not speak HTTP/2")

// shared reaches a provider over HTTP/2, with the calls of all tenants side by
// side on few connections, and one that does not speak it over HTTP/1.1. net/http
// carries HTTP/2 alone: a connection of HTTP/1.1 that it keeps can give a reply
// that nobody asked for to the next call.
type shared struct {
	http2 *http.Transport
	http1 transport
	// plain says that the provider was found not to speak HTTP/2. It stands until
	// the configuration is read again.
	plain atomic.Bool
}

// newShared makes the connections to one provider, whose base URL is https, and
// which is reached without HTTP/2 by http1. Nobody else is spoken to over TLS.
func newShared(dialer *net.Dialer, config *tls.Config, t Timeouts, http1 transport) *shared {
	config = config.Clone()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != "h2" {
			return errNotHTTP2
		}
		return nil
	}
	h := netTransport(dialer, config, t)
	h.ForceAttemptHTTP2 = true
	h.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return &shared{http2: h, http1: http1}
}

// netTransport is what net/http needs to know in any case.
func netTransport(dialer *net.Dialer, config *tls.Config, t Timeouts) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    t.Connect,
		ResponseHeaderTimeout:  t.FirstByte,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    http1.MaxIdle,
		IdleConnTimeout:        http1.IdleTime,
		MaxResponseHeaderBytes: http1.MaxReplyHeader,
	}
}

func (s *shared) close() {
	s.http2.CloseIdleConnections()
	s.http1.close()
}

func (s *shared) roundTrip(a *Attempt) (resp *http.Response, sent bool, err error) {
	if !s.plain.Load() {
		resp, sent, err = overNet(s.http2, a)
		if !errors.Is(err, errNotHTTP2) {
			return resp, sent, err
		}
		s.plain.Store(true)
	}
	return s.http1.roundTrip(a)
}

// unpooled reaches a provider over a proxy with HTTP/1.1, on a connection for each
// call.
type unpooled struct{ *http.Transport }

func newUnpooled(dialer *net.Dialer, config *tls.Config, t Timeouts) unpooled {
	h := netTransport(dialer, config, t)
	h.DisableKeepAlives = true
	return unpooled{h}
}

func (unpooled) close() {}

func (u unpooled) roundTrip(a *Attempt) (*http.Response, bool, error) {
	return overNet(u.Transport, a)
}

// overNet makes a round trip through net/http, which itself takes another
// connection where a kept one cannot be used. A request counts as sent once it has
// a connection, and no more once net/http looks for another: it does so only where
// nothing was written.
func overNet(t *http.Transport, a *Attempt) (resp *http.Response, sent bool, err error) {
	ctx := httptrace.WithClientTrace(a.Request.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { sent = false },
		GotConn: func(httptrace.GotConnInfo) { sent = true },
	})
	req := a.Request.WithContext(ctx)
	if len(a.body) > 0 {
		a.held.Store(true) // for good: net/http may read it after its answer
		// A body of this very type lets net/http write it with the header.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(a.body)), nil }
		req.Body, _ = req.GetBody()
	}
	if resp, err = t.RoundTrip(req); err != nil {
		return nil, sent, err
	}
	resp.Body = safeBody{resp.Body}
	return resp, true, nil
}

// safeBody is the body of a reply whose errors can be logged.
type safeBody struct{ io.ReadCloser }

func (b safeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = http1.Unreached(err)
	}
	return n, err
}
