package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/provider/usage/eventstream"
	"modelgate/internal/simulator"
	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// newBedrock is a gateway before a Bedrock: one provider signs, another has an API
// key, a third an access key that is wrong. An OpenAI provider is beside them.
func newBedrock(t *testing.T) (*bench, *cloud.Bedrock) {
	t.Helper()
	stand := cloud.NewBedrock(t)
	const identity = "format: bedrock, region: eu-central-1, identity: {aws: {region: eu-central-1, service: bedrock, access_key_id: %s, secret_access_key: %s}}"
	b := newBench(t, testkit.GatewayOptions{
		Providers: fmt.Sprintf("\n  - {name: signed, base_url: %q, "+identity+"}\n", stand.URL, cloud.AccessKeyID, cloud.SecretKey) +
			fmt.Sprintf("  - {name: keyed, format: bedrock, region: eu-central-1, base_url: %q, credential: %s}\n", stand.URL, cloud.BedrockKey) +
			fmt.Sprintf("  - {name: wrong, base_url: %q, "+identity+"}\n", stand.URL, cloud.AccessKeyID, "canary-wrong") +
			"  - {name: openai, format: openai, region: us, base_url: \"$UPSTREAM\", credential: sk-upstream}",
		Catalog: `
  - {slug: amazon/claude, kind: llm, routes: [{provider: signed, model: eu.anthropic.claude-haiku-4-5}], price: {input: 1, output: 5}}
  - {slug: amazon/keyed, kind: llm, routes: [{provider: keyed, model: openai.gpt-5-mini}], price: {input: 1, output: 5}}
  - {slug: amazon/global, kind: llm, routes: [{provider: signed, model: global.anthropic.claude-haiku-4-5}], price: {input: 1, output: 5}}
  - {slug: amazon/profile, kind: llm, routes: [{provider: signed, model: "arn:aws:bedrock:eu-central-1:1:application-inference-profile/x7k2"}], price: {input: 1, output: 5}}
  - {slug: amazon/wrong, kind: llm, routes: [{provider: wrong, model: anthropic.claude}], price: {input: 1, output: 5}}
  - {slug: openai/gpt, kind: llm, routes: [{provider: openai, model: gpt}], price: {input: 1, output: 5}}`,
		More: `prices:
  - {provider: signed, model: "*", price: {input: 1, output: 5}}
  - {provider: keyed, model: "*", price: {input: 1, output: 5}}
`,
	})
	return b, stand
}

// TestBedrockDoors calls the doors that a Bedrock serves, whole and streamed, over a
// signature and with a key. The body leaves as it came but for the model.
func TestBedrockDoors(t *testing.T) {
	t.Parallel()
	b, stand := newBedrock(t)
	doors := []struct{ path, upstream, body string }{
		{"/v1/chat/completions", "/openai/v1/chat/completions", `{"model":%q,"messages":[{"role":"user","content":"hello there"}]%s}`},
		{"/v1/responses", "/openai/v1/responses", `{"model":%q,"input":"hello there"%s}`},
		{"/v1/messages", "/anthropic/v1/messages", `{"model":%q,"max_tokens":50,"messages":[{"role":"user","content":"hello there"}]%s}`},
		{"/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens", `{"model":%q,"messages":[{"role":"user","content":"hello there"}]%s}`},
	}
	calls := 0
	for _, d := range doors {
		for slug, native := range map[string]string{"amazon/claude": "eu.anthropic.claude-haiku-4-5", "amazon/keyed": "openai.gpt-5-mini",
			"amazon/profile": "arn:aws:bedrock:eu-central-1:1:application-inference-profile/x7k2"} {
			for _, extra := range []string{"", `,"stream":true`} {
				if extra != "" && d.path == "/v1/messages/count_tokens" {
					continue
				}
				calls++
				resp, text := b.post(t, d.path, fmt.Sprintf(d.body, slug, extra), "X-Amzn-Bedrock-Service-Tier", "priority", "X-Amz-Security-Token", "x")
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("%s %s: %d %s; %q", d.path, slug, resp.StatusCode, text, stand.Refused())
				}
				all := stand.Ledger.All()
				last := all[len(all)-1]
				if last.Path != d.upstream || last.Model != native {
					t.Errorf("%s %s: the provider got %s for %s, want %s for %s", d.path, slug, last.Path, last.Model, d.upstream, native)
				}
				if last.Header.Get("X-Amzn-Bedrock-Service-Tier") != "priority" || last.Header.Get("X-Amz-Security-Token") != "" {
					t.Errorf("%s %s: headers %v", d.path, slug, last.Header)
				}
			}
		}
	}
	b.wantServed(t, stand.Ledger.All(), calls)
}

