package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// eventually asks again until the answer is yes: a running server notices
// another process's change within about a second, a busy machine later.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	const patience = time.Minute
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		<-tick.C
	}
}

// TestOperatorBesideAServer changes things by command and sees the running
// server follow, on both databases.
func TestOperatorBesideAServer(t *testing.T) {
	t.Parallel()
	databases := map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return testkit.Postgres(t) },
	}
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := testkit.StartGateway(t, testkit.GatewayOptions{Database: url(t)})
			client := g.NewClient("acme")
			secret, id := g.NewKey(client)
			b := &bench{g, secret}
			status := func() int {
				resp, _ := b.get(t, "/gw/me")
				return resp.StatusCode
			}
			if got := status(); got != 200 {
				t.Fatalf("a fresh key: %d", got)
			}
			g.Admin(nil, "key", "limits", string(id), "--rps", "1", "--burst", "1")
			eventually(t, "a lower limit", func() bool { return status() == 429 })
			g.Admin(nil, "key", "limits", string(id), "--rps", "0")
			eventually(t, "no limit", func() bool {
				first, second := status(), status()
				return first == 200 && second == 200
			})

			ceiling := filepath.Join(t.TempDir(), "ceiling.json")
			text := `{"max_scopes":["inference:use","keys:manage"],"entitlements":[{"axis":"kind","provider":"llm","model_pattern":"*","effect":"allow"}]}`
			if err := os.WriteFile(ceiling, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			g.Admin(nil, "ceiling", "set", "--client", string(client), "--file", ceiling)
			eventually(t, "the new ceiling", func() bool {
				_, answer := b.get(t, "/gw/ceiling")
				return strings.Contains(answer, `"axis":"kind"`)
			})
			g.Admin(nil, "client", "set", string(client), "--routing-policy", "eu_only")
			eventually(t, "the routing policy", func() bool {
				resp, _ := b.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[]}`)
				return resp.StatusCode == 403
			})
			cookie := []string{"Cookie", cookieOf(t, g.URL, "/dashboard", secret)}
			page := newBrowser(t, g.URL)
			g.Admin(nil, "client", "suspend", string(client), "--yes")
			eventually(t, "the suspension", func() bool { return status() == 401 })
			page.want(401, "GET /dashboard/gw/me", "", cookie...)
			g.Admin(nil, "client", "resume", string(client))
			eventually(t, "the resumption", func() bool { return status() == 200 })
			page.want(200, "GET /dashboard/gw/me", "", cookie...)
			g.Admin(nil, "key", "revoke", string(id))
			eventually(t, "the revocation", func() bool { return status() == 401 })
		})
	}
}

// TestFocusExportCommand writes a file of all organizations, which replaces one
// that is there, and nothing where it fails.
func TestFocusExportCommand(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	for _, name := range []string{"acme", "globex"} {
		b := &bench{g, ""}
		b.key, _ = g.NewKey(g.NewClient(name))
		if resp, answer := b.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`); resp.StatusCode != 200 {
			t.Fatal(answer)
		}
		eventually(t, "the row", func() bool {
			_, answer := b.get(t, "/gw/usage")
			return strings.Contains(answer, "gpt-5-mini")
		})
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "focus.csv")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	window := []string{"--from", now.Format(time.DateOnly), "--to", now.AddDate(0, 0, 1).Format(time.DateOnly)}
	export := func(more ...string) (string, int) {
		_, stderr, code := g.Run(append(append([]string{"focus", "export", "--config", g.ConfigFile, "--out", file}, window...), more...)...)
		return stderr, code
	}
	if stderr, code := export(); code != 2 || !strings.Contains(stderr, "use either --client or --all") {
		t.Errorf("neither: %d %s", code, stderr)
	}
	if stderr, code := export("--client", "nobody"); code != 1 {
		t.Errorf("nobody: %d %s", code, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("a failure left %q, %v", text, err)
	}
	if stderr, code := export("--all"); code != 0 {
		t.Fatalf("all: %d %s", code, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "BilledCost") != 1 || !strings.Contains(string(text), "acme") || !strings.Contains(string(text), "globex") {
		t.Errorf("the file, %v:\n%s", err, text)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("beside it: %v, %v", left, err)
	}
	if stderr, code := export("--client", "acme", "--view", "billed", "--granularity", "hour"); code != 0 {
		t.Errorf("one, billed: %d %s", code, stderr)
	}
}

// TestCommands checks what the operator's commands print and how they fail.
func TestCommands(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	client := g.NewClient("acme", "--max-keys", "2", "--billing", "manual")
	var clients []modelgate.Client
	g.Admin(&clients, "client", "list")
	if len(clients) != 1 || clients[0].MaxKeys != 2 || clients[0].Billing != modelgate.Manual {
		t.Errorf("client list: %+v", clients)
	}
	if out, _, code := g.Run("client", "list", "--config", g.ConfigFile); code != 0 || !strings.Contains(out, "acme") || !strings.HasPrefix(out, "ID") {
		t.Errorf("client list as a table: %d\n%s", code, out)
	}
	g.NewKey(client)
	g.NewKey(client, "--expires-in-seconds", "60", "--scopes", "stats:read")
	_, stderr, code := g.Run("key", "issue", "--config", g.ConfigFile, "--client", string(client))
	if want := "active key limit reached for this client: revoke unused keys or ask the operator to raise max_keys"; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("a key past the cap: %d %s", code, stderr)
	}
	failures := map[string]struct {
		args []string
		code int
	}{
		"unknown client":  {[]string{"key", "issue", "--config", g.ConfigFile, "--client", "nobody"}, 1},
		"unknown key":     {[]string{"key", "revoke", "--config", g.ConfigFile, "nothing"}, 1},
		"bad scope":       {[]string{"key", "issue", "--config", g.ConfigFile, "--client", string(client), "--scopes", "all"}, 1},
		"no such file":    {[]string{"client", "list", "--config", "/nowhere.yaml"}, 1},
		"unknown command": {[]string{"clients"}, 2},
		"missing flag":    {[]string{"client", "create", "--config", g.ConfigFile}, 2},
		"bad enum":        {[]string{"client", "create", "--config", g.ConfigFile, "--name", "x", "--billing", "free"}, 2},
	}
	for name, tt := range failures {
		if stdout, stderr, code := g.Run(tt.args...); code != tt.code || stderr == "" || stdout != "" && tt.code == 1 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want exit %d and a message", name, code, stdout, stderr, tt.code)
		}
	}
	if out, _, code := g.Run("version", "--json"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("version: %d %s", code, out)
	}
	if out, _, code := g.Run("config", "schema"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("config schema: %d %.100s", code, out)
	}
}

