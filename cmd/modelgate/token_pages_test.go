package main

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

var tokenRounds = flag.Int("token-rounds", 1, "how often pages try what tokens may and may not; make prove-access says 100")

// revokedWithin is how soon other instances refuse a revoked token.
const revokedWithin = 2 * time.Second

// pageHTML asks its own server for calls, makes them with OpenAI's SDK as it is
// shipped, and reports how they went.
const pageHTML = `<!doctype html><script type="module">
import OpenAI from "/openai/index.mjs";
async function call({url, secret, text}) {
	const client = new OpenAI({apiKey: secret, baseURL: url + "/v1", dangerouslyAllowBrowser: true, maxRetries: 0});
	try {
		const stream = await client.chat.completions.create({model: "openai/gpt-5-mini", max_tokens: 300, stream: true, messages: [{role: "user", content: text}]});
		let chunks = 0, answer = "";
		for await (const chunk of stream) {
			chunks++;
			answer += chunk.choices[0]?.delta?.content ?? "";
		}
		return {status: 200, chunks, answer};
	} catch (e) {
		return {status: e.status ?? 0, message: e.error?.message ?? String(e), kind: e.error?.limit?.kind, wait: e.headers?.get("retry-after")};
	}
}
for (;;) {
	const next = await fetch("/next");
	if (next.status !== 200) break;
	await fetch("/done", {method: "POST", body: JSON.stringify(await call(await next.json()))});
}
</script>`

// pageCall is what a page is to do.
type pageCall struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
	Text   string `json:"text"`
}

// pageResult is how it went: the status is 0 where the browser kept the answer from
// the page.
type pageResult struct {
	Status  int
	Chunks  int
	Answer  string
	Message string
	Kind    string // error.limit.kind
	Wait    string // Retry-After
}

// visitor is a browser that has opened a page of an origin.
type visitor struct {
	origin string
	calls  chan pageCall
	done   chan pageResult
}

// visit serves the page at an origin of its own; open has a browser open it.
func visit(t *testing.T) *visitor {
	t.Helper()
	v := &visitor{calls: make(chan pageCall), done: make(chan pageResult)}
	mux := http.NewServeMux()
	mux.Handle("GET /openai/", http.StripPrefix("/openai/", http.FileServer(http.Dir(filepath.Join(nodeModules(t), "node_modules", "openai")))))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(pageHTML)) // a browser that has gone is noticed by call
	})
	mux.HandleFunc("GET /next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case c := <-v.calls:
			_ = json.NewEncoder(w).Encode(c)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /done", func(_ http.ResponseWriter, r *http.Request) {
		var result pageResult
		if err := json.NewDecoder(r.Body).Decode(&result); err != nil {
			result.Message = err.Error()
		}
		select {
		case v.done <- result:
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	v.origin = server.URL
	return v
}

func (v *visitor) open(t *testing.T) {
	t.Helper()
	browser := exec.CommandContext(t.Context(), testkit.Chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), v.origin)
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the program is a script that starts the browser
	browser.Cancel = func() error { return syscall.Kill(-browser.Process.Pid, syscall.SIGKILL) }
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = browser.Wait() }) // it was told to end
}

// call has the page make a call.
func (v *visitor) call(t *testing.T, url, secret, text string) (r pageResult) {
	t.Helper()
	patience := time.After(time.Minute)
	select {
	case v.calls <- pageCall{url, secret, text}:
	case <-patience:
		t.Fatalf("the page of %s asks for no call", v.origin)
	}
	select {
	case r = <-v.done:
	case <-patience:
		t.Fatalf("the page of %s reports nothing", v.origin)
	}
	return r
}

// refused has the page make a call that is answered with an error it can read, or
// with the status 0 one that it cannot.
func (v *visitor) refused(t *testing.T, url, secret string, status int, message string) pageResult {
	t.Helper()
	r := v.call(t, url, secret, "hello")
	if r.Status != status || !strings.Contains(r.Message, message) {
		t.Errorf("a page of %s with %.7s: %+v, want %d %s", v.origin, secret, r, status, message)
	}
	return r
}

