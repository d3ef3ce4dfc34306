package cloud

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"modelgate/internal/simulator"
)

// VertexToken is a token that a Vertex takes, and Scope what precedes its paths.
const (
	VertexToken = "canary-vertex-token"
	Scope       = "/projects/acme-prod/locations/europe-west4/"
)

// Vertex stands in for the prediction API of Google Cloud, in the project acme-prod
// in europe-west4. A simulated provider answers.
type Vertex struct {
	URL    string
	Ledger *simulator.Memory

	model http.Handler

	mu   sync.Mutex
	seen []VertexCall
}

// VertexCall is a request as it came.
type VertexCall struct {
	Target string // of its request line
	Body   string
	Header http.Header
}

// NewVertex starts one.
func NewVertex(t testing.TB) *Vertex {
	t.Helper()
	v := &Vertex{Ledger: new(simulator.Memory)}
	v.model = simulator.New(simulator.Options{Name: "vertex", Ledger: v.Ledger, KeepRequests: true})
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	v.URL = server.URL
	return v
}

// Last is the last request.
func (v *Vertex) Last() VertexCall {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.seen) == 0 {
		return VertexCall{}
	}
	return v.seen[len(v.seen)-1]
}

// ServeHTTP implements http.Handler.
func (v *Vertex) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.seen = append(v.seen, VertexCall{r.RequestURI, string(body), r.Header.Clone()})
	v.mu.Unlock()
	version, rest, _ := strings.Cut(r.URL.Path[1:], "/")
	rest, scoped := strings.CutPrefix("/"+rest, Scope)
	if r.Header.Get("Authorization") != "Bearer "+VertexToken || version != "v1" && version != "v1beta1" || !scoped {
		http.Error(w, `{"error":{"code":403,"status":"PERMISSION_DENIED"}}`, http.StatusForbidden)
		return
	}
	if rest == "endpoints/openapi/chat/completions" {
		v.answer(w, r, "/v1/chat/completions", body)
		return
	}
	publisher, rest, _ := strings.Cut(strings.TrimPrefix(rest, "publishers/"), "/models/")
	model, verb, _ := strings.Cut(rest, ":")
	switch {
	case model == "count-tokens" && verb == "rawPredict":
		v.answer(w, r, "/v1/messages/count_tokens", body)
	case verb == "rawPredict", verb == "streamRawPredict":
		body = withModel(body, publisher+"/"+model)
		v.answer(w, r, "/v1/messages", body)
	default:
		v.answer(w, r, "/v1beta/models/"+rest, body)
	}
}

// answer has the simulated provider answer at a path of its own.
func (v *Vertex) answer(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	req := r.Clone(r.Context())
	req.URL.Path, req.URL.RawPath, req.RequestURI = path, "", path
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	v.model.ServeHTTP(w, req)
}

// withModel is a body that names a model.
func withModel(body []byte, model string) []byte {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return body
	}
	o["model"] = model
	text, _ := json.Marshal(o)
	return text
}
