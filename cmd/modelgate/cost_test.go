package main

import (
	"fmt"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestCostsToTheNano bills calls whose tokens the simulated provider counts by
// rule, streamed and not, in every format, and holds the rows against figures
// worked out by hand from the price list.
func TestCostsToTheNano(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{More: `prices:
  - {provider: gemini, model: "gemini-*", price: {input: 0.3, cached_input: 0.03, output: 2.5}}
  - {provider: openai, model: tiny, price: {input: 0.0005, output: 0.0005}}
  - {provider: openai, model: plain, price: {input: 1, output: 10}}`})
	const (
		chat     = `{"model":%q,"messages":[{"role":"user","content":%q}]%s}`
		messages = `{"model":%q,"max_tokens":500,"messages":[{"role":"user","content":%q}]%s}`
		response = `{"model":%q,"input":%q%s}`
		mini     = "openai/gpt-5-mini"
		haiku    = "anthropic/claude-haiku-4.5"
	)
	tests := map[string]struct {
		path, form, model, prompt string
		cost                      string // USD
		tokens                    int
	}{
		// 3 × 0.25 + 1000 × 0.025 + (5 + 7) × 2 micro-USD
		"chat": {"/v1/chat/completions", chat, mini, "one two three [[cached=1000]] [[reasoning=7]] [[words=5]]", "0.00004975", 1015},
		// 1 × 0.25 + 3 × 2
		"responses": {"/v1/responses", response, mini, "one [[words=3]]", "0.00000625", 4},
		// 2 × 0.25 + 40 × 0.025 + 3 × 2
		"responses, cached": {"/v1/responses", response, mini, "one two [[cached=40]] [[words=3]]", "0.0000075", 45},
		// 2 × 1 + 1000 × 0.1 + 100 × 1.25 + 10 × 2 + 4 × 5
		"messages": {"/v1/messages", messages, haiku, "one two [[cached=1000]] [[cache_write=100]] [[cache_write_1h=10]] [[words=4]]", "0.000267", 1116},
		// as on the door: the catalog knows the route
		"proxy": {"/anthropic/v1/messages", messages, "claude-haiku-4-5", "one two [[words=4]]", "0.000022", 6},
		// 0.5 nano-USD a token: 1.5 and 2.5 both go to 2
		"half up to even":   {"/openai/v1/chat/completions", chat, "tiny", "one [[words=2]]", "0.000000002", 3},
		"half down to even": {"/openai/v1/chat/completions", chat, "tiny", "one two [[words=3]]", "0.000000002", 5},
		// no cached price: cached tokens cost what input does; 2 + 8 + 10
		"dearer neighbour": {"/openai/v1/chat/completions", chat, "plain", "one two [[cached=8]] [[words=1]]", "0.00002", 11},
		// past what a float can hold exactly: 12345678901 × 0.25 + 1 × 2
		"large": {"/v1/chat/completions", chat, mini, "[[input=12345678901]] [[words=1]]", "3086.41972725", 12345678902},
	}
	for name, tt := range tests {
		for _, stream := range []string{"", `,"stream":true`} {
			t.Run(name+stream, func(t *testing.T) {
				b.wantCost(t, tt.path, fmt.Sprintf(tt.form, tt.model, tt.prompt, stream), tt.cost, tt.tokens)
			})
		}
	}
	for _, method := range []string{"generateContent", "streamGenerateContent?alt=sse"} {
		t.Run("gemini "+method, func(t *testing.T) { // 2 × 0.3 + 100 × 0.03 + (3 + 5) × 2.5
			body := `{"contents":[{"role":"user","parts":[{"text":"one two [[cached=100]] [[reasoning=5]] [[words=3]]"}]}]}`
			b.wantCost(t, "/gemini/v1beta/models/gemini-3-flash:"+method, body, "0.0000236", 110)
		})
	}
}

// wantCost makes a call and reads its row back at once.
func (b *bench) wantCost(t *testing.T, path, body, cost string, tokens int) {
	t.Helper()
	resp, answer := b.post(t, path, body)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, answer)
	}
	_, rows := b.get(t, "/gw/usage?id="+resp.Header.Get("X-Gateway-Request-Id"))
	want := fmt.Sprintf(`"cost_usd":%s,"total_tokens":%d,"status_code":200`, cost, tokens)
	if !strings.Contains(rows, want) || !strings.Contains(rows, `"parse_status":"ok"`) {
		t.Errorf("want %s and ok in %s\nanswer: %s", want, rows, answer)
	}
}

// TestCostHeaderIsTheRowOfTheCall asks for the cost of calls, in the header and in
// the trailer, of both servers, and finds it in their rows.
func TestCostHeaderIsTheRowOfTheCall(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"http: fast", "http: standard"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, testkit.GatewayOptions{Server: server})
			for i := range 12 {
				stream, te := i%2 == 1, i%4 == 1
				body := fmt.Sprintf(`{"model":"openai/gpt-5-mini","stream":%v,"messages":[{"role":"user","content":"one [[words=%d]]"}]}`, stream, i+1)
				headers := []string{"X-Gateway-Cost", "1"}
				if te {
					headers = append(headers, "TE", "trailers")
				}
				resp, answer := b.post(t, "/v1/chat/completions", body, headers...)
				if resp.StatusCode != 200 {
					t.Fatalf("%d %s", resp.StatusCode, answer)
				}
				told := resp.Header.Get("X-Gateway-Cost-Usd") + resp.Trailer.Get("X-Gateway-Cost-Usd")
				if want := !stream || te; (told != "") != want {
					t.Errorf("stream %v, trailers %v: header %v, trailer %v", stream, te, resp.Header, resp.Trailer)
				}
				_, row := b.get(t, "/gw/usage?id="+resp.Header.Get("X-Gateway-Request-Id"))
				if told != "" && !strings.Contains(row, `"cost_usd":`+told+",") {
					t.Errorf("%s was told of %s", told, row)
				}
			}
		})
	}
}
