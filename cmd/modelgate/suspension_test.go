package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"modelgate/test/testkit"
)

// TestSuspension: keys and sessions of a suspended organization are refused at once
// by the instance that suspends it and soon by others, while a stream that is under
// way runs to its end.
func TestSuspension(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	defer end() // also where the test fails
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"first\"}}]}\n\n")
		w.(http.Flusher).Flush()
		close(begun)
		<-finish
		fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"last\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(provider.Close)
	database := testkit.Postgres(t)
	operated := newOperatorBench(t, database)
	other := testkit.StartGateway(t, testkit.GatewayOptions{Database: database, Upstream: provider.URL})
	client := operated.NewClient("Acme")
	secret, _ := operated.NewKey(client)
	here, there := &bench{operated.Gateway, secret}, &bench{other, secret}
	atHere, atThere := newBrowser(t, operated.URL), newBrowser(t, other.URL)
	atHere.signIn("/dashboard", secret)
	atThere.signIn("/dashboard", secret)

	streamed := make(chan string, 1)
	go func() {
		r, err := http.NewRequest(http.MethodPost, other.URL+"/v1/chat/completions", strings.NewReader(`{"model":"openai/gpt-5-mini","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			streamed <- err.Error()
			return
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			streamed <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		streamed <- fmt.Sprint(string(text), err)
	}()
	<-begun
	here.get(t, "/gw/me") // known to the instance that suspends

	operated.want(204, "admin", "PATCH /operator/v1/organizations/"+string(client), `{"status":"suspended"}`, nil)
	if resp, text := here.get(t, "/gw/me"); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "invalid gateway key") {
		t.Errorf("a key right after: %d %s", resp.StatusCode, text)
	}
	if text := atHere.want(401, "GET /dashboard/gw/me", ""); !strings.Contains(text, "not signed in") {
		t.Errorf("a session right after: %s", text)
	}
	eventually(t, "the suspension on the other instance", func() bool {
		resp, _ := there.get(t, "/gw/me")
		page, _ := atThere.send("GET /dashboard/gw/me", "")
		return resp.StatusCode == http.StatusUnauthorized && page.StatusCode == http.StatusUnauthorized
	})
	end()
	if text := <-streamed; !strings.Contains(text, "last") || !strings.Contains(text, "[DONE]") {
		t.Errorf("the stream was cut: %s", text)
	}
}

// BenchmarkPageRequest compares a page's request, which looks up a session and
// its key, with one that presents the key.
func BenchmarkPageRequest(b *testing.B) {
	g := testkit.StartGateway(b, testkit.GatewayOptions{})
	secret, _ := g.NewKey(g.NewClient("Acme"))
	resp, err := http.Post(g.URL+"/dashboard/session", "application/json", strings.NewReader(fmt.Sprintf(`{"key":%q}`, secret)))
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp, err)
	}
	resp.Body.Close()
	for name, with := range map[string]struct{ path, header, value string }{
		"key":     {"/gw/models", "Authorization", "Bearer " + secret},
		"session": {"/dashboard/gw/models", "Cookie", resp.Header.Get("Set-Cookie")},
	} {
		r, err := http.NewRequest(http.MethodGet, g.URL+with.path, nil)
		if err != nil {
			b.Fatal(err)
		}
		value, _, _ := strings.Cut(with.value, ";")
		r.Header.Set(with.header, value)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				resp, err := http.DefaultClient.Do(r)
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
