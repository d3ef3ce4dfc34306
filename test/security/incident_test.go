package security

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// What has happened to other gateways, each so that it cannot happen here
// unnoticed. The longer proofs are named in docs/reference/threats.md.

// TestIncidentInjectionBeforeAuthentication: a key that went into the text of
// a statement let anyone read the database (CVE-2026-42208).
func TestIncidentInjectionBeforeAuthentication(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, text := range injections {
		for _, form := range []string{text, "gw_live_" + text, l.key + text, text + l.key, l.key[:20] + text + l.key[20:]} {
			for _, header := range []string{"Authorization: Bearer ", "X-Api-Key: "} {
				if strings.ContainsAny(form, "\r\n") || strings.Contains(strings.Trim(form, " \t"), l.key) && strings.Trim(form, " \t") == l.key {
					continue
				}
				a := l.raw(t, "GET /leak/v1/models HTTP/1.1\r\nHost: g\r\n"+header+form+"\r\n\r\n")
				if a == nil || a.StatusCode != 401 && a.StatusCode != 400 {
					t.Errorf("%s%q: %v", header, form, a)
				}
			}
		}
	}
	// A statement is a text of the program: nothing is put into one.
	files, err := filepath.Glob("../../internal/store/*.go")
	below, failed := filepath.Glob("../../internal/store/*/*.go")
	if err := errors.Join(err, failed); err != nil || len(files) < 10 || len(below) == 0 {
		t.Fatalf("the store's files: %v, %v, %v", files, below, err)
	}
	built := regexp.MustCompile(`(?i)Sprintf\([^)\n]*\b(select |insert into|update |delete from)`)
	for _, file := range append(files, below...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := built.Find(text); found != nil && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s builds a statement: %s", file, found)
		}
	}
}

// TestIncidentCacheByPrefix: a cache that knew keys by their first 20
// characters gave one caller another's rights (CVE-2026-35030).
func TestIncidentCacheByPrefix(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for n := 16; n < 48; n++ {
		twin := sum(l.key[:n] + strings.Repeat("0", 48-n))
		if twin == l.key {
			continue
		}
		if a := l.call(t, twin, "GET", "/gw/me", ""); a.StatusCode != 401 {
			t.Errorf("a key that shares %d characters: %s", n, a)
		}
		if a := l.call(t, l.key, "GET", "/gw/me", ""); a.StatusCode != 200 {
			t.Errorf("the key itself: %s", a)
		}
	}
}

