package security

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"modelgate/test/testkit"
)

// priced is a gateway before a provider that answers each path as told, and a
// key of it.
func priced(t *testing.T, providers, prices string, answers map[string]string) (base, key string) {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		kind, text, _ := strings.Cut(answers[r.URL.Path], "\n")
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(upstream.Close)
	g := testkit.StartGateway(t, testkit.GatewayOptions{Upstream: upstream.URL, Providers: strings.ReplaceAll(providers, "UPSTREAM", upstream.URL), More: prices})
	key, _ = g.NewKey(g.NewClient("priced"))
	return g.URL, key
}

// row makes a call and reads its row back.
func row(t *testing.T, base, key, path, body string) gjson.Result {
	t.Helper()
	a := ask(t, base, key, "POST", path, body)
	if a.StatusCode != 200 {
		t.Fatalf("%s %s: %s", path, body, a)
	}
	return gjson.Get(ask(t, base, key, "GET", "/gw/usage?id="+a.Header.Get("X-Gateway-Request-Id"), "").body, "0")
}

// TestToolsAreNotFree has providers run tools of their own, whole and
// streamed: each is charged, or the row does not claim to be right.
func TestToolsAreNotFree(t *testing.T) {
	t.Parallel()
	const (
		items    = `{"id":"ws_1","type":"web_search_call","action":{"type":"search","query":"kites"}},{"id":"fs_1","type":"file_search_call"},{"id":"ci_1","type":"code_interpreter_call","container_id":"c1"},{"id":"ci_2","type":"code_interpreter_call","container_id":"c1"}`
		usage    = `"usage":{"input_tokens":1000000,"output_tokens":0,"total_tokens":1000000}`
		sse      = "text/event-stream\n"
		grounded = `{"candidates":[{"finishReason":"STOP","index":0,"content":{"parts":[{"text":"x"}]},"groundingMetadata":{"webSearchQueries":["kites","wind","kites"]}}],"usageMetadata":{"promptTokenCount":1000000,"candidatesTokenCount":0}}`
	)
	stream := sse
	for i, item := range []string{`{"id":"ws_1","type":"web_search_call"}`, `{"id":"fs_1","type":"file_search_call"}`, `{"id":"ci_1","type":"code_interpreter_call","container_id":"c1"}`} {
		stream += fmt.Sprintf("event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":%d,\"item\":%s}\n\n", i, item)
	}
	stream += "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{" + usage + "}}\n\n"
	base, key := priced(t, `
  - {name: openai, format: openai, base_url: "UPSTREAM/tools", region: us, credential: k, tool_prices: {search: 10, file_search: 2.5, code_session: 0.03}}
  - {name: streams, format: openai, base_url: "UPSTREAM/streams", region: us, credential: k, tool_prices: {search: 10, file_search: 2.5, code_session: 0.03}}
  - {name: bare, format: openai, base_url: "UPSTREAM/tools", region: us, credential: k}
  - {name: gemini, format: gemini, base_url: UPSTREAM, region: us, credential: k, tool_prices: {grounded_request: 35}}
  - {name: anthropic, format: anthropic, base_url: UPSTREAM, region: us, credential: k}`, `prices:
  - {provider: gemini, model: by-search, price: {input: 1, output: 1, search: 14}}
  - {provider: anthropic, model: advisor, price: {input: 10, output: 10}}
  - {provider: anthropic, model: "*", price: {input: 1, output: 1}}
`+prices("openai", "streams", "bare", "gemini"), map[string]string{
		"/tools/v1/responses":                      "application/json\n" + `{"object":"response","output":[` + items + `],` + usage + `}`,
		"/tools/v1/chat/completions":               "application/json\n" + `{"choices":[{"finish_reason":"stop","message":{"content":"x"}}],"usage":{"prompt_tokens":1000000,"completion_tokens":0,"total_tokens":1000000}}`,
		"/streams/v1/responses":                    stream,
		"/v1beta/models/m:generateContent":         "application/json\n" + grounded,
		"/v1beta/models/by-search:generateContent": "application/json\n" + grounded,
		"/v1beta/models/m:streamGenerateContent":   sse + "data: " + grounded + "\n\n",
		"/v1/messages":                             "application/json\n" + `{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":0},{"type":"advisor_message","model":"advisor","input_tokens":1000000,"output_tokens":0}]}}`,
	})
	for _, tt := range []struct {
		path, body, cost, parse string
	}{
		{"/openai/v1/responses", `{"model":"m","input":"x","tools":[{"type":"web_search"}]}`, "1.0425", "ok"},
		{"/streams/v1/responses", `{"model":"m","input":"x","stream":true,"tools":[{"type":"web_search"}]}`, "1.0425", "ok"},
		{"/bare/v1/responses", `{"model":"m","input":"x","tools":[{"type":"web_search"}]}`, "1", "partial"},
		{"/openai/v1/chat/completions", `{"model":"m","messages":[],"web_search_options":{}}`, "1.01", "ok"},
		{"/openai/v1/chat/completions", `{"model":"m","messages":[]}`, "1", "ok"},
		{"/bare/v1/chat/completions", `{"model":"m","messages":[],"web_search_options":{}}`, "1", "partial"},
		{"/gemini/v1beta/models/m:generateContent", `{"contents":[]}`, "1.035", "ok"},
		{"/gemini/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[]}`, "1.035", "ok"},
		{"/gemini/v1beta/models/by-search:generateContent", `{"contents":[]}`, "1.028", "ok"},
		{"/anthropic/v1/messages", `{"model":"m","max_tokens":5,"messages":[]}`, "10.18", "ok"},
	} {
		r := row(t, base, key, tt.path, tt.body)
		if got := r.Get("cost_usd").Raw; got != tt.cost || r.Get("parse_status").Str != tt.parse {
			t.Errorf("%s %s costs %s and is %s, want %s, %s", tt.path, tt.body, got, r.Get("parse_status").Str, tt.cost, tt.parse)
		}
	}
}

// prices are one price of tokens for each provider.
func prices(providers ...string) (text string) {
	for _, p := range providers {
		text += fmt.Sprintf("  - {provider: %s, model: \"*\", price: {input: 1, output: 1}}\n", p)
	}
	return text
}

// TestPicturesAndSpeechCostWhatTheyAre puts sizes, qualities, numbers and texts
// where the provider does not look: none lowers the cost.
func TestPicturesAndSpeechCostWhatTheyAre(t *testing.T) {
	t.Parallel()
	const two = "application/json\n" + `{"created":1,"data":[{"url":"a"},{"url":"b"}]}`
	base, key := priced(t, `
  - {name: openai, format: openai, base_url: UPSTREAM, region: us, credential: k}
  - {name: together, format: together, base_url: UPSTREAM, region: us, credential: k}
  - {name: minimax, format: minimax, base_url: UPSTREAM, region: us, credential: k}`, `prices:
  - {provider: openai, model: tts, price: {characters: 15}}
  - {provider: openai, model: "*", price: {image: [{size: 1024x1024, quality: standard, usd: 0.04}, {size: 1024x1024, quality: hd, usd: 0.08}, {size: 256x256, usd: 0.01}]}}
  - {provider: together, model: "*", price: {megapixel: 0.1}}
  - {provider: minimax, model: "*", price: {characters: 15}}
`, map[string]string{
		"/v1/images/generations": two, "/v1/images/edits": two, "/v1/audio/speech": "audio/mpeg\nID3", "/v1/t2a_v2": "audio/mpeg\nID3",
	})
	for _, tt := range []struct {
		path, body string
		least      float64
	}{
		{"/openai/v1/images/generations", `{"model":"m","prompt":"x","n":2}`, 0.08},
		{"/openai/v1/images/generations", `{"model":"m","prompt":"x","n":2,"quality":"hd"}`, 0.16},
		{"/openai/v1/images/generations", `{"model":"m","prompt":"x","n":2,"size":"256x256"}`, 0.02},
		{"/openai/v1/images/generations", `{"model":"m","prompt":"x","n":2,"resolution":"256x256","parameters":{"size":"256x256","n":1},"input":{"size":"256x256"}}`, 0.08},
		{"/openai/v1/images/generations", `{"model":"m","prompt":"x","n":2,"size":"auto"}`, 0.16},
		{"/openai/v1/images/generations", `{"model":"m","prompt":"x","n":2,"size":"1024X1024","quality":"none"}`, 0.16},
		{"/openai/v1/images/generations", `{"model":"m","prompt":"x","n":2,"size":[256],"quality":{}}`, 0.16},
		{"/together/v1/images/generations", `{"model":"m","prompt":"x","n":2}`, 0.2},
		{"/together/v1/images/generations", `{"model":"m","prompt":"x","n":2,"size":"1x1","parameters":{"width":64}}`, 0.2},
		{"/openai/v1/audio/speech", `{"model":"tts","input":"0123456789","voice":"v"}`, 0.00015},
		{"/openai/v1/audio/speech", `{"model":"tts","input":"0123456789","text":"","voice":"v","characters":1}`, 0.00015},
		{"/minimax/v1/t2a_v2", `{"model":"m","text":"0123456789","input":"x"}`, 0.00015},
	} {
		if got := row(t, base, key, tt.path, tt.body).Get("cost_usd").Num; got < tt.least-1e-9 {
			t.Errorf("%s %s costs %v, want %v at least", tt.path, tt.body, got, tt.least)
		}
	}
	for _, body := range []string{`{"model":"m","n":0}`, `{"model":"m","n":-1}`, `{"model":"m","n":0.5}`, `{"model":"m","n":"x"}`, `{"model":"m","n":[]}`} {
		if a := ask(t, base, key, "POST", "/openai/v1/images/generations", body); a.StatusCode != 400 || !strings.Contains(a.body, `\"n\"`) {
			t.Errorf("%s: %s", body, a)
		}
	}
}
