package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// shownBalance is what `balance show --json` prints.
type shownBalance struct {
	ClientID string  `json:"client_id"`
	Balance  float64 `json:"balance_usd"`
	Credited float64 `json:"credited_usd"`
	Spent    float64 `json:"spent_usd"`
	Held     float64 `json:"held_usd"`
	Entries  []struct {
		ID     string  `json:"id"`
		Amount float64 `json:"amount_usd"`
		Note   string  `json:"note"`
	} `json:"entries"`
}

const aChat = `{"model":"openai/gpt-5-mini","max_tokens":100,"messages":[{"role":"user","content":"one two three four [[words=100]]"}]}`

// TestBalanceCommands prepays for a client, beside a running server, on both
// databases.
func TestBalanceCommands(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return testkit.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := testkit.StartGateway(t, testkit.GatewayOptions{Database: url(t)})
			client := g.NewClient("acme", "--billing", "manual")
			secret, _ := g.NewKey(client)
			b := &bench{g, secret}
			const noBalance = `{"error":{"type":"insufficient_balance","message":"account balance exhausted; top up to continue","limit":{"kind":"balance","scope":"client",`
			call := func() (int, string) {
				resp, answer := b.post(t, "/v1/chat/completions", aChat)
				return resp.StatusCode, strings.TrimSpace(answer)
			}
			if status, answer := call(); status != 402 || !strings.HasPrefix(answer, noBalance) {
				t.Errorf("without a balance: %d %s", status, answer)
			}
			var shown shownBalance
			g.Admin(&shown, "balance", "credit", "--client", string(client), "--usd", "0.0005", "--note", "first")
			if shown.ClientID != string(client) || shown.Balance != 0.0005 || shown.Credited != 0.0005 || shown.Spent != 0 || len(shown.Entries) != 1 || shown.Entries[0].Note != "first" || shown.Entries[0].ID == "" {
				t.Errorf("after a credit: %+v", shown)
			}
			eventually(t, "the credit", func() bool { status, _ := call(); return status == 200 }) // costs 0.000201
			eventually(t, "the end of the balance", func() bool { status, _ := call(); return status == 402 })
			g.Admin(&shown, "balance", "credit", "--client", string(client), "--usd=-0.0001")
			eventually(t, "what was spent is booked", func() bool {
				g.Admin(&shown, "balance", "show", "--client", string(client))
				return shown.Held == 0
			})
			if len(shown.Entries) != 2 || shown.Entries[0].Amount != -0.0001 || shown.Credited != 0.0004 || shown.Spent < 0.0004 || fmt.Sprintf("%.9f", shown.Credited-shown.Spent) != fmt.Sprintf("%.9f", shown.Balance) {
				t.Errorf("balance show: %+v", shown)
			}
			if out, _, code := g.Run("balance", "show", "--config", g.ConfigFile, "--client", string(client)); code != 0 || !strings.HasPrefix(out, "BALANCE USD") || !strings.Contains(out, "first") {
				t.Errorf("balance show as a table: %d\n%s", code, out)
			}
			g.Admin(nil, "client", "set", string(client), "--billing", "invoiced")
			eventually(t, "an invoiced client needs no balance", func() bool { status, _ := call(); return status == 200 })
			for what, args := range map[string][]string{
				"nothing":        {"balance", "credit", "--client", string(client), "--usd", "0"},
				"no amount":      {"balance", "credit", "--client", string(client), "--usd", "five"},
				"ten decimals":   {"balance", "credit", "--client", string(client), "--usd", "0.0000000001"},
				"too much":       {"balance", "credit", "--client", string(client), "--usd", "1000000001"},
				"unknown client": {"balance", "show", "--client", "nobody"},
				"no one":         {"balance", "credit", "--client", "nobody", "--usd", "5"},
			} {
				if out, stderr, code := g.Run(append(args, "--config", g.ConfigFile)...); code != 1 || stderr == "" || out != "" {
					t.Errorf("%s: exit %d, %q, %q", what, code, out, stderr)
				}
			}
		})
	}
}