// TestBedrockOperations calls Bedrock's own operations through the provider's paths.
// The reply passes byte for byte, a stream's messages included.
func TestBedrockOperations(t *testing.T) {
	t.Parallel()
	b, stand := newBedrock(t)
	const converse = `{"messages":[{"role":"user","content":[{"text":"hello there"}]}],"inferenceConfig":{"maxTokens":50}}`
	const invoke = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":50,"messages":[{"role":"user","content":"hello there"}]}`
	calls := 0
	for _, model := range []string{"anthropic.claude-haiku-4-5-v1:0", "anthropic.claude-haiku-4-5-v1%3A0", "eu.anthropic.claude-x%C3%A9@1"} {
		for operation, body := range map[string]string{"converse": converse, "converse-stream": converse, "invoke": invoke, "invoke-with-response-stream": invoke} {
			for _, provider := range []string{"signed", "keyed"} {
				calls++
				resp, text := b.post(t, "/"+provider+"/model/"+model+"/"+operation, body)
				if resp.StatusCode != http.StatusOK || !strings.Contains(text, "ulated") && !strings.Contains(text, `"bytes"`) {
					t.Fatalf("%s %s: %d %q; %q", model, operation, resp.StatusCode, text, stand.Refused())
				}
				if streams := strings.HasSuffix(operation, "stream"); streams {
					n := 0
					var s eventstream.Splitter
					s.Push([]byte(text), func(eventstream.Frame) { n++ })
					if n < 5 || s.Flawed() {
						t.Errorf("%s: %d messages, flawed %v", operation, n, s.Flawed())
					}
				}
				if native, _ := url.PathUnescape(model); stand.Ledger.All()[calls-1].Model != native {
					t.Errorf("the provider ran %q, want %q", stand.Ledger.All()[calls-1].Model, native)
				}
			}
		}
	}
	b.wantServed(t, stand.Ledger.All(), calls)
	for _, c := range []struct {
		path, body string
		status     int
		kind, want string
	}{
		{"/signed/model/m/converse", `{"messages":[{"content":[{"image":{"source":{"s3Location":{"uri":"s3://b/k"}}}}]}]}`, 403, "AccessDeniedException", "s3Location"},
		{"/signed/model/m/invoke", `{"model":"other","max_tokens":1,"messages":[]}`, 400, "ValidationException", "leave it out of the body"},
		{"/signed/model/arn:aws:bedrock/converse", `{"messages":[]}`, 400, "ValidationException", "not by an ARN"},
		{"/signed/model/m/apply-guardrail", `{}`, 403, "AccessDeniedException", "path not permitted"},
		{"/v1/messages", `{"model":"amazon/nothing"}`, 404, "", "amazon/nothing"},
	} {
		resp, text := b.post(t, c.path, c.body)
		if resp.StatusCode != c.status || resp.Header.Get("X-Amzn-Errortype") != c.kind || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s %s, want %d %s %s", c.path, resp.StatusCode, resp.Header.Get("X-Amzn-Errortype"), text, c.status, c.kind, c.want)
		}
		if c.kind != "" && resp.Header.Get("X-Amzn-Requestid") != resp.Header.Get("X-Request-Id") {
			t.Errorf("%s: request ids %v", c.path, resp.Header)
		}
	}
}

