package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// newVertex is a gateway before a Vertex in europe-west4.
func newVertex(t *testing.T) (*bench, *cloud.Vertex) {
	t.Helper()
	stand := cloud.NewVertex(t)
	b := newBench(t, testkit.GatewayOptions{
		Providers: fmt.Sprintf("\n  - {name: vertex, format: vertex, base_url: %q, project: acme-prod, location: europe-west4, credential: %s}", stand.URL, cloud.VertexToken),
		Catalog: `
  - {slug: google/claude, kind: llm, routes: [{provider: vertex, model: anthropic/claude-haiku-4-5}], price: {input: 1, output: 5}}
  - {slug: google/gemini, kind: llm, routes: [{provider: vertex, model: google/gemini-2.5-flash}], price: {input: 1, output: 5}}`,
		More: `prices:
  - {provider: vertex, model: "*", price: {input: 1, output: 5}}
`,
	})
	return b, stand
}

// TestVertexDoors holds the edits that a door makes, and no others.
func TestVertexDoors(t *testing.T) {
	t.Parallel()
	b, stand := newVertex(t)
	const claude = "publishers/anthropic/models/claude-haiku-4-5"
	for _, c := range []struct{ door, version, body, path, sent string }{
		{"/v1/messages", "2023-06-01", `{"model":"google/claude", "max_tokens":9,"messages":[{"role":"user","content":"hello there"}]}`, claude + ":rawPredict",
			`{"anthropic_version":"vertex-2023-10-16", "max_tokens":9,"messages":[{"role":"user","content":"hello there"}]}`},
		{"/v1/messages", "2026-10-21", `{"max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello there"}],"model":"google/claude"}`, claude + ":streamRawPredict",
			`{"max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello there"}],"anthropic_version":"2026-10-21"}`},
		{"/v1/messages", "", `{"max_tokens":9,"stream":false,"messages":[{"role":"user","content":"hello there"}],"anthropic_version":"vertex-x","model":"google/claude"}`, claude + ":rawPredict",
			`{"max_tokens":9,"stream":false,"messages":[{"role":"user","content":"hello there"}],"anthropic_version":"vertex-x"}`},
		{"/v1/messages/count_tokens", "2023-06-01", `{"model":"google/claude","messages":[{"role":"user","content":"hello there"}]}`, "publishers/anthropic/models/count-tokens:rawPredict",
			`{"anthropic_version":"vertex-2023-10-16","model":"claude-haiku-4-5","messages":[{"role":"user","content":"hello there"}]}`},
		{"/v1/chat/completions", "2023-06-01", `{"model":"google/gemini","messages":[{"role":"user","content":"hello there"}]}`, "endpoints/openapi/chat/completions",
			`{"model":"google/gemini-2.5-flash","messages":[{"role":"user","content":"hello there"}]}`},
		{"/v1/chat/completions", "", `{"model":"google/gemini","stream":true,"messages":[{"role":"user","content":"hello there"}]}`, "endpoints/openapi/chat/completions",
			`{"stream_options":{"include_usage":true},"model":"google/gemini-2.5-flash","stream":true,"messages":[{"role":"user","content":"hello there"}]}`},
	} {
		headers := []string{"Anthropic-Beta", "x", "X-Goog-User-Project", "evil", "X-Vertex-Ai-Llm-Request-Type", "dedicated"}
		if c.version != "" {
			headers = append(headers, "Anthropic-Version", c.version)
		}
		resp, text := b.post(t, c.door, c.body, headers...)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s", c.door, c.body, resp.StatusCode, text)
		}
		last := stand.Last()
		if want := "/v1" + cloud.Scope + c.path; last.Target != want || last.Body != c.sent {
			t.Errorf("%s: sent %s\n%s, want %s\n%s", c.door, last.Target, last.Body, want, c.sent)
		}
		if last.Header.Get("X-Goog-User-Project") != "" || last.Header.Get("X-Vertex-Ai-Llm-Request-Type") != "dedicated" ||
			strings.Contains(c.path, "rawPredict") && last.Header.Get("Anthropic-Version") != "" || last.Header.Get("Anthropic-Beta") != "x" {
			t.Errorf("%s: headers %v", c.door, last.Header)
		}
	}
	b.wantServed(t, stand.Ledger.All(), 6)
}