// TestIncidentBaseURLInBody: a base URL in the request's body was called with
// the provider's credential (CVE-2024-6587).
func TestIncidentBaseURLInBody(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	trap, calls := canary(t)
	for _, path := range []string{"/v1/chat/completions", "/base/v1/chat/completions"} {
		body := fmt.Sprintf(`{"model":"lab/base","api_base":%q,"base_url":%q,"messages":[],"extra_body":{"api_base":%q},"litellm_params":{"api_base":%q}}`, trap, trap, trap, trap)
		if a := l.call(t, l.key, "POST", path, body); a.StatusCode != 200 {
			t.Errorf("%s: %s", path, a)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls to the address in the body", n)
	}
}

// secretOf is the key that an issuance answered with.
func secretOf(t *testing.T, a answer) string {
	t.Helper()
	var v struct{ Key string }
	if json.Unmarshal([]byte(a.body), &v) != nil || v.Key == "" {
		t.Fatalf("no key: %s", a)
	}
	return v.Key
}

// TestIncidentLowRoleMintsRights: a user of a low role issued itself a key of a
// higher one.
func TestIncidentLowRoleMintsRights(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	issue := func(key, body string) answer { return l.call(t, key, "POST", "/gw/keys", body) }
	caller := secretOf(t, issue(l.key, `{"scopes":["inference:use"]}`))
	reader := secretOf(t, issue(l.key, `{"scopes":["stats:read"]}`))
	for _, key := range []string{caller, reader} {
		for _, body := range []string{`{"scopes":["keys:manage"]}`, `{"scopes":[]}`, `{"scopes":["inference:use"],"entitlements":[]}`} {
			if a := issue(key, body); a.StatusCode != 403 {
				t.Errorf("a key without keys:manage issues %s: %s", body, a)
			}
		}
		for _, change := range []string{"PUT /gw/budgets", "PUT /gw/branding", "POST /gw/subaccounts", "DELETE /gw/keys/00000000-0000-7000-8000-000000000000"} {
			method, path, _ := strings.Cut(change, " ")
			if a := l.call(t, key, method, path, `{}`); a.StatusCode != 403 {
				t.Errorf("%s without keys:manage: %s", change, a)
			}
		}
	}
	// An end customer's manager stays within its own rights.
	var sub struct{ ID string }
	a := l.call(t, l.key, "POST", "/gw/subaccounts", `{"name":"end","slug":"end-customer"}`)
	if json.Unmarshal([]byte(a.body), &sub) != nil || sub.ID == "" {
		t.Fatalf("sub-account: %s", a)
	}
	bound := secretOf(t, issue(l.key, `{"scopes":["keys:manage","inference:use"],"entitlements":[{"axis":"vendor","provider":"lab","model_pattern":"plain","effect":"allow"}],"sub_account_id":"`+sub.ID+`"}`))
	for _, body := range []string{`{"scopes":["stats:read"]}`, `{"scopes":["inference:use"],"entitlements":[{"provider":"*","model_pattern":"*","effect":"allow"}]}`,
		`{"scopes":["inference:use"],"entitlements":[{"axis":"vendor","provider":"lab","model_pattern":"base","effect":"allow"}]}`} {
		if a := issue(bound, body); a.StatusCode != 403 {
			t.Errorf("an end customer issues %s: %s", body, a)
		}
	}
	child := secretOf(t, issue(bound, `{"scopes":["inference:use"]}`))
	for model, want := range map[string]int{"lab/plain": 200, "lab/base": 403} {
		if a := l.call(t, child, "POST", "/v1/chat/completions", chat(model)); a.StatusCode != want {
			t.Errorf("the end customer's child calls %s: %s", model, a)
		}
	}
	for _, path := range []string{"/gw/subaccounts", "/gw/branding", "/gw/evidence"} {
		if a := l.call(t, bound, "GET", path, ""); a.StatusCode != 403 && a.StatusCode != 404 {
			t.Errorf("an end customer reads %s: %s", path, a)
		}
	}
}

// TestIncidentAllowListBypasses: models that a proxy's allow list did not see,
// because they stood in the path, the query or under another name.
func TestIncidentAllowListBypasses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, c := range []struct{ target, body string }{
		{"/f-azure-openai/openai/deployments/dear/chat/completions", `{"model":"ok-m","messages":[]}`},
		{"/f-azure-openai/openai/deployments/dear/images/generations", `{"model":"ok-m"}`},
		{"/f-generic/ml/v1/text/chat", `{"model_id":"dear","messages":[]}`},
		{"/h-model-paths/model/dear/invoke", `{"model":"ok-m"}`},
		{"/h-model-paths/model/dear-v1%3A0/converse", `{}`},
		{"/f-gemini/v1beta/models/dear:generateContent", `{"model":"models/ok-m"}`},
		{"/f-openrouter/api/v1/chat/completions", `{"model":"ok-m","models":["dear"]}`},
	} {
		want := 403
		if strings.Contains(c.target, "gemini") {
			want = 400 // two models are an error, whoever asks
		}
		if a := l.call(t, l.limited, "POST", c.target, c.body); a.StatusCode != want {
			t.Errorf("%s %s: %s", c.target, c.body, a)
		}
	}
}

// TestIncidentShutdownDropsSpend: an orderly end forgot the spend that was
// queued in memory; so did a full buffer, and a write that failed after its
// rows had been taken off.
func TestIncidentShutdownDropsSpend(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	key, _ := g.NewKey(g.NewClient("spend"))
	const rounds, calls = 3, 40
	for round := range rounds {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range calls / 8 {
					ask(t, g.URL, key, "POST", "/v1/chat/completions", chat("openai/gpt-5-mini"))
				}
			})
		}
		all.Wait()
		if round == 1 {
			g.Kill()
		} else {
			g.Stop()
		}
		g.Start()
	}
	var rows []usage
	a := ask(t, g.URL, key, "GET", "/gw/usage?limit=1000", "")
	if err := json.Unmarshal([]byte(a.body), &rows); err != nil || len(rows) != rounds*calls {
		t.Errorf("%d rows of %d calls, %v", len(rows), rounds*calls, err)
	}
	for _, r := range rows {
		if r.ParseStatus != "ok" || r.Cost == "0" {
			t.Errorf("row %+v", r)
		}
	}
}

