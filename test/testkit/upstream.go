package testkit

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"modelgate/internal/simulator"
)

// UpstreamServer is a simulated provider on loopback, for one test.
type UpstreamServer struct {
	// URL is where it listens, without a path: http://127.0.0.1:port.
	URL string
	// Ledger has a record of each request served. It stays empty when the
	// options brought a ledger of their own.
	Ledger *simulator.Memory

	server *httptest.Server
}

// Upstream starts a simulated provider. It is closed with the test.
func Upstream(t testing.TB, opts simulator.Options) *UpstreamServer {
	t.Helper()
	u := &UpstreamServer{Ledger: &simulator.Memory{}}
	if opts.Ledger == nil {
		opts.Ledger = u.Ledger
	}
	u.server = listen(t, simulator.New(opts))
	u.URL = u.server.URL
	return u
}

// Close ends the provider before its test ends: connections break, and later
// ones are refused.
func (u *UpstreamServer) Close() {
	u.server.CloseClientConnections()
	u.server.Close()
}

// CloseIdle ends the connections that are kept, so that later calls need new
// ones.
func (u *UpstreamServer) CloseIdle() { u.server.CloseClientConnections() }

// listen serves h on loopback until the test ends. Clients that a test left
// hanging are cut off, for the server would wait for them.
func listen(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}
