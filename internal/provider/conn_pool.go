package provider

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// maxIdle bounds the connections that are kept for later, idleTime how
	// long one is.
	maxIdle  = 1024
	idleTime = 90 * time.Second
	// maxStale is how many kept connections in a row may turn out to be closed
	// by the provider before a call gives up.
	maxStale = 3
)

// transport makes round trips. Sent reports whether any byte of the request
// may have left: a call that was sent is never sent again.
type transport interface {
	roundTrip(a *Attempt) (resp *http.Response, sent bool, err error)
	// close ends idle connections, and those in use once they are free.
	close()
}

// newTransportTo chooses how a provider is reached: over connections of the
// gateway's own, or, where the environment names a proxy for it or the operator
// wants that or HTTP/2, through net/http.
func newTransportTo(base *url.URL, cfg *Config, t Timeouts) (transport, error) {
	config, err := tlsConfig(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: t.Connect, KeepAlive: 30 * time.Second, Control: RefuseMetadata}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: base})
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	var http1 transport
	if proxy != nil || cfg.Standard {
		http1 = newUnpooled(dialer, config, t)
	} else {
		http1 = newConnPool(base, dialer, config, t)
	}
	if base.Scheme == "https" && (proxy == nil && (cfg.HTTP2 || cfg.Standard) || proxy != nil && proxy.Scheme != "https") {
		return newShared(dialer, config, t, http1), nil
	}
	return http1, nil
}

// connPool are the connections to one provider, HTTP/1.1, each for one call at a
// time. The goroutine of a call writes its request and reads its reply itself:
// no other goroutine is woken on the way. The zero value is not usable. Safe for
// concurrent use.
type connPool struct {
	address   string      // host:port
	tls       *tls.Config // nil for plain HTTP
	dialer    *net.Dialer
	handshake time.Duration
	firstByte time.Duration
	heads     sync.Pool // of *headBuffer

	mu     sync.Mutex
	idle   []*conn // the one used last at the end
	reaper *time.Timer
	closed bool
}

func newConnPool(base *url.URL, dialer *net.Dialer, config *tls.Config, t Timeouts) *connPool {
	w := &connPool{dialer: dialer, handshake: t.Connect, firstByte: t.FirstByte}
	w.heads.New = newHeadBuffer
	port := base.Port()
	if base.Scheme == "https" {
		w.tls = config.Clone()
		w.tls.ServerName = base.Hostname()
		w.tls.NextProtos = []string{"http/1.1"}
		w.tls.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		if port == "" {
			port = "443"
		}
	} else if port == "" {
		port = "80"
	}
	w.address = net.JoinHostPort(base.Hostname(), port)
	return w
}

// roundTrip tries another connection where a kept one turns out to be closed
// and nothing has been written to it.
func (p *connPool) roundTrip(a *Attempt) (resp *http.Response, sent bool, err error) {
	ctx := a.Request.Context()
	for range maxStale {
		c := p.take()
		reused := c != nil
		if c == nil {
			if c, err = p.dial(ctx); err != nil {
				return nil, false, err
			}
		}
		resp, sent, err = c.exchange(a)
		if err == nil || sent || !reused || ctx.Err() != nil {
			return resp, sent, err
		}
	}
	return nil, false, err
}

// take is a kept connection that is still open, nil for none.
func (p *connPool) take() *conn {
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
func (p *connPool) keep(c *conn) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdle {
		c.end()
		return
	}
	p.idle = append(p.idle, c)
	if p.reaper == nil {
		p.reaper = time.AfterFunc(idleTime/2, p.reap)
	}
}

// reap ends the connections that nobody has used for long. The oldest stand
// in front.
func (p *connPool) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, old := time.Now(), 0
	for old < len(p.idle) && now.Sub(p.idle[old].since) >= idleTime {
		p.idle[old].end()
		old++
	}
	p.idle = append(p.idle[:0], p.idle[old:]...)
	clear(p.idle[len(p.idle):cap(p.idle)])
	p.reaper = nil
	if len(p.idle) > 0 && !p.closed {
		p.reaper = time.AfterFunc(idleTime/2, p.reap)
	}
}

func (p *connPool) close() {
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

// dial connects, over TLS where the provider wants it.
func (p *connPool) dial(ctx context.Context) (*conn, error) {
	conn, err := p.dialer.DialContext(ctx, "tcp", p.address)
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
