package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestHome leads browsers, and nobody else, from the gateway's address to the
// dashboard.
func TestHome(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	for _, c := range []struct {
		method, accept, location string
		status                   int
	}{
		{"GET", "text/html,application/xhtml+xml,*/*;q=0.8", "/dashboard", 303},
		{"HEAD", "text/html", "/dashboard", 303},
		{"GET", "*/*", "", 404},
		{"GET", "", "", 404},
		{"POST", "text/html", "", 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, g.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", c.accept)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || resp.Header.Get("Location") != c.location || resp.Header.Get("Vary") != "Accept, Sec-Fetch-Mode" || resp.Header.Get("X-Gateway-Request-Id") == "" {
			t.Errorf("%s / with Accept %q = %d, %v, want %d", c.method, c.accept, resp.StatusCode, resp.Header, c.status)
		}
	}
}

// TestJobsObeyTheRegionPolicy refuses polls, downloads and cancellations of a
// job at a provider that the organization's policy has come to exclude, and
// sends nothing there; a job in the EU goes on.
func TestJobsObeyTheRegionPolicy(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Catalog: `
  - {slug: far/film, kind: video, routes: [{provider: openai, model: sora-2}], price: {second: 0.1}}
  - {slug: near/film, kind: video, routes: [{provider: eu, model: sora-2}], price: {second: 0.1}}`})
	client := g.NewClient("films")
	key, _ := g.NewKey(client)
	do := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, answer := exchange(t, r)
		return resp.StatusCode, answer
	}
	jobs := map[string]string{}
	for _, slug := range []string{"far/film", "near/film"} {
		status, answer := do("POST", "/v1/videos", `{"model":"`+slug+`","prompt":"a kite [[polls=1000]]","seconds":"8"}`)
		_, id, _ := strings.Cut(answer, `"id":"`)
		if id, _, _ = strings.Cut(id, `"`); status != 200 || id == "" {
			t.Fatalf("%s: %d %s", slug, status, answer)
		}
		jobs[slug] = id
	}
	g.Admin(nil, "client", "set", string(client), "--routing-policy", "eu_only")
	eventually(t, "the policy is seen", func() bool {
		status, _ := do("GET", "/v1/videos/"+jobs["far/film"], "")
		return status == 403
	})
	sent := g.Upstream.Ledger.Len()
	for _, target := range []string{"GET /v1/videos/", "DELETE /v1/videos/", "GET /openai/v1/videos/", "DELETE /openai/v1/videos/", "GET /openai/v1/videos/*/content", "GET /v1/videos/*/content"} {
		method, path, _ := strings.Cut(target, " ")
		if !strings.Contains(path, "*") {
			path += "*"
		}
		status, answer := do(method, strings.Replace(path, "*", jobs["far/film"], 1), "")
		const want = `{"error":{"type":"region_policy","message":"provider region \"us\" is blocked by the client's eu_only routing policy"}}`
		if status != 403 || strings.TrimSpace(answer) != want {
			t.Errorf("%s = %d %s, want %s", target, status, answer, want)
		}
	}
	if n := g.Upstream.Ledger.Len(); n != sent {
		t.Errorf("%d requests reached the provider", n-sent)
	}
	if status, answer := do("GET", "/v1/videos/"+jobs["near/film"], ""); status != 200 {
		t.Errorf("a poll in the EU = %d %s", status, answer)
	}
	if status, answer := do("DELETE", "/v1/videos/"+jobs["near/film"], ""); status != 200 {
		t.Errorf("a cancellation in the EU = %d %s", status, answer)
	}
}