// shownBudget is a line of `budget list --json`.
type shownBudget struct {
	ClientID string  `json:"client_id"`
	Scope    string  `json:"scope"`
	ID       string  `json:"id"`
	Period   string  `json:"period"`
	Limit    float64 `json:"limit_usd"`
	Spend    float64 `json:"spend_usd"`
	Held     float64 `json:"held_usd"`
}

// TestBudgetCommands lists and removes budgets beside a running server.
func TestBudgetCommands(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	client, other := g.NewClient("acme"), g.NewClient("other")
	secret, id := g.NewKey(client)
	b := &bench{g, secret}
	put := func(secret, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, g.URL+"/gw/budgets", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Fatalf("%s: %d", body, resp.StatusCode)
		}
	}
	var list []shownBudget
	if g.Admin(&list, "budget", "list"); len(list) != 0 {
		t.Errorf("no budgets: %+v", list)
	}
	put(secret, `{"scope":"client","period":"month","limit_usd":0.00001}`)
	put(secret, fmt.Sprintf(`{"scope":"key","id":%q,"period":"month","limit_usd":7}`, id))
	stranger, _ := g.NewKey(other)
	put(stranger, `{"scope":"client","period":"month","limit_usd":9}`)
	status := func() int {
		resp, _ := b.post(t, "/v1/chat/completions", aChat)
		return resp.StatusCode
	}
	if first, second := status(), status(); first != 200 || second != 402 {
		t.Errorf("the call that crosses the limit and the next: %d, %d", first, second)
	}
	if g.Admin(&list, "budget", "list"); len(list) != 3 {
		t.Errorf("budget list: %+v", list)
	}
	eventually(t, "the call is booked", func() bool {
		g.Admin(&list, "budget", "list", "--client", string(client))
		return len(list) != 2 || list[0].Held == 0 && list[1].Held == 0
	})
	if len(list) != 2 || list[0].Scope != "client" || list[0].Limit != 0.00001 || list[0].Spend != 0.000201 || list[1].ID != string(id) || list[1].Spend != 0.000201 || list[1].Period != "month" {
		t.Errorf("budget list --client: %+v", list)
	}
	if out, _, code := g.Run("budget", "list", "--config", g.ConfigFile); code != 0 || !strings.HasPrefix(out, "CLIENT") || !strings.Contains(out, "0.000201") {
		t.Errorf("budget list as a table: %d\n%s", code, out)
	}
	remove := []string{"budget", "remove", "--client", string(client), "--scope", "client", "--period", "month", "--owner", "organization"}
	g.Admin(nil, remove...)
	eventually(t, "the removal", func() bool { return status() == 200 })
	for what, tt := range map[string]struct {
		args []string
		code int
	}{
		"removed already": {remove, 1},
		"another's key":   {[]string{"budget", "remove", "--client", string(other), "--scope", "key", "--id", string(id), "--period", "month"}, 1},
		"an id too many":  {append(remove, "--id", string(id)), 1},
		"no such period":  {[]string{"budget", "remove", "--client", string(client), "--scope", "client", "--period", "total"}, 2},
		"no scope":        {[]string{"budget", "remove", "--client", string(client), "--period", "day"}, 2},
	} {
		if _, stderr, code := g.Run(append(tt.args, "--config", g.ConfigFile)...); code != tt.code || stderr == "" {
			t.Errorf("%s: exit %d, %q", what, code, stderr)
		}
	}
}

