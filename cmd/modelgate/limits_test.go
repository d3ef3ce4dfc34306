package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestBodyBoundIsExact passes 10485760 bytes and refuses one more, declared
// and chunked, on every surface.
func TestBodyBoundIsExact(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	const bound = 10 << 20
	body := func(head, tail string, size int) string {
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	tests := map[string]struct{ path, head, tail string }{
		"door":  {"/v1/embeddings", `{"model":"openai/text-embedding-3-small","input":"`, `"}`},
		"proxy": {"/openai/v1/embeddings", `{"model":"m","input":"`, `"}`},
		"gw":    {"/gw/subaccounts", `{"name":"n","slug":"s","tenant":"`, `"}`},
	}
	for name, tt := range tests {
		for _, way := range []string{"declared", "chunked"} {
			t.Run(name+" "+way, func(t *testing.T) {
				for _, size := range []int{bound, bound + 1} {
					text := body(tt.head, tt.tail, size)
					var reader io.Reader = strings.NewReader(text)
					if way == "chunked" {
						reader = io.MultiReader(reader) // hides the length
					}
					req, err := http.NewRequest(http.MethodPost, b.URL+tt.path, reader)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Authorization", "Bearer "+b.key)
					req.Header.Set("Content-Type", "application/json")
					if size > bound && way == "declared" {
						// The refusal comes before the body is taken; a client that has
						// it all under way then may be cut off before it reads that.
						req.Header.Set("Expect", "100-continue")
					}
					resp, answer := exchange(t, req)
					if size > bound {
						want := `{"error":{"type":"request_too_large","message":"request body too large"}}`
						if resp.StatusCode != 413 || strings.TrimSpace(answer) != want {
							t.Errorf("one byte too many: %d %.200s", resp.StatusCode, answer)
						}
						continue
					}
					want := 200
					if name == "gw" && way == "chunked" {
						want = 409 // the first way has taken the slug
					}
					if resp.StatusCode != want {
						t.Errorf("a body at the bound: %d %.200s", resp.StatusCode, answer)
					}
				}
			})
		}
	}
}

// TestHeadersAreBounded refuses more than 32 KiB of headers with the
// envelope.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	resp, answer := b.post(t, "/v1/chat/completions", `{}`, "X-Large", strings.Repeat("a", 33<<10))
	if resp.StatusCode != 431 || !strings.Contains(answer, `"type":"bad_request"`) || resp.Header.Get("X-Gateway-Request-Id") == "" {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	if resp, _ := b.post(t, "/v1/chat/completions", `{}`, "X-Large", strings.Repeat("a", 30<<10)); resp.StatusCode != 400 {
		t.Errorf("30 KiB of headers: %d, want the 400 of an empty body", resp.StatusCode)
	}
}

// TestRateIsLimitedPerKey answers the burst and refuses what comes after it,
// with the header that SDKs wait by.
func TestRateIsLimitedPerKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{Limits: "requests_per_second: 1, burst: 3, concurrency: 0"})
	began, admitted := time.Now(), 0
	for range 10 {
		resp, answer := b.get(t, "/gw/me")
		if resp.StatusCode == 200 {
			admitted++
			continue
		}
		want := `{"error":{"type":"rate_limited","message":"rate limit exceeded","limit":{"kind":"rate","scope":"key",`
		if resp.StatusCode != 429 || !strings.HasPrefix(answer, want) || resp.Header.Get("Retry-After") != "1" {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, answer)
		}
	}
	if most := 3 + int(time.Since(began).Seconds()); admitted < 3 || admitted > most {
		t.Errorf("%d of 10 calls admitted at a burst of 3, want 3 to %d", admitted, most)
	}
	other, _ := b.NewKey(b.NewClient("other"))
	mine := b.key
	b.key = other
	if resp, _ := b.get(t, "/gw/me"); resp.StatusCode != 200 {
		t.Errorf("another key: %d", resp.StatusCode)
	}
	b.key = mine
}