// TestBedrockRefusals holds what a Bedrock must not be asked for, and what the other
// formats go on to take.
func TestBedrockRefusals(t *testing.T) {
	t.Parallel()
	b, stand := newBedrock(t)
	const chat = `{"model":"amazon/claude","messages":[{"role":"user","content":"x"}],%s}`
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/chat/completions", fmt.Sprintf(chat, `"a":{"s3Location":{"uri":"s3://b/k"}}`), 403, `\"s3Location\" refers to an object stored at the provider`},
		{"/v1/chat/completions", fmt.Sprintf(chat, `"tools":[{"function":{"parameters":{"s3\u0055ri":"x"}}}]`), 403, `\"s3Uri\" refers`},
		{"/v1/chat/completions", fmt.Sprintf(chat, `"guardrailConfig":{}`), 403, `\"guardrailConfig\" refers`},
		{"/signed/openai/v1/responses", `{"model":"m","input":"x","previous_response_id":"r"}`, 403, `\"previous_response_id\" refers`},
		{"/signed/openai/v1/responses", `{"model":"m","input":"x","background":true}`, 400, `\"background\" is not supported`},
		{"/signed/anthropic/v1/messages", `{"model":"arn:aws:bedrock:eu-central-1:1:application-inference-profile/x","messages":[]}`, 400, "name the model by its id, not by an ARN"},
		{"/signed/anthropic/v1/messages", `{"model":"m","messages":[],"tools":[{"model":"ARN:aws:x"}]}`, 400, "name the model by its id, not by an ARN"},
		{"/v1/messages", `{"model":"amazon/claude","max_tokens":1,"messages":[],"tools":[{"model":"arn:aws:x"}]}`, 400, "name the model by its id, not by an ARN"},
		{"/signed/async-invoke", `{"modelId":"m"}`, 403, "path not permitted for this provider"},
		{"/signed/openai/v1/chat/completions?X-Amz-Signature=x", `{"model":"m","messages":[]}`, 400, "parameter"},
	} {
		resp, text := b.post(t, c.path, c.body)
		if resp.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.body, resp.StatusCode, text, c.status, c.want)
		}
	}
	if n := stand.Ledger.Len(); n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
	// Other formats know nothing of S3 and take such a member.
	resp, text := b.post(t, "/v1/chat/completions", `{"model":"openai/gpt","messages":[{"role":"user","content":"x"}],"s3Location":{"uri":"s3://b/k"}}`)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("an OpenAI provider: %d %s", resp.StatusCode, text)
	}
	// A refused signature goes to the client as it came, and costs nothing.
	resp, text = b.post(t, "/v1/messages", `{"model":"amazon/wrong","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`)
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "the signature does not match") {
		t.Errorf("a wrong secret: %d %s", resp.StatusCode, text)
	}
	if _, rows := b.get(t, "/gw/usage?limit=1"); !strings.Contains(rows, `"status_code":403`) || !strings.Contains(rows, `"cost_usd":0,`) {
		t.Errorf("row of a wrong secret: %s", rows)
	}
}

// TestBedrockRegions has the profile in a model's id decide, for each model that a
// request names.
func TestBedrockRegions(t *testing.T) {
	t.Parallel()
	b, _ := newBedrock(t)
	key, _ := b.NewKey(b.NewClient("europe", "--routing-policy", "eu_only"))
	inEU := &bench{b.Gateway, key}
	const messages = `{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":"x"}]%s}`
	for _, c := range []struct {
		path, model, extra, refused string
	}{
		{"/v1/messages", "amazon/claude", "", ""},
		{"/v1/messages", "amazon/global", "", "global"},
		{"/v1/messages", "amazon/profile", "", "unknown"},
		{"/v1/messages", "amazon/claude", `,"tools":[{"model":"us.anthropic.claude"}]`, "us"},
		{"/signed/anthropic/v1/messages", "anthropic.claude", "", ""},
		{"/signed/anthropic/v1/messages", "global.anthropic.claude", "", "global"},
		{"/signed/anthropic/v1/messages", "us-gov.anthropic.claude", "", "us-gov"},
		{"/signed/anthropic/v1/messages", "eu.anthropic.claude", `,"tools":[{"model":"jp.anthropic.claude"}]`, "jp"},
	} {
		resp, text := inEU.post(t, c.path, fmt.Sprintf(messages, c.model, c.extra))
		want := http.StatusOK
		if c.refused != "" {
			want = http.StatusForbidden
		}
		if resp.StatusCode != want || !strings.Contains(text, c.refused) {
			t.Errorf("%s %s%s: %d %s, want %d with %q", c.path, c.model, c.extra, resp.StatusCode, text, want, c.refused)
		}
	}
}

// wantServed compares the usage rows with what the cloud served, at 1 USD for a
// million tokens in and 5 out. There are n calls.
func (b *bench) wantServed(t *testing.T, served []simulator.Served, n int) {
	t.Helper()
	var want, got []string
	for _, s := range served {
		if strings.HasSuffix(s.Path, "/count_tokens") {
			s.InputTokens, s.OutputTokens = 0, 0
		}
		input := modelgate.Nano(s.InputTokens+s.CachedTokens+s.CacheWriteTokens+s.CacheWrite1hTokens) * 1000
		want = append(want, fmt.Sprintf("%d tokens, %s USD, ok", int64(input)/1000+s.OutputTokens, input+modelgate.Nano(s.OutputTokens)*5000))
	}
	var rows []struct {
		Tokens int64          `json:"total_tokens"`
		Cost   modelgate.Nano `json:"cost_usd"`
		Parsed string         `json:"parse_status"`
	}
	_, body := b.get(t, "/gw/usage?limit=1000")
	if err := json.Unmarshal([]byte(body), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%d tokens, %s USD, %s", r.Tokens, r.Cost, r.Parsed))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != n {
		t.Errorf("%d rows, want %d; what the cloud served (-) and what was booked (+):\n%s", len(got), n, diff)
	}
}
