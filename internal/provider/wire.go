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
		http1 = newWires(base, dialer, config, t)
	}
	if base.Scheme == "https" && (proxy == nil && (cfg.HTTP2 || cfg.Standard) || proxy != nil && proxy.Scheme != "https") {
		return newShared(dialer, config, t, http1), nil
	}
	return http1, nil
}

// wires are the connections to one provider, HTTP/1.1, each for one call at a
// time. The goroutine of a call writes its request and reads its reply itself:
// no other goroutine is woken on the way. The zero value is not usable. Safe for
// concurrent use.
type wires struct {
	address   string      // host:port
	tls       *tls.Config // nil for plain HTTP
	dialer    *net.Dialer
	handshake time.Duration
	firstByte time.Duration
	heads     sync.Pool // of *headBuffer

	mu     sync.Mutex
	idle   []*wire // the one used last at the end
	reaper *time.Timer
	closed bool
}

func newWires(base *url.URL, dialer *net.Dialer, config *tls.Config, t Timeouts) *wires {
	w := &wires{dialer: dialer, handshake: t.Connect, firstByte: t.FirstByte}
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
func (w *wires) roundTrip(a *Attempt) (resp *http.Response, sent bool, err error) {
	ctx := a.Request.Context()
	for range maxStale {
		c := w.take()
		reused := c != nil
		if c == nil {
			if c, err = w.dial(ctx); err != nil {
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
func (w *wires) take() *wire {
	for {
		w.mu.Lock()
		n := len(w.idle)
		if n == 0 {
			w.mu.Unlock()
			return nil
		}
		c := w.idle[n-1]
		w.idle[n-1] = nil
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		if c.quiet() {
			return c
		}
		c.end()
	}
}

// keep puts a connection aside for the next call.
func (w *wires) keep(c *wire) {
	c.since = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.idle) >= maxIdle {
		c.end()
		return
	}
	w.idle = append(w.idle, c)
	if w.reaper == nil {
		w.reaper = time.AfterFunc(idleTime/2, w.reap)
	}
}

// reap ends the connections that nobody has used for long. The oldest stand
// in front.
func (w *wires) reap() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, old := time.Now(), 0
	for old < len(w.idle) && now.Sub(w.idle[old].since) >= idleTime {
		w.idle[old].end()
		old++
	}
	w.idle = append(w.idle[:0], w.idle[old:]...)
	clear(w.idle[len(w.idle):cap(w.idle)])
	w.reaper = nil
	if len(w.idle) > 0 && !w.closed {
		w.reaper = time.AfterFunc(idleTime/2, w.reap)
	}
}

func (w *wires) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, c := range w.idle {
		c.end()
	}
	w.idle = nil
	if w.reaper != nil {
		w.reaper.Stop()
	}
}

// dial connects, over TLS where the provider wants it.
func (w *wires) dial(ctx context.Context) (*wire, error) {
	conn, err := w.dialer.DialContext(ctx, "tcp", w.address)
	if err != nil {
		return nil, err
	}
	if w.tls == nil {
		return newWire(w, conn, conn), nil
	}
	records := newTLSRecords(conn)
	secure := tls.Client(records, w.tls)
	bounded, cancel := context.WithTimeout(ctx, w.handshake)
	defer cancel()
	if err := secure.HandshakeContext(bounded); err != nil {
		_ = conn.Close() // of no use any more
		return nil, err
	}
	c := newWire(w, conn, secure)
	c.records = records
	return c, nil
}