// TestConcurrencyIsLimitedPerKey holds one call open and refuses the second.
func TestConcurrencyIsLimitedPerKey(t *testing.T) {
	t.Parallel()
	inside, release := make(chan struct{}, 100), make(chan struct{})
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		inside <- struct{}{}
		<-release
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	})
	b := newBench(t, testkit.GatewayOptions{Upstream: upstream, Limits: "requests_per_second: 0, concurrency: 1"})
	const body = `{"model":"openai/gpt-5-mini","messages":[]}`
	first := make(chan int, 1)
	go func() {
		defer close(first) // a call that fails ends its goroutine without a status
		resp, _ := b.post(t, "/v1/chat/completions", body)
		first <- resp.StatusCode
	}()
	select {
	case <-inside:
	case status := <-first:
		t.Fatalf("the first call ended with %d", status)
	}
	if resp, _ := b.post(t, "/v1/chat/completions", body); resp.StatusCode != 429 {
		t.Errorf("the second call: %d, want 429", resp.StatusCode)
	}
	if resp, _ := b.get(t, "/gw/me"); resp.StatusCode != 200 {
		t.Errorf("the management API while a call is open: %d", resp.StatusCode)
	}
	close(release)
	if status := <-first; status != 200 {
		t.Errorf("the first call: %d", status)
	}
	// The slot is free once the call is booked, which may be after its last byte.
	eventually(t, "a call after the first has ended", func() bool {
		resp, _ := b.post(t, "/v1/chat/completions", body)
		return resp.StatusCode == 200
	})
}

// TestLimitsOfTheFileOnTheClock holds keys to the configuration's limits by the
// day, each by itself, and all organizations to the gateway's, without Redis. A
// reload changes them, and keeps what is counted.
func TestLimitsOfTheFileOnTheClock(t *testing.T) {
	t.Parallel()
	o := testkit.GatewayOptions{Limits: "requests_per_second: 0, rules: [{scope: key, unit: requests, window: day, limit: 2}, {scope: gateway, unit: requests, window: day, limit: 5}]"}
	b := newBench(t, o)
	first := b.key
	second, _ := b.NewKey(b.NewClient("other"))
	call := func(key string) (*http.Response, string) {
		b.key = key
		return b.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`)
	}
	admitted := func(key string) {
		t.Helper()
		if resp, answer := call(key); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
	}
	refused := func(key, want string) {
		t.Helper()
		resp, answer := call(key)
		if resp.StatusCode != 429 || !strings.HasPrefix(answer, want) || resp.Header.Get("Retry-After") == "" {
			t.Fatalf("%d %s, want 429 %s", resp.StatusCode, answer, want)
		}
	}
	const ofKey = `{"error":{"type":"rate_limited","message":"rate limit exceeded","limit":{"kind":"rate","scope":"key",`
	admitted(first)
	admitted(first)
	refused(first, ofKey)
	admitted(second)
	if resp, answer := b.get(t, "/gw/quota"); resp.StatusCode != 200 || !strings.Contains(answer, `"unit":"requests","window":"day","limit":2,"used":1,"remaining":1,`) ||
		strings.Contains(answer, `"scope":"gateway"`) {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	admitted(second)
	third, _ := b.NewKey(b.NewClient("third"))
	admitted(third)
	refused(third, `{"error":{"type":"rate_limited","message":"rate limit exceeded"}}`) // all organizations' figures are nobody's
	o.Limits = strings.ReplaceAll(o.Limits, "limit: 5", "limit: 100")
	b.Configure(o)
	b.Signal(syscall.SIGHUP)
	eventually(t, "one call more of all", func() bool {
		resp, _ := call(third)
		return resp.StatusCode == 200
	})
	refused(third, ofKey)
	o.Limits = "requests_per_second: 0"
	b.Configure(o)
	b.Signal(syscall.SIGHUP)
	eventually(t, "calls without limits", func() bool {
		resp, _ := call(first)
		return resp.StatusCode == 200
	})
}
