package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// fail makes a call that the provider answers with 500.
func fail(t *testing.T, g *testkit.Gateway, key string) {
	t.Helper()
	body := `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"[[status=500]]"}]}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusInternalServerError {
		t.Fatalf("a call that fails was answered with %d", resp.StatusCode)
	}
}

// waitForCalls waits until the console's API lists calls.
func waitForCalls(t *testing.T, console, token string, want int) {
	t.Helper()
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, console+"/operator/v1/calls", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var calls []struct{}
		err = json.NewDecoder(resp.Body).Decode(&calls)
		resp.Body.Close()
		if err == nil && len(calls) == want {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%d calls, want %d: %v", len(calls), want, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestConsole drives the operator's console in a real browser. Pictures of it are
// left in test/browser/screenshots.
func TestConsole(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	g := testkit.StartGateway(t, testkit.GatewayOptions{More: fmt.Sprintf("\noperator: {listen: %q}\n", address)})
	const name = "Globex"
	key, _ := g.NewKey(g.NewClient(name, "--billing", "manual"))
	const customer, provider, failed = "Initech", "openai", 6
	caller, _ := g.NewKey(g.NewClient(customer))
	for range failed {
		fail(t, g, caller)
	}
	var link struct{ URL string }
	g.Admin(&link, "operator", "link")
	var auditor struct{ Token string }
	g.Admin(&auditor, "operator", "token", "create", "--name", "eve", "--role", "auditor")
	waitForCalls(t, "http://"+address, auditor.Token, failed)
	given, err := json.Marshal(map[string]any{
		"url": "http://" + address, "link": link.URL, "auditor": auditor.Token, "name": name, "key": key, "customer": customer, "provider": provider, "failed": failed,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := installBrowserTests(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "operator.mjs")
	cmd.Dir = browserTests
	cmd.Env = append(os.Environ(), "CHROMIUM="+testkit.Chromium(t), "CONSOLE="+string(given))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
