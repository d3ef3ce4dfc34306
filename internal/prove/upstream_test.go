package prove

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"modelgate/internal/simulate"
)

// upstream is the simulated provider with its ledger, in this process.
type upstream struct {
	URL    string
	ledger simulate.Memory
	server *httptest.Server
	// arrived is called for every request, before it is answered.
	arrived atomic.Pointer[func()]
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := new(upstream)
	provider := simulate.New(simulate.Options{Name: "upstream", Credential: "sk-upstream", Ledger: &u.ledger})
	u.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fn := u.arrived.Load(); fn != nil {
			(*fn)()
		}
		provider.ServeHTTP(w, r)
	}))
	u.URL = u.server.URL
	t.Cleanup(u.close)
	return u
}

// close ends the provider when every request is in its ledger.
func (u *upstream) close() {
	u.server.CloseClientConnections()
	u.server.Close()
}
