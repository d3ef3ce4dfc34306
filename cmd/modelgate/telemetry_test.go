package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"modelgate/test/testkit"
)

// TestTraces sends calls to a gateway whose collector is this test.
func TestTraces(t *testing.T) {
	t.Parallel()
	spans := make(chan *otlp.Span, 100)
	collector := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data otlp.TracesData
		if err != nil || proto.Unmarshal(body, &data) != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
			return
		}
		for _, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
			spans <- s
		}
	})
	b := newBench(t, testkit.GatewayOptions{More: `telemetry: {otlp_endpoint: "` + collector + `"}`})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	resp, _ := b.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"one two three [[words=5]]"}]}`, "Traceparent", parent)
	b.post(t, "/v1/messages", `{"model":"anthropic/claude-haiku-4.5","max_tokens":9,"messages":[{"role":"user","content":"[[status=503]]"}]}`)
	b.post(t, "/v1/chat/completions", `{"model":"bare"}`)
	byName := map[string]*otlp.Span{}
	deadline := time.After(time.Minute)
	for len(byName) < 5 {
		select {
		case s := <-spans:
			byName[s.Name+" "+attribute(s, "error.type")] = s
		case <-deadline:
			t.Fatalf("only %v came\n%s", slices.Collect(maps.Keys(byName)), b.Log())
		}
	}
	// The line is written before the span is handed over, and both after the answer.
	id := resp.Header.Get("X-Gateway-Request-Id")
	eventually(t, "the log names the request "+id, func() bool { return id != "" && strings.Contains(b.Log(), "msg=call request_id="+id+" ") })
	server, call := byName["POST /v1/chat/completions "], byName["chat gpt-5-mini "]
	if server == nil || call == nil || byName["chat claude-haiku-4-5 503"] == nil || byName["POST /v1/messages 503"] == nil || byName["POST /v1/chat/completions bad_request"] == nil {
		t.Fatalf("spans %v", slices.Collect(maps.Keys(byName)))
	}
	if string(call.ParentSpanId) != string(server.SpanId) || server.ParentSpanId[1] != 0xf0 || server.TraceId[0] != 0x4b || call.StartTimeUnixNano < server.StartTimeUnixNano {
		t.Errorf("server %v, call %v", server, call)
	}
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini",
		"gen_ai.usage.input_tokens": "3", "gen_ai.usage.output_tokens": "5", "modelgate.cost_usd": "0.00001075",
	} {
		if got := attribute(call, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if failed := byName["chat claude-haiku-4-5 503"]; failed.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || len(failed.TraceId) != 16 {
		t.Errorf("failed call %v", failed)
	}
}

func attribute(s *otlp.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return strings.Trim(a.Value.String()[strings.Index(a.Value.String(), ":")+1:], `" `)
		}
	}
	return ""
}

var metricName = regexp.MustCompile(`\b(?:modelgate|process|go)_[a-z0-9_]+`)

// TestMetricsAreThere looks for every metric that dashboard, rules and guides
// name in what a gateway says of itself after all kinds of calls.
func TestMetricsAreThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{
		Providers: `
  - {name: openai, format: openai, base_url: "$UPSTREAM", region: us, credential: sk-upstream, invoice: {base_url: "http://127.0.0.1:9", credential: sk-admin}}
  - {name: nobody, format: openai, base_url: "http://127.0.0.1:9", region: us, credential: sk-upstream}
  - name: cloud
    format: azure-openai
    base_url: "http://127.0.0.1:9"
    identity: {azure: {tenant_id: t, client_id: c, client_secret: s, scope: s, authority: "https://127.0.0.1:9/"}}`,
		Catalog: `
  - {slug: a/film, kind: video, routes: [{provider: openai, model: sora-2}], price: {second: 0.1}}
  - {slug: a/chat, kind: llm, routes: [{provider: nobody, model: m}, {provider: openai, model: m}], price: {input: 1, output: 2}}`,
		Server: "base_url: \"http://127.0.0.1:8080\"",
		More: "telemetry: {otlp_endpoint: \"http://127.0.0.1:9\"}\noperator: {listen: \"127.0.0.1:0\"}\n" +
			"sign_in: {providers: [{name: corp, label: Corp, issuer: \"http://127.0.0.1:9\", client_id: gate, organizations: [{organization: 0192f000-0000-7000-8000-000000000001, group: \"*\", role: viewer}]}]}\n",
	})
	b.post(t, "/v1/chat/completions", `{"model":"a/chat","messages":[{"role":"user","content":"hi"}]}`)
	b.post(t, "/v1/chat/completions", `{"model":"bare"}`)
	b.hostile(t)
	there := b.jobs(t)
	for _, file := range []string{"deploy/grafana/modelgate.json", "deploy/prometheus/rules.yml", "docs/operations.md", "docs/guides/metrics.md", "docs/guides/runbook.md", "docs/scale.md"} {
		names := metricName.FindAllString(read(t, file), -1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range names {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if there[name] == "" && there[base] == "" {
				t.Errorf("%s names %s, which is not in /metrics", file, name)
			}
		}
	}
	described, runbook := read(t, "docs/guides/metrics.md"), read(t, "docs/guides/runbook.md")
	for name, kind := range there {
		if strings.HasPrefix(name, "modelgate_") && !strings.Contains(described, "`"+name+"`") {
			t.Errorf("docs/guides/metrics.md does not describe %s", name)
		}
		if strings.HasSuffix(name, "_total") != (kind == "counter") {
			t.Errorf("%s is a %s", name, kind)
		}
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, "deploy/prometheus/rules.yml"), -1) {
		if !strings.Contains(runbook, "`"+alert[1]+"`") {
			t.Errorf("the runbook does not say what to do about %s", alert[1])
		}
	}
	wantBounded(t, string(fetch(t, b.URL+"/metrics")))
}

