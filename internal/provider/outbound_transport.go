package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"modelgate/internal/provider/http1"
)

var errMetadata = &Unreachable{Cause: "forbidden", Detail: "address of a cloud metadata service"}

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
	config, err := TLSConfig(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: t.Connect, KeepAlive: 30 * time.Second, Control: RefuseMetadata}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: base})
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	var own transport
	if proxy != nil || cfg.Standard {
		own = newUnpooled(dialer, config, t)
	} else {
		own = newPooled(base, dialer.DialContext, config, t)
	}
	if base.Scheme == "https" && (proxy == nil && (cfg.HTTP2 || cfg.Standard) || proxy != nil && proxy.Scheme != "https") {
		return newShared(dialer, config, t, own), nil
	}
	return own, nil
}

// pooled reaches a provider over connections of the gateway's own.
type pooled struct{ *http1.Pool }

func newPooled(base *url.URL, dial func(ctx context.Context, network, address string) (net.Conn, error), config *tls.Config, t Timeouts) pooled {
	return pooled{http1.NewPool(http1.Options{
		Base: base, Dial: dial, TLS: config, Handshake: t.Connect, FirstByte: t.FirstByte,
	})}
}

func (p pooled) close() { p.Close() }

func (p pooled) roundTrip(a *Attempt) (*http.Response, bool, error) {
	return p.RoundTrip(http1.Request{Request: a.Request, Target: a.target, Body: a.body, Held: &a.held})
}

// TLSConfig trusts the system's authorities, and those of a file.
func TLSConfig(caFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca_file: no certificate in PEM form")
	}
	config.RootCAs = pool
	return config, nil
}
