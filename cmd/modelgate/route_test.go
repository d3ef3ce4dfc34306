package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"modelgate/test/testkit"
)

// TestFailuresMoveOn answers from the second route when the first one
// throttles or fails, asking each once.
func TestFailuresMoveOn(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 500, 502, 503, 529} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			failing := serve(t, func(w http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				http.Error(w, "not now", status)
			})
			b := newBench(t, twoRoutes(failing))
			resp, answer := b.post(t, "/v1/chat/completions", `{"model":"acme/two","messages":[{"role":"user","content":"hello"}]}`)
			if resp.StatusCode != 200 || !strings.Contains(answer, `"second"`) || tries.Load() != 1 {
				t.Fatalf("status %d after %d tries: %s", resp.StatusCode, tries.Load(), answer)
			}
			_, rows := b.get(t, "/gw/usage")
			if strings.Count(rows, `"id"`) != 1 || !strings.Contains(rows, `"provider":"good","model":"second"`) {
				t.Errorf("rows %s", rows)
			}
		})
	}
}

// TestRefusalsStay hands a 4xx of the first route to the caller and asks
// nobody else.
func TestRefusalsStay(t *testing.T) {
	t.Parallel()
	refusing := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(422)
		io.WriteString(w, ` {"error" : "no"} `)
	})
	b := newBench(t, twoRoutes(refusing))
	resp, answer := b.post(t, "/v1/chat/completions", `{"model":"acme/two","messages":[]}`)
	if resp.StatusCode != 422 || answer != ` {"error" : "no"} ` || b.Upstream.Ledger.Len() != 0 {
		t.Errorf("status %d, %d calls of the second route: %q", resp.StatusCode, b.Upstream.Ledger.Len(), answer)
	}
}

func twoRoutes(first string) testkit.GatewayOptions {
	return testkit.GatewayOptions{Providers: `
  - {name: bad, format: openai, base_url: "` + first + `", credential: sk-upstream}
  - {name: good, format: openai, base_url: "$UPSTREAM", credential: sk-upstream}`, Catalog: `
  - {slug: acme/two, kind: llm, routes: [{provider: bad, model: first}, {provider: good, model: second}], price: {input: 1, output: 1}}`}
}

// TestCredentialIsMissing refuses the calls of a provider whose credential
// file is not there, on both surfaces, and books nothing.
func TestCredentialIsMissing(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	b := newBench(t, testkit.GatewayOptions{Providers: `
  - {name: openai, format: openai, base_url: "$UPSTREAM", credential_file: "` + missing + `"}`})
	for _, call := range [][2]string{{"/v1/chat/completions", "openai/gpt-5-mini"}, {"/openai/v1/chat/completions", "gpt-5-mini"}} {
		resp, answer := b.post(t, call[0], `{"model":"`+call[1]+`","messages":[]}`)
		want := `{"error":{"type":"internal","message":"credential resolution failed"}}`
		if resp.StatusCode != 500 || strings.TrimSpace(answer) != want {
			t.Errorf("%s: %d %s", call[0], resp.StatusCode, answer)
		}
	}
	if _, rows := b.get(t, "/gw/usage"); strings.TrimSpace(rows) != "[]" {
		t.Errorf("rows %s", rows)
	}
}

// TestRawTargets sends request lines that no client library would, and gets
// the gateway's own 400 with its envelope for each that reaches it.
func TestRawTargets(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	host := strings.TrimPrefix(b.URL, "http://")
	targets := map[string]string{
		"absolute form": b.URL + "/gw/me", "absolute without a path": b.URL, "foreign host": "http://example.com/gw/me",
		"dots": "/gw/../gw/me", "one dot": "/gw/./me", "escaped dot": "/gw/%2E%2e/me", "double slash": "//gw/me",
		"backslash": `/gw\me`, "escaped slash": "/gw%2fme", "escaped NUL": "/gw/me%00", "asterisk": "*",
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			status, answer := b.raw(t, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nAuthorization: Bearer "+b.key+"\r\nConnection: close\r\n\r\n")
			if status != 400 || !strings.Contains(answer, `"type":"bad_request"`) {
				t.Errorf("%s: %d %s", target, status, answer)
			}
		})
	}
	for name, head := range map[string]string{
		"two lengths":         "POST /gw/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
		"length and chunked":  "POST /gw/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"control in a target": "GET /gw/\x01me HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if status, answer := b.raw(t, head); status < 400 || status > 501 {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if resp, _ := b.get(t, "/gw/me"); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

// raw sends bytes and reads one answer.
func (b *bench) raw(t *testing.T, request string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
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
