package cloud

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelgate/internal/simulator"
)

// AzureKey is the key that an Azure takes.
const AzureKey = "canary-azure-key"

// Azure stands in for Azure OpenAI with the paths of deployments. A simulated
// provider answers.
type Azure struct {
	URL    string
	Ledger *simulator.Memory

	model http.Handler
}

// NewAzure starts one.
func NewAzure(t testing.TB) *Azure {
	t.Helper()
	a := &Azure{Ledger: new(simulator.Memory)}
	a.model = simulator.New(simulator.Options{Name: "azure", Ledger: a.Ledger, KeepRequests: true})
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

// ServeHTTP implements http.Handler.
func (a *Azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deployment, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/openai/deployments/"), "/")
	if !ok || r.Header.Get("Api-Key") != AzureKey {
		http.Error(w, `{"error":{"code":"401","message":"Access denied"}}`, http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(r.Body)
	body = withModel(body, deployment)
	req := r.Clone(r.Context())
	req.URL.Path, req.URL.RawPath, req.RequestURI = "/v1/"+rest, "", "/v1/"+rest
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	a.model.ServeHTTP(w, req)
}