// TestConfigCheckNamesLines reports every fault with its line.
func TestConfigCheckNamesLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.yaml")
	text := "server:\n  lisen: 127.0.0.1:0\nlimits:\n  burst: many\nproviders:\n  - {name: gw, format: openai, base_url: \"http://x\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := testkit.RunBinary(t, nil, "config", "check", "--config", file)
	for _, want := range []string{file + ":2:", file + ":4:", file + ":6:"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit %d; no fault at %s in\n%s", code, want, out)
		}
	}
	if out, _, code := testkit.RunBinary(t, nil, "config", "check", "--config", "../../modelgate.example.yaml"); code != 0 {
		t.Errorf("the example: %d\n%s", code, out)
	}
}

// TestReload applies a good file and keeps the old one for a bad file.
func TestReload(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	models := func() string {
		_, answer := b.get(t, "/v1/models")
		return answer
	}
	metric := func(line string) bool {
		_, answer := b.get(t, "/metrics")
		return strings.Contains(answer, line)
	}
	b.Configure(testkit.GatewayOptions{Catalog: "\n  - {slug: new/model, kind: llm, routes: [{provider: openai, model: x}]}"})
	b.Signal(syscall.SIGHUP)
	eventually(t, "the new catalog", func() bool { return strings.Contains(models(), "new/model") })
	b.Configure(testkit.GatewayOptions{Catalog: "\n  - {slug: bad, kind: llm}"})
	b.Signal(syscall.SIGHUP)
	eventually(t, "a refused reload", func() bool { return metric(`modelgate_config_reloads_total{outcome="refused"} 1`) })
	if !strings.Contains(models(), "new/model") {
		t.Errorf("a bad file changed the catalog: %s", models())
	}
	b.Stop()
}

// TestTwoServersNeverShareAFile refuses a second server on the same data.
func TestTwoServersNeverShareAFile(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	_, stderr, code := g.Run("serve", "--config", g.ConfigFile)
	if code != 1 || !strings.Contains(stderr, "another server is using this database") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
