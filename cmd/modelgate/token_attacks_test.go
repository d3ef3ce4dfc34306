package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// send makes a request with a secret; lines are further headers in pairs.
func send(t *testing.T, method, url, secret, body string, lines ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(lines); i += 2 {
		req.Header[lines[i]] = append(req.Header[lines[i]], lines[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestTokenAttacks tries to get more out of tokens than was minted.
func TestTokenAttacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Dir: dir, Server: `cors: {origins: ["*"]}`})
	client := g.NewClient("pages")
	key, _ := g.NewKey(client, "--entitlements", `[{"axis":"vendor","provider":"openai","model_pattern":"gpt-5-mini","effect":"allow"},
		{"axis":"vendor","provider":"openai","model_pattern":"sora-2","effect":"allow"}]`)
	mint := func(body string) string { return mintToken(t, g.URL, key, body) }
	want := func(what string, status int, method, path, secret, body string, lines ...string) string {
		t.Helper()
		got, text := send(t, method, g.URL+path, secret, body, lines...)
		if got != status {
			t.Errorf("%s: %d %s, want %d", what, got, text, status)
		}
		return text
	}

	// A token for every model has those of its key.
	wide := mint(`{"end_user":"ann","models":["*"],"attribution":{"team":"web"}}`)
	const hello = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	want("a model of the key", 200, "POST", "/v1/chat/completions", wide, hello)
	want("a model that the key may not call", 403, "POST", "/v1/messages", wide, `{"model":"anthropic/claude-haiku-4.5","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
	for _, pair := range []string{"team=other", "end_user=bob", "token_id=x", "key_id=x"} {
		want("attribution "+pair, 400, "POST", "/v1/chat/completions", wide, hello, "X-Gateway-Attribution", pair)
	}
	want("the same pair", 200, "POST", "/v1/chat/completions", wide, hello, "X-Gateway-Attribution", "team=web")

	// A digit that was changed, and a token called a key.
	last := wide[len(wide)-1:]
	other := "0"
	if last == other {
		other = "1"
	}
	want("a wrong checksum", 401, "GET", "/gw/me", wide[:len(wide)-1]+other, "")
	want("a token called a key", 401, "GET", "/gw/me", strings.Replace(wide, "gw_tmp_", "gw_live_", 1), "")
	want("a key called a token", 401, "GET", "/gw/me", strings.Replace(key, "gw_live_", "gw_tmp_", 1), "")

	// Jobs of another end user, whatever key minted.
	film := want("a job", 200, "POST", "/v1/videos", wide, `{"model":"openai/sora-2","prompt":"rain [[polls=1000]]","seconds":"4"}`)
	var job struct{ ID string }
	if err := json.Unmarshal([]byte(film), &job); err != nil {
		t.Fatal(err)
	}
	want("the job of the user's next token", 200, "GET", "/v1/videos/"+job.ID, mint(`{"end_user":"ann","models":["openai/*"]}`), "")
	want("another user's job", 404, "GET", "/v1/videos/"+job.ID, mint(`{"end_user":"bob","models":["openai/*"]}`), "")
	second, _ := g.NewKey(client)
	want("the job of another key's user of that name", 404, "GET", "/v1/videos/"+job.ID, mintToken(t, g.URL, second, `{"end_user":"ann","models":["openai/*"]}`), "")

	for _, origin := range []string{``, `*`, `null`, `https://`, `https://a.example/`, `https://a.example/p`, `https://a@b.example`, `https://*.a.example`, "https://a.example\\u0000",
		"https://a.example\\r\\nX: y", `https://a.example?x`, "https://a.example\\u00a0\\u0085", strings.Repeat("a", 600)} {
		want("the origin "+origin, 400, "POST", "/gw/tokens", key, fmt.Sprintf(`{"end_user":"u","models":["a/b"],"origins":["%s"]}`, origin))
	}
	for _, user := range []string{"", "\\u0000", "a\\nb", "\\u007f", strings.Repeat("x", 129)} {
		want("the user "+user, 400, "POST", "/gw/tokens", key, fmt.Sprintf(`{"end_user":"%s","models":["a/b"]}`, user))
	}

	bound := mint(`{"end_user":"ann","models":["openai/*"],"origins":["https://a.example"]}`)
	for _, origin := range [][]string{{"https://A.example"}, {"https://a.example."}, {"https://a.example:443"}, {"https://a.example", "https://a.example"}, {"null"}, {}} {
		var lines []string
		for _, o := range origin {
			lines = append(lines, "Origin", o)
		}
		want(fmt.Sprintf("from %q", origin), 403, "GET", "/gw/me", bound, "", lines...)
	}

	// The command ends them; what is recorded names no user.
	var ended struct{ Revoked int }
	if g.Admin(&ended, "token", "revoke", "--client", string(client), "--end-user", "ann"); ended.Revoked < 2 {
		t.Errorf("the command revoked %d tokens", ended.Revoked)
	}
	for began := time.Now(); ; {
		if status, _ := send(t, "GET", g.URL+"/gw/me", wide, ""); status == 401 {
			break
		}
		if time.Since(began) > revokedWithin {
			t.Fatal("a token that the command has revoked still works")
		}
	}
	want("of no user", 204, "DELETE", "/gw/tokens?end_user=bob", key, "")
	g.Stop()
	db := testkit.OpenSQLite(t, filepath.Join(dir, "modelgate.db"))
	var records, naming int
	if err := db.QueryRow(`SELECT COUNT(*), COALESCE(SUM(change LIKE '%ann%' OR change LIKE '%bob%'), 0) FROM audit WHERE action LIKE 'token.%'`).Scan(&records, &naming); err != nil {
		t.Fatal(err)
	}
	if records < 6 || naming != 0 {
		t.Errorf("%d records of tokens, of which %d name a user", records, naming)
	}
}

// TestAddressOfTokens counts requests by the address that the nearest trusted
// proxy has seen, whatever stands before it.
func TestAddressOfTokens(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Server: "trusted_proxies: [private]", Limits: "address_requests_per_minute: 3"})
	key, _ := g.NewKey(g.NewClient("pages"))
	ask := func(n int, seen string) int {
		token := mintToken(t, g.URL, key, `{"end_user":"u","models":["openai/*"]}`)
		var lines []string
		for i := range 9 { // what the client itself has sent
			lines = append(lines, "X-Forwarded-For", fmt.Sprintf("198.51.%d.%d, 10.0.0.%d", n, i, i))
		}
		status, _ := send(t, "GET", g.URL+"/gw/me", token, "", append(lines, "X-Forwarded-For", seen)...)
		return status
	}
	for n, want := range []int{200, 200, 200, 429} {
		if got := ask(n, "203.0.113.7"); got != want {
			t.Errorf("request %d of an address: %d, want %d", n+1, got, want)
		}
	}
	for n, seen := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3:1", "2001:db8::ffff"} {
		if got, want := ask(n, seen), []int{200, 200, 200, 429}[n]; got != want {
			t.Errorf("request %d of a network: %d, want %d", n+1, got, want)
		}
	}
	if got := ask(9, "203.0.113.8"); got != 200 {
		t.Errorf("another address: %d", got)
	}
}
