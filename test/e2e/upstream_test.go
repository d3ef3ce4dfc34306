package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"modelgate/internal/simulator"
)

// upstream is the simulated provider with its ledger, in this process.
type upstream struct {
	URL    string
	ledger simulator.Memory
	server *httptest.Server
	// arrived is called for every request, before it is answered.
	arrived atomic.Pointer[func()]
	// accepted counts connections, open those that are, and most the most of
	// them at once.
	accepted, open, most atomic.Int64
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := new(upstream)
	provider := simulator.New(simulator.Options{Name: "upstream", Credential: "sk-upstream", Ledger: &u.ledger})
	u.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fn := u.arrived.Load(); fn != nil {
			(*fn)()
		}
		provider.ServeHTTP(w, r)
	}))
	u.server.Config.ConnState = u.connected
	u.server.Start()
	u.URL = u.server.URL
	t.Cleanup(u.close)
	return u
}

func (u *upstream) connected(_ net.Conn, to http.ConnState) {
	switch to {
	case http.StateNew:
		u.accepted.Add(1)
		now := u.open.Add(1)
		for most := u.most.Load(); now > most && !u.most.CompareAndSwap(most, now); most = u.most.Load() {
		}
	case http.StateClosed, http.StateHijacked:
		u.open.Add(-1)
	}
}

// close ends the provider when every request is in its ledger.
func (u *upstream) close() {
	u.server.CloseClientConnections()
	u.server.Close()
}