// read is the text of a file of the repository.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hostile makes calls that would each leave a series of their own, if names
// that clients choose came into labels.
func (b *bench) hostile(t *testing.T) {
	t.Helper()
	for n := range 40 {
		name := fmt.Sprintf("x%dx", n)
		b.post(t, "/v1/chat/completions", `{"model":"`+name+`/m"}`)
		b.post(t, "/openai/v1/chat/completions", `{"model":"`+name+`","messages":[{"role":"user","content":"hi"}]}`, "X-Gateway-Attribution", "team="+name, "User-Agent", name)
		b.post(t, "/openai/v1/"+name, `{}`)
		b.post(t, "/"+name+"/v1/chat/completions", `{}`)
		b.post(t, "/v1/"+name, `{}`)
		b.post(t, "/v1/chat/completions", fmt.Sprintf(`{"model":"a/chat","messages":[{"role":"user","content":"[[status=%d]]"}]}`, 400+n))
	}
}

// jobs has a job polled, fetched and cancelled by its client and one ended by
// nobody's asking, and waits until that is counted. It returns the kinds of all
// metrics by name.
func (b *bench) jobs(t *testing.T) map[string]string {
	t.Helper()
	var made struct{ ID string }
	for range 2 {
		_, answer := b.post(t, "/v1/videos", `{"model":"a/film","prompt":"a kite [[polls=1]]","seconds":"4"}`)
		if err := json.Unmarshal([]byte(answer), &made); err != nil || made.ID == "" {
			t.Fatal(answer, err)
		}
	}
	for _, r := range []string{"GET /v1/videos/" + made.ID, "GET /v1/videos/" + made.ID + "/content", "DELETE /v1/videos/" + made.ID} {
		method, path, _ := strings.Cut(r, " ")
		req, err := http.NewRequest(method, b.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+b.key)
		exchange(t, req)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		there := map[string]string{}
		for line := range strings.Lines(string(fetch(t, b.URL+"/metrics"))) {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
				there[strings.Fields(name)[0]] = strings.Fields(name)[1]
			}
		}
		if there["modelgate_job_polls_total"] != "" || time.Since(began) > time.Minute {
			return there
		}
	}
}

// wantBounded checks that every label has one of few values, none of which a
// client chose.
func wantBounded(t *testing.T, text string) {
	t.Helper()
	bounds := map[string]string{
		"surface": `(/openai|/nobody)?/v1/[a-z_/{}*]+`, "provider": "openai|nobody|cloud", "method": "key|corp", "status": `[1-5]\d\d|pending|succeeded|failed|cancelled|expired`,
		"type":      "bad_request|unauthorized|forbidden|region_policy|budget_exceeded|insufficient_balance|not_found|conflict|gone|request_too_large|rate_limited|bad_gateway|unavailable|internal|payment|refund|dispute|other",
		"direction": "in|out", "does": "poll|result|content|cancel", "outcome": "ok|applied|refused|sent|again|unsure|failed|runs|ended|fault|booked|ignored|signed_in|begun|paid|closed", "step": "discovery|code",
		"cause": "dns|refused|reset|unreachable|timeout|tls|closed|malformed|proxy|forbidden|unsendable|other|" +
			"rows|contract_factor|rounding|price|tool_price|unpriced|other_traffic|storage|credit|boundary|open|cut|missing_rows|extra_rows|unmapped|unexplained",
		"kind": "rate|key|person", "scope": "gateway|client|sub_account|key", "unit": "requests|input_tokens|output_tokens|tokens|usd|concurrency", "window": "second|minute|hour|day|",
		"percent": "50|80|100", "le": `[0-9.e+-]+|\+Inf`,
	}
	series := 0
	label := regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "modelgate_") {
			continue
		}
		series++
		for _, l := range label.FindAllStringSubmatch(line, -1) {
			if want := bounds[l[1]]; want == "" || !regexp.MustCompile("^(?:"+want+")$").MatchString(l[2]) {
				t.Errorf("label %s=%q in %s", l[1], l[2], line)
			}
		}
	}
	if series < 50 || series > 400 {
		t.Errorf("%d series", series)
	}
}

// TestDashboard reads the dashboard as Grafana does.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/modelgate.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID    string
		Panels []struct {
			ID      int
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.UID == "" || len(d.Panels) < 20 {
		t.Fatalf("%d panels, %v", len(d.Panels), err)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
	}
}
