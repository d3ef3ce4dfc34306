package cloud

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"modelgate/internal/simulator"
)

// The credentials that a Bedrock takes.
const (
	AccessKeyID = "AKIDCANARY"
	SecretKey   = "canary-secret-key-5d1e"
	BedrockKey  = "canary-bedrock-api-key"

	// A temporary key goes with its session token.
	TemporaryKeyID  = "ASIACANARY"
	TemporarySecret = "canary-temporary-secret-77b0"
	SessionToken    = "canary-session-token-31d8"
)

// Bedrock stands in for the runtime host of Amazon Bedrock in eu-central-1. It
// recomputes the signature of each request, or takes an API key, and has a
// simulated provider answer.
type Bedrock struct {
	URL    string
	Ledger *simulator.Memory

	judge Judge
	model http.Handler

	mu      sync.Mutex
	refused []string
}

// NewBedrock starts one.
func NewBedrock(t testing.TB) *Bedrock {
	t.Helper()
	b := &Bedrock{Ledger: new(simulator.Memory), judge: Judge{
		Secrets: map[string]string{AccessKeyID: SecretKey, TemporaryKeyID: TemporarySecret}, Sessions: map[string]string{TemporaryKeyID: SessionToken},
		Region: "eu-central-1", Service: "bedrock",
	}}
	b.model = simulator.New(simulator.Options{Name: "bedrock", Ledger: b.Ledger, KeepRequests: true})
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.URL = server.URL
	return b
}

// Refused are the reasons why requests were refused.
func (b *Bedrock) Refused() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// ServeHTTP implements http.Handler.
func (b *Bedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Authorization") != "Bearer "+BedrockKey {
		err = b.judge.Verify(r, r.RequestURI, body)
	}
	if err != nil {
		b.mu.Lock()
		b.refused = append(b.refused, err.Error())
		b.mu.Unlock()
		w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException")
		http.Error(w, `{"message":"the signature does not match"}`, http.StatusForbidden)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.model.ServeHTTP(w, r)
}