// TestIncidentDisconnectIsFree: clients that left before the last event paid
// nothing.
func TestIncidentDisconnectIsFree(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	l.provider.corner("leak").replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-hold
		_, _ = io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":2000,\"total_tokens\":3000}}\n\ndata: [DONE]\n\n")
	})
	conn := l.dial(t)
	_, _ = io.WriteString(conn, l.request("POST", "/v1/chat/completions", `{"model":"lab/leak","stream":true,"messages":[]}`))
	text := ""
	for buffer := make([]byte, 1024); !strings.Contains(text, "choices"); {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatalf("%v after %q", err, text)
		}
		text += string(buffer[:n])
	}
	id := regexp.MustCompile(`X-Gateway-Request-Id: (\S+)`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("no request id in %q", text)
	}
	conn.Close()
	eventually(t, "the gateway reads on for the books", patience, func() bool { return metric(t, l.URL, "modelgate_drains") >= 1 })
	release()
	if r := l.row(t, l.key, id[1]); r.Tokens != 3000 || r.Cost != "0.005" {
		t.Errorf("row %+v, want 3000 tokens for 0.005", r)
	}
}

// TestIncidentZeroIsAValue: usage that was stated as zero was taken for
// missing and estimated.
func TestIncidentZeroIsAValue(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.provider.corner("zero").replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"a long answer that an estimate would charge"}}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`)
	})
	a := l.call(t, l.key, "POST", "/v1/chat/completions", chat("lab/zero"))
	if r := l.row(t, l.key, a.Header.Get("X-Gateway-Request-Id")); r.ParseStatus != "ok" || r.Tokens != 0 || r.Cost != "0" {
		t.Errorf("row %+v", r)
	}
}

// TestIncidentKeysInErrors: keys showed in error texts, traces and refusals:
// as they were, as `?key=` of an address, or as a hash that could be tried.
func TestIncidentKeysInErrors(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		Limits: "requests_per_second: 1, burst: 3, concurrency: 1", Upstream: "http://127.0.0.1:1", // nobody listens there
		Providers: `
  - {name: byquery, format: generic, base_url: "$UPSTREAM", region: us, credential: sk-in-the-query, auth: {query: key}}
  - {name: gemini, format: gemini, base_url: "$UPSTREAM", region: us, credential: sk-in-the-query}`,
		Catalog: ` []`,
	})
	key, _ := g.NewKey(g.NewClient("errors"))
	said := ""
	for range 6 {
		for _, path := range []string{"/byquery/v1/x?key=" + key, "/gemini/v1beta/models/m:generateContent?key=" + key} {
			a := ask(t, g.URL, key, "POST", path, `{"model":"m"}`)
			said += fmt.Sprint(a.Status, a.Header, a.body)
		}
	}
	if !strings.Contains(said, "502") || !strings.Contains(said, "429") {
		t.Errorf("neither a refused connection nor a limit: %s", said)
	}
	for _, secret := range []string{key[16:], "sk-in-the-query", hash(key)} {
		if strings.Contains(said, secret) || strings.Contains(g.Log(), secret) {
			t.Errorf("an answer or the log holds %s…", secret[:6])
		}
	}
}

// TestIncidentEmptyWebhookSecret: webhooks signed with an empty secret were
// believed (CVE-2026-41432). Without a secret there is no such route, and one
// that is short is refused with the configuration.
func TestIncidentEmptyWebhookSecret(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, signature := range []string{"", "t=1,v1=", "t=1790000000,v1=" + hash("1790000000.{}"), "whsec_"} {
		a := l.raw(t, "POST /webhooks/processor HTTP/1.1\r\nHost: g\r\nStripe-Signature: "+signature+"\r\nContent-Length: 2\r\n\r\n{}")
		if a == nil || a.StatusCode != 404 {
			t.Errorf("signed %q: %v", signature, a)
		}
	}
	for _, secret := range []string{"short", "whsec_", "123456789012345"} {
		file := filepath.Join(t.TempDir(), "modelgate.yaml")
		text := fmt.Sprintf("server: {data_dir: .}\nprocessor: {webhook_secret: %q}\n", secret)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := l.Run("config", "check", "--config", file); code == 0 {
			t.Errorf("webhook_secret %q: %s%s", secret, out, errs)
		}
	}
}

// TestIncidentCheckThenDeduct: a budget was looked at first and charged
// later, so that many calls at once passed on the same money.
func TestIncidentCheckThenDeduct(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		More:    "enforcement: {budgets: strict}\n",
		Catalog: "\n  - {slug: lab/dear, kind: llm, context_length: 100, max_output: 100, routes: [{provider: openai, model: dear}], price: {input: 1000, output: 1000}}",
	})
	tenant := g.NewClient("rush")
	key, _ := g.NewKey(tenant)
	if a := ask(t, g.URL, key, "PUT", "/gw/budgets", `{"scope":"client","period":"day","limit_usd":1}`); a.StatusCode != 204 {
		t.Fatalf("budget: %s", a)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for range 32 {
		all.Go(func() {
			for range 5 {
				a := ask(t, g.URL, key, "POST", "/v1/chat/completions", `{"model":"lab/dear","max_tokens":100,"messages":[{"role":"user","content":"one two three [[words=50]]"}]}`)
				mu.Lock()
				answers[a.StatusCode]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	var budgets []struct {
		Spend json.Number `json:"spend_usd"`
	}
	a := ask(t, g.URL, key, "GET", "/gw/budgets", "")
	if err := json.Unmarshal([]byte(a.body), &budgets); err != nil || len(budgets) != 1 {
		t.Fatalf("budgets: %s", a)
	}
	spent, err := budgets[0].Spend.Float64()
	if err != nil || spent > 1 || spent == 0 || answers[402] == 0 || answers[200]+answers[402] != 160 {
		t.Errorf("spent %v of 1, answers %v", budgets[0].Spend, answers)
	}
}

// TestIncidentPoisonedBuild: a package was published with a secret that an
// unpinned scanner had taken. The workflow runs no third party's action that
// is not pinned, has no secret, and tools are at versions that a sum pins.
func TestIncidentPoisonedBuild(t *testing.T) {
	t.Parallel()
	workflows, err := filepath.Glob("../../.github/workflows/*")
	if err != nil || len(workflows) == 0 {
		t.Fatalf("workflows %v, %v", workflows, err)
	}
	pinned := regexp.MustCompile(`@[0-9a-f]{40}$`)
	for _, file := range workflows {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if uses := regexp.MustCompile(`uses: *(\S+)`).FindStringSubmatch(line); uses != nil && !pinned.MatchString(uses[1]) {
				t.Errorf("%s: %s is not pinned by its digest", file, uses[1])
			}
			if strings.Contains(line, "| sh") || strings.Contains(line, "write-all") {
				t.Errorf("%s: %s", file, strings.TrimSpace(line))
			}
		}
		if !strings.Contains(string(text), "permissions:") {
			t.Errorf("%s does not say what its jobs may do", file)
		}
	}
	for _, sums := range []string{"../../go.sum", "../../tools/go.sum", "../../test/sdk/package-lock.json"} {
		if text, err := os.ReadFile(sums); err != nil || len(text) < 1000 {
			t.Errorf("%s: %v", sums, err)
		}
	}
	for _, script := range []string{"../../scripts/test", "../../scripts/check", "../../scripts/deps", "../../.ci/run"} {
		text, err := os.ReadFile(script)
		if err != nil || regexp.MustCompile(`@latest|GONOSUMDB|GONOSUMCHECK|GOINSECURE|npm install`).Match(text) {
			t.Errorf("%s takes whatever version there is: %v", script, err)
		}
	}
}