// TestVertexProxy calls paths of Google's, with the project and without, and those
// that nobody may call.
func TestVertexProxy(t *testing.T) {
	t.Parallel()
	b, stand := newVertex(t)
	const gemini, messages = `{"contents":[{"role":"user","parts":[{"text":"hello there"}]}]}`, `{"anthropic_version":"vertex-2023-10-16","max_tokens":9,"messages":[{"role":"user","content":"hello there"}]}`
	calls := 0
	for _, c := range []struct{ path, body, sent string }{
		{"/v1/publishers/google/models/gemini-2.5-flash:generateContent", gemini, "/v1|publishers/google/models/gemini-2.5-flash:generateContent"},
		{"/v1beta1/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse", gemini, "/v1beta1|publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"/v1/projects/acme-prod/locations/europe-west4/publishers/google/models/g:generateContent", gemini, "/v1|publishers/google/models/g:generateContent"},
		{"/v1/projects/-/locations/-/publishers/anthropic/models/claude-haiku-4-5:rawPredict", messages, "/v1|publishers/anthropic/models/claude-haiku-4-5:rawPredict"},
		{"/v1/projects/acme%2Dprod/locations/-/publishers/anthropic/models/claude@1:rawPredict", messages, "/v1|publishers/anthropic/models/claude@1:rawPredict"},
		{"/v1beta1/publishers/anthropic/models/claude-haiku-4-5:streamRawPredict", strings.Replace(messages, `"max`, `"stream":true,"max`, 1), "/v1beta1|publishers/anthropic/models/claude-haiku-4-5:streamRawPredict"},
		{"/v1/endpoints/openapi/chat/completions", `{"model":"google/gemini-3","messages":[{"role":"user","content":"x"}]}`, "/v1|endpoints/openapi/chat/completions"},
		{"/v1/publishers/anthropic/models/count-tokens:rawPredict", `{"model":"claude-haiku-4-5","messages":[{"role":"user","content":"x"}]}`, "/v1|publishers/anthropic/models/count-tokens:rawPredict"},
	} {
		calls++
		resp, text := b.post(t, "/vertex"+c.path, c.body)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", c.path, resp.StatusCode, text)
		}
		if want := strings.Replace(c.sent, "|", cloud.Scope, 1); stand.Last().Target != want {
			t.Errorf("%s: sent %s, want %s", c.path, stand.Last().Target, want)
		}
	}
	b.wantServed(t, stand.Ledger.All(), calls)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/projects/other/locations/-/publishers/google/models/g:generateContent", gemini, 403, "path not permitted for this provider"},
		{"/v1/projects/acme-prod/locations/us-east5/publishers/google/models/g:generateContent", gemini, 403, "path not permitted for this provider"},
		{"/v1/projects/acme-prod/publishers/google/models/g:generateContent", gemini, 403, "path not permitted for this provider"},
		{"/v1/projects/oth%65r/locations/-/publishers/google/models/g:generateContent", gemini, 403, "path not permitted for this provider"},
		{"/v1/projects/acme-prod/locations/europe-west4/cachedContents", `{}`, 403, "path not permitted for this provider"},
		{"/v1/publishers/google/models/g:predictLongRunning", `{}`, 403, "path not permitted for this provider"},
		{"/v1/publishers/google/models/g:generateContent", `{"cachedContent":"c","contents":[]}`, 403, "cachedContent"},
		{"/v1/publishers/google/models/g:generateContent", `{"contents":[{"parts":[{"functionResponse":{"response":{"x":{"file_uri":"gs://b/k"}}}}]}]}`, 403, "file_uri"},
		{"/v1/publishers/google/models/g:generateContent", `{"tools":[{"retrieval":{"vertexAiSearch":{}}}]}`, 403, "retrieval"},
		{"/v1/publishers/google/models/g:predict", `{"instances":[],"parameters":{"storageU\u0072i":"gs://b"}}`, 403, "storageUri"},
		{"/v1/publishers/google/models/g:generateContent", `{"model":"other","contents":[]}`, 400, "leave it out of the body"},
		{"/v1/publishers/anthropic/models/c:rawPredict", `{"model":"anthropic/d","messages":[]}`, 400, "leave it out of the body"},
		{"/v1/endpoints/openapi/chat/completions", `{"model":"gemini-3","messages":[]}`, 400, `\"model\" must be publisher/model on this provider`},
	} {
		before := stand.Ledger.Len()
		resp, text := b.post(t, "/vertex"+c.path, c.body)
		if resp.StatusCode != c.status || !strings.Contains(text, c.want) || stand.Ledger.Len() != before {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.body, resp.StatusCode, text, c.status, c.want)
		}
	}
}