// TestTokensInPages has pages of several origins call two instances with OpenAI's
// SDK for JavaScript, streaming.
func TestTokensInPages(t *testing.T) {
	t.Parallel()
	own, other, foreign := visit(t), visit(t), visit(t)
	database := testkit.Postgres(t)
	options := testkit.GatewayOptions{Database: database, Server: fmt.Sprintf("cors: {origins: [%q, %q]}", own.origin, other.origin)}
	a := testkit.StartGateway(t, options)
	options.Upstream = a.Upstream.URL
	b := testkit.StartGateway(t, options)
	key, _ := a.NewKey(a.NewClient("pages"))
	for _, v := range []*visitor{own, other, foreign} {
		v.open(t)
	}
	for range *tokenRounds {
		tokensInPages(t, a.URL, b.URL, database, key, own, other, foreign)
	}
}

func tokensInPages(t *testing.T, minting, asked, database, key string, own, other, foreign *visitor) {
	t.Helper()
	mint := func(more string) string {
		return mintToken(t, minting, key, `{"end_user":"ann","models":["openai/gpt-5-*"]`+more+`}`)
	}
	bound := mint(fmt.Sprintf(`,"origins":[%q]`, own.origin))
	if r := own.call(t, asked, bound, "hello [[words=40]]"); r.Status != 200 || r.Chunks < 3 || len(strings.Fields(r.Answer)) < 40 {
		t.Errorf("a page with its token: %+v", r)
	}
	other.refused(t, asked, bound, 403, "origin not permitted for this token")
	foreign.refused(t, asked, bound, 0, "Connection error")
	own.refused(t, asked, key, 403, "keys are not accepted from browsers; mint a token with POST /gw/tokens")
	own.refused(t, asked, "gw_tmp_1", 401, "invalid gateway key")
	if r := other.call(t, asked, mint(""), "hello"); r.Status != 200 {
		t.Errorf("another page with a token of every page: %+v", r)
	}

	capped := mint(`,"max_usd":0.0004`)
	if r := own.call(t, asked, capped, "hello [[words=300]]"); r.Status != 200 {
		t.Errorf("the call that reaches the cap: %+v", r)
	}
	if r := own.refused(t, asked, capped, 402, "budget limit reached"); r.Kind != "token" {
		t.Errorf("the refusal at the cap names %q", r.Kind)
	}

	once := mint(`,"requests_per_minute":1`)
	if r := own.call(t, asked, once, "hello"); r.Status != 200 {
		t.Errorf("the only call of a minute: %+v", r)
	}
	if r := own.refused(t, asked, once, 429, "rate limit exceeded"); r.Wait != "60" {
		t.Errorf("the second call of a minute is to wait %q seconds", r.Wait)
	}

	late := mint(`,"expires_in_seconds":30,"attribution":{"late":"yes"}`)
	alter(t, database, `UPDATE browser_token SET expires_at = created_at WHERE attribution LIKE '%late%'`)
	own.refused(t, asked, late, 401, "invalid gateway key")

	if status := deleteTokens(t, minting, key, "ann"); status != 204 {
		t.Fatalf("revocation: %d", status)
	}
	for revoked := time.Now(); ; {
		r := own.call(t, asked, bound, "hello")
		took := time.Since(revoked)
		if r.Status == 401 {
			t.Logf("the other instance refused the revoked token after %s", took.Round(time.Millisecond))
			return
		}
		if took > revokedWithin {
			t.Fatalf("%s after its revocation a token is answered %+v", took, r)
		}
	}
}

// alter changes a database behind the gateways' backs.
func alter(t *testing.T, database, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func deleteTokens(t *testing.T, url, key, endUser string) int {
	t.Helper()
	req, err := http.NewRequest("DELETE", url+"/gw/tokens?end_user="+endUser, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
