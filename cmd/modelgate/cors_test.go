package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"modelgate/test/testkit"
)

// site sends a request as a page of an origin would; lines are further headers
// in pairs.
func site(t *testing.T, method, url, origin, key string, lines ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(`{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if method == "GET" || method == "OPTIONS" {
		req, _ = http.NewRequest(method, url, nil)
	}
	req.Header.Set("Origin", origin)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(lines); i += 2 {
		req.Header.Add(lines[i], lines[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func preflight(t *testing.T, url, origin string, lines ...string) *http.Response {
	return site(t, "OPTIONS", url, origin, "", append([]string{"Access-Control-Request-Method", "POST"}, lines...)...)
}

var corsPaths = []string{"/v1/chat/completions", "/v2/rerank", "/openai/v1/chat/completions", "/v1/models", "/v1/models/openai/gpt-5-mini", "/gw/me", "/gw/models", "/gw/quota"}

func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Server: `cors: {origins: ["https://app.example", "https://*.sub.example"], max_age: 1m, allow_keys: true}`})
	key, _ := g.NewKey(g.NewClient("pages"))
	const asked = "authorization,content-type,x-stainless-lang,anthropic-dangerous-direct-browser-access"
	for _, origin := range []string{"https://app.example", "https://a.sub.example"} {
		for _, path := range corsPaths {
			r := preflight(t, g.URL+path, origin, "Access-Control-Request-Headers", asked)
			h := r.Header
			if r.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Headers") != asked ||
				h.Get("Access-Control-Allow-Methods") != "POST" || h.Get("Access-Control-Max-Age") != "60" || h.Get("X-Gateway-Request-Id") == "" ||
				!strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
				t.Errorf("preflight of %s by %s: %s %v", path, origin, r.Status, h)
			}
		}
	}
	for name, r := range map[string]*http.Response{
		"200":                site(t, "POST", g.URL+"/v1/chat/completions", "https://app.example", key),
		"a read":             site(t, "GET", g.URL+"/gw/me", "https://app.example", key),
		"401":                site(t, "POST", g.URL+"/v1/chat/completions", "https://app.example", "nobody"),
		"413":                site(t, "POST", g.URL+"/v1/chat/completions", "https://app.example", key, "X-Large", ""),
		"431":                site(t, "GET", g.URL+"/v1/models", "https://app.example", key, "X-Long", strings.Repeat("x", 40<<10)),
		"404":                site(t, "POST", g.URL+"/v1/nothing", "https://app.example", key),
		"by net/http's path": site(t, "GET", g.URL+"/v1/models", "https://app.example", key),
	} {
		exposed := r.Header.Get("Access-Control-Expose-Headers")
		if r.Header.Get("Access-Control-Allow-Origin") != "https://app.example" || !strings.Contains(strings.ToLower(exposed), "x-gateway-request-id") ||
			r.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %s %v", name, r.Status, r.Header)
		}
	}
	for _, origin := range []string{"https://evil.example", "http://app.example", "https://app.example.evil", "https://sub.example", "null", "https://app.example:444"} {
		for _, r := range []*http.Response{preflight(t, g.URL+"/v1/models", origin), site(t, "POST", g.URL+"/v1/chat/completions", origin, key)} {
			if r.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %v", origin, r.Header)
			}
		}
	}
	for _, path := range []string{"/gw/keys", "/gw/usage", "/gw/me/x", "/dashboard", "/dashboard/gw/me", "/healthz", "/metrics", "/openapi.json", "/none"} {
		if r := preflight(t, g.URL+path, "https://app.example"); r.StatusCode == 204 || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight of %s: %s %v", path, r.Status, r.Header)
		}
	}
	for name, lines := range map[string][]string{
		"many names": {"Access-Control-Request-Headers", strings.Repeat("x,", 64) + "x"},
		"long names": {"Access-Control-Request-Headers", strings.Repeat("x", 5000)},
		"no name":    {"Access-Control-Request-Headers", "a b"},
		"two lines":  {"Access-Control-Request-Headers", strings.Repeat("x,", 40) + "x", "Access-Control-Request-Headers", strings.Repeat("y,", 40) + "y"},
	} {
		if r := preflight(t, g.URL+"/v1/models", "https://app.example", lines...); r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Headers") != "" || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %s %v", name, r.Status, r.Header)
		}
	}
}

// mintToken is a browser token of a key.
func mintToken(t *testing.T, url, key, body string) string {
	t.Helper()
	req, err := http.NewRequest("POST", url+"/gw/tokens", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var minted struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&minted); err != nil || resp.StatusCode != 200 {
		t.Fatalf("mint: %s, %v", resp.Status, err)
	}
	return minted.Token
}

// TestKeysStayOutOfBrowsers: pages of other sites use tokens, unless the operator
// has allowed keys, and the tokens of one address share a rate.
func TestKeysStayOutOfBrowsers(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		Server: `cors: {origins: ["https://app.example", "https://gate.example"]}, base_url: "https://Gate.example:443"`,
		Limits: "address_requests_per_minute: 8",
	})
	key, _ := g.NewKey(g.NewClient("pages"))
	token := mintToken(t, g.URL, key, `{"end_user":"u","models":["openai/*"]}`)
	for _, c := range []struct {
		method, path, origin, secret string
		want                         int
	}{
		{"POST", "/v1/chat/completions", "https://app.example", key, 403},
		{"POST", "/openai/v1/chat/completions", "https://app.example", key, 403},
		{"GET", "/v1/models", "https://app.example", key, 403},
		{"GET", "/gw/me", "https://app.example", key, 403},
		{"POST", "/v1/chat/completions", "https://app.example", token, 200},
		{"GET", "/gw/me", "https://app.example", token, 200},
		{"POST", "/v1/chat/completions", "https://app.example", "nobody", 401},
		{"GET", "/gw/me", "https://gate.example", key, 200},
		{"GET", "/gw/me", "https://evil.example", key, 200}, // the page cannot read it
		{"GET", "/gw/keys", "https://app.example", key, 200},
	} {
		if r := site(t, c.method, g.URL+c.path, c.origin, c.secret); r.StatusCode != c.want {
			t.Errorf("%s %s of %s with %.8s: %s, want %d", c.method, c.path, c.origin, c.secret, r.Status, c.want)
		}
	}
	for n := range 7 {
		want := 200
		if n == 6 { // two were made above
			want = 429
		}
		fresh := mintToken(t, g.URL, key, `{"end_user":"u","models":["openai/*"]}`)
		if r := site(t, "GET", g.URL+"/gw/me", "https://app.example", fresh); r.StatusCode != want {
			t.Errorf("request %d of an address: %s, want %d", n+3, r.Status, want)
		}
	}
}

// TestCrossOriginIsOff by default: nothing of it is answered.
func TestCrossOriginIsOff(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	key, _ := g.NewKey(g.NewClient("pages"))
	for _, path := range []string{"/v1/chat/completions", "/v1/models"} {
		r := site(t, "OPTIONS", g.URL+path, "https://app.example", key, "Access-Control-Request-Method", "POST")
		if r.StatusCode != 405 || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("OPTIONS %s: %s %v", path, r.Status, r.Header)
		}
	}
}

// TestCrossOriginInChromium has a page call the gateway from an origin that may
// and from one that may not.
func TestCrossOriginInChromium(t *testing.T) {
	t.Parallel()
	program := testkit.Chromium(t)
	var page atomic.Pointer[string]
	serve := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(*page.Load()))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	allowed, foreign := serve(), serve()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Server: fmt.Sprintf("cors: {origins: [%q]}", allowed)})
	key, _ := g.NewKey(g.NewClient("pages"))
	token := mintToken(t, g.URL, key, fmt.Sprintf(`{"end_user":"u","models":["openai/*"],"origins":[%q]}`, allowed))
	html := fmt.Sprintf(`<!doctype html><body><script>
		const call = (key) => fetch("%s/v1/chat/completions", {method: "POST", headers: {"Authorization": "Bearer " + key, "Content-Type": "application/json"},
			body: JSON.stringify({model: "openai/gpt-5-mini", messages: [{role: "user", content: "hi"}]})})
			.then(async (r) => r.status + " " + !!r.headers.get("x-gateway-request-id") + " " + Object.keys(await r.json()).sort()[0], () => "refused");
		(async () => { document.body.textContent = "[" + await call("%s") + "][" + await call("nobody") + "][" + await call("%s") + "]"; })();
	</script>`, g.URL, token, key)
	page.Store(&html)
	for origin, want := range map[string]string{allowed: "[200 true choices][401 true error][403 true error]", foreign: "[refused][refused][refused]"} {
		out, err := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
			"--user-data-dir="+t.TempDir(), "--virtual-time-budget=30000", "--dump-dom", origin).Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("a page of %s: %v, want %s in %s", origin, err, want, out)
		}
	}
}

// TestForwardedProtoMakesCookiesSecure where it comes from a trusted proxy.
func TestForwardedProtoMakesCookiesSecure(t *testing.T) {
	t.Parallel()
	for server, secure := range map[string]bool{"": false, "trusted_proxies: [private]": true, "trusted_proxies: [203.0.113.0/24]": false} {
		g := newBench(t, testkit.GatewayOptions{Server: server})
		resp, text := newBrowser(t, g.URL).send("POST /dashboard/session", fmt.Sprintf(`{"key":%q}`, g.key), "X-Forwarded-Proto", "https", "Origin", g.URL)
		if resp.StatusCode != 200 {
			t.Fatalf("%q: %d %s", server, resp.StatusCode, text)
		}
		if c := resp.Cookies()[0]; c.Secure != secure || strings.HasPrefix(c.Name, "__Host-") != secure {
			t.Errorf("%q: cookie %+v, want secure %v", server, c, secure)
		}
		if logged := strings.Contains(g.Log(), "server.trusted_proxies"); logged == secure {
			t.Errorf("%q: warned %v", server, logged)
		}
	}
}