// TestEnforcement: what is not enforced is counted and refuses nothing.
func TestEnforcement(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]int{"true": 402, "estimate": 402, "strict": 402, "false": 200, "off": 200} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := testkit.StartGateway(t, testkit.GatewayOptions{More: "enforcement: {budgets: " + mode + ", balance: false}\n"})
			client := g.NewClient("acme", "--billing", "manual")
			secret, _ := g.NewKey(client)
			b := &bench{g, secret}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, g.URL+"/gw/budgets", strings.NewReader(`{"scope":"client","period":"month","limit_usd":0.00001}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+secret)
			resp, err := http.DefaultClient.Do(r)
			if err != nil || resp.StatusCode != 204 {
				t.Fatalf("%v, %v", resp, err)
			}
			resp.Body.Close()
			for range 2 { // an estimate lets the first pass
				resp, _ = b.post(t, "/v1/chat/completions", aChat)
			}
			if resp.StatusCode != want {
				t.Errorf("%d, want %d", resp.StatusCode, want)
			}
		})
	}
}

// TestAlertsOfAServer: a budget that is used up is told of once, in the log,
// in a metric and by a webhook, over a restart too.
func TestAlertsOfAServer(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			Type string
			Data struct {
				Percent int
				Scope   string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Webhook-Signature") == "" || r.Header.Get("Webhook-Id") == "" {
			t.Errorf("a webhook that is none: %v %v", err, r.Header)
		}
		got <- fmt.Sprint(body.Type, " ", body.Data.Scope, " ", body.Data.Percent)
	}))
	t.Cleanup(hook.Close)
	g := testkit.StartGateway(t, testkit.GatewayOptions{More: fmt.Sprintf("alerts: {webhook_url: %q, secret: s3cret}\n", hook.URL)})
	client := g.NewClient("acme")
	secret, _ := g.NewKey(client)
	b := &bench{g, secret}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, g.URL+"/gw/budgets", strings.NewReader(`{"scope":"client","period":"month","limit_usd":0.0003}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 204 {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	wait := func(want string) {
		t.Helper()
		select {
		case alert := <-got:
			if alert != want {
				t.Errorf("webhook %q, want %q", alert, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no webhook %q\n%s", want, g.Log())
		}
	}
	b.post(t, "/v1/chat/completions", aChat) // 67 percent
	wait("budget.alert client 50")
	b.post(t, "/v1/chat/completions", aChat) // crosses the limit
	wait("budget.alert client 80")
	wait("budget.alert client 100")
	_, metrics := b.get(t, "/metrics")
	for _, percent := range []string{"50", "80", "100"} {
		if want := `modelgate_budget_alerts_total{percent="` + percent + `"} 1`; !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	g.Stop()
	g.Start()
	b.post(t, "/v1/chat/completions", aChat)
	g.Stop()
	if n := strings.Count(g.Log(), `msg="budget used up"`); n != 3 || len(got) != 0 {
		t.Errorf("%d lines in the log and %d webhooks more, want 3 and none", n, len(got))
	}
}

// An organization's alerts reach its own webhook over TLS, signed with its own
// secret, and the operator's as before.
func TestAlertsReachAnOrganization(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"/alerts": "0123456789abcdef0123456789abcdef", "/operator": "fedcba9876543210fedcba9876543210"}
	secretOf := func(path string) string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(keys[path])) }
	got := map[string]chan string{"/alerts": make(chan string, 8), "/operator": make(chan string, 8)}
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(keys[r.URL.Path]))
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || r.Header.Get("Webhook-Signature") != want {
			t.Errorf("signature %s, want %s, %v", r.Header.Get("Webhook-Signature"), want, err)
		}
		got[r.URL.Path] <- string(body)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(hook.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		More: "master_key: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\n" +
			fmt.Sprintf("alerts: {allow_private: true, webhook_url: %q, secret: %q}\n", hook.URL+"/operator", secretOf("/operator")),
		Env: []string{"SSL_CERT_FILE=" + ca},
	})
	secret, _ := g.NewKey(g.NewClient("acme"))
	b := &bench{g, secret}
	put := func(path, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, g.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(r)
		if err != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatalf("PUT %s: %v, %v", path, resp, err)
		}
		resp.Body.Close()
	}
	put("/gw/alerts", fmt.Sprintf(`{"webhook_url":%q,"secret":%q}`, hook.URL+"/alerts", secretOf("/alerts")))
	put("/gw/budgets", `{"scope":"client","period":"month","limit_usd":0.0003}`)
	b.post(t, "/v1/chat/completions", aChat) // 67 percent
	for path, alerts := range got {
		select {
		case body := <-alerts:
			if !strings.Contains(body, `"type":"budget.alert"`) || !strings.Contains(body, `"percent":50`) {
				t.Errorf("%s: alert %s", path, body)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: no alert\n%s", path, g.Log())
		}
	}
	if n := strings.Count(g.Log(), `msg="budget used up"`); n != 1 {
		t.Errorf("the operator's log has %d lines", n)
	}
}