// TestAllowedFollowsTheRoutingPolicy shows, prices and grants a model by the
// route that a call takes, not by the first of its list.
func TestAllowedFollowsTheRoutingPolicy(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Catalog: `
  - {slug: acme/both, kind: llm, price: {input: 9, output: 9}, routes: [{provider: missing, model: x}, {provider: openai, model: both-us, price: {input: 1, output: 1}}, {provider: eu, model: both-eu, price: {input: 2, output: 2}}]}`})
	for _, c := range []struct {
		policy, ceiling string
		allowed         bool
		price, model    string
	}{
		{"any", "*", true, `"usd":1}`, "both-us"},
		{"eu_only", "*", true, `"usd":2}`, "both-eu"},
		{"any", "eu", true, `"usd":2}`, "both-eu"},
		{"eu_only", "eu", true, `"usd":2}`, "both-eu"},
		{"eu_only", "openai", false, `"usd":2}`, ""},
	} {
		client := g.NewClient("of "+c.policy, "--routing-policy", c.policy)
		file := writeFile(t, `{"max_scopes":["inference:use","keys:manage","stats:read"],"entitlements":[{"provider":"`+c.ceiling+`","model_pattern":"*","effect":"allow"}]}`)
		g.Admin(nil, "ceiling", "set", "--client", string(client), "--file", file)
		key, _ := g.NewKey(client)
		do := func(method, path, key, body string) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+key)
			resp, answer := exchange(t, r)
			return resp.StatusCode, answer
		}
		if _, answer := do("GET", "/gw/models", key, ""); strings.Contains(answer, `"allowed":true`) != c.allowed {
			t.Errorf("%s, ceiling %s: %s", c.policy, c.ceiling, answer)
		}
		if _, answer := do("GET", "/gw/prices", key, ""); !strings.Contains(answer, c.price) {
			t.Errorf("%s, ceiling %s: %s, want %s", c.policy, c.ceiling, answer, c.price)
		}
		status, answer := do("POST", "/gw/keys", key, `{"scopes":["inference:use"],"entitlements":[{"axis":"vendor","provider":"acme","model_pattern":"both","effect":"allow"}]}`)
		if want := map[bool]int{true: 200, false: 403}[c.allowed]; status != want {
			t.Errorf("%s, ceiling %s: issuance %d %s, want %d", c.policy, c.ceiling, status, answer, want)
		}
		if !c.allowed {
			continue
		}
		_, child, _ := strings.Cut(answer, `"key":"`)
		child, _, _ = strings.Cut(child, `"`)
		if status, answer := do("POST", "/v1/chat/completions", child, `{"model":"acme/both","messages":[{"role":"user","content":"hi"}]}`); status != 200 || !strings.Contains(answer, `"`+c.model+`"`) {
			t.Errorf("%s, ceiling %s: call %d %s, want %s", c.policy, c.ceiling, status, answer, c.model)
		}
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := t.TempDir() + "/file.json"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestCeilingIsWhole refuses a file that lacks a list: it would forbid
// everything that it forgets.
func TestCeilingIsWhole(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	client := g.NewClient("ceiling")
	for text, want := range map[string]int{
		`{}`:                                    1,
		`{"max_scopes":[]}`:                     1,
		`{"entitlements":[]}`:                   1,
		`{"max_scopes":null,"entitlements":[]}`: 1,
		`{"max_scopes":[],"entitlements":[{"axis":"","provider":"*","model_pattern":"*","effect":"allow"}]}`:         1,
		`{"max_scopes":["stats:read"],"entitlements":[{"provider":"*","model_pattern":"*","effect":"allow"}],"x":1}`: 1,
		`{"max_scopes":[],"entitlements":[]}`: 0,
		`{"max_scopes":["stats:read"],"entitlements":[{"provider":"*","model_pattern":"*","effect":"allow"}]}`: 0,
	} {
		_, stderr, code := g.Run("ceiling", "set", "--config", g.ConfigFile, "--client", string(client), "--file", writeFile(t, text))
		if code != want {
			t.Errorf("%s: exit %d, want %d\n%s", text, code, want, stderr)
		}
	}
	stdout, _, _ := g.Run("config", "check", "--config", g.ConfigFile)
	if !strings.Contains(stdout, `no provider called "missing" is configured`) || !strings.Contains(g.Log(), `no provider called "missing" is configured`) {
		t.Errorf("the warning does not name the provider: %s", stdout)
	}
}
