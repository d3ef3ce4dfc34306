package cloud

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"

	"modelgate/internal/provider"
)

// maxAnswer bounds what is read of an answer of a token service, its header and
// TLS included.
const maxAnswer = 1 << 20

// newTransport says how token services are reached: each request on a connection
// of its own, which reads a bounded answer. Metadata services are reached only
// where the source may be one, and never through a proxy.
func newTransport(caFile string, metadata bool) (*http.Transport, error) {
	config, err := provider.TLSConfig(caFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: maxWait}
	if !metadata {
		dialer.Control = provider.RefuseMetadata
	}
	return &http.Transport{
		Proxy:             proxyFor,
		TLSClientConfig:   config,
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &boundedConn{conn, maxAnswer}, nil
		},
	}, nil
}

// proxyFor is the proxy of the environment, for addresses that are not those of
// metadata services.
func proxyFor(req *http.Request) (*url.URL, error) {
	if provider.RefuseMetadata("tcp", net.JoinHostPort(req.URL.Hostname(), "80"), nil) != nil {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// newClient never follows a redirect: a secret may be in the request.
func newClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Timeout:       maxWait,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errLongAnswer is the error of an answer that is too long to be a token's.
var errLongAnswer = errors.New("the answer of the token service is too long")

// boundedConn is a connection of which a bounded number of bytes is read.
type boundedConn struct {
	net.Conn
	left int
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongAnswer
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
