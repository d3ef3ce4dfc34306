package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/ratelimit"
)

// rated opens a gate whose caller has limits, in front of a provider whose
// answers have 5 tokens of input and 2 of output.
func rated(t *testing.T, rules ...*modelgate.RateLimit) *gate {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("RateLimit", "theirs")
		w.Header().Set("X-Ratelimit-Limit-Requests", "theirs")
		_, _ = w.Write([]byte(`{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`))
	}))
	t.Cleanup(upstream.Close)
	for i, r := range rules {
		r.Number = int64(i + 1)
	}
	standing := time.Now()
	who := &modelgate.Caller{ClientID: "c", KeyID: "k", Scopes: []modelgate.Scope{modelgate.InferenceUse}, Entitlements: modelgate.OpenEntitlements(), RateLimits: rules}
	return open(t, upstream.URL, plan{who: who, options: Options{
		Rates: ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return standing })),
	}})
}

func (g *gate) chat(t *testing.T, model string) (*http.Response, []byte) {
	t.Helper()
	resp, answer, err := g.do(t, "/v1/chat/completions", `{"model":"`+model+`","max_tokens":1000,"messages":[{"role":"user","content":"hello"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// A limited call carries the standard headers, the provider's are not passed on,
// and a refused call says which limit refused and when it would pass.
func TestRateHeaders(t *testing.T) {
	t.Parallel()
	g := rated(t,
		&modelgate.RateLimit{Level: modelgate.LevelClient, Unit: modelgate.UnitRequests, Window: "minute", Limit: 2},
		&modelgate.RateLimit{Level: modelgate.LevelKey, ID: "k", Unit: modelgate.UnitTokens, Window: "minute", Limit: 100_000},
	)
	resp, _ := g.chat(t, "acme/dear")
	if resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	want := map[string]string{
		"RateLimit-Policy":               `"client-requests-minute";q=2;w=60, "key-tokens-minute";q=100000;w=60;qu="tokens"`,
		"X-Ratelimit-Limit-Requests":     "2",
		"X-Ratelimit-Remaining-Requests": "1",
		"X-Ratelimit-Reset-Requests":     "30s",
		"X-Ratelimit-Limit-Tokens":       "100000",
	}
	for name, value := range want {
		if got := resp.Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	wait(t, g.books.ended, "END")
	g.chat(t, "acme/dear")
	wait(t, g.books.ended, "END")
	refused, answer := g.chat(t, "acme/dear")
	if refused.StatusCode != 429 || refused.Header.Get("Retry-After") != "30" || refused.Header.Get("X-Should-Retry") != "" {
		t.Errorf("%d, Retry-After %q", refused.StatusCode, refused.Header.Get("Retry-After"))
	}
	var body struct {
		Error struct {
			Type  string
			Limit struct {
				Kind, Scope, Unit, Window string
				Limit, Used, Remaining    float64
			}
		}
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		t.Fatal(err)
	}
	l := body.Error.Limit
	if body.Error.Type != "rate_limited" || l.Kind != "rate" || l.Scope != "client" || l.Unit != "requests" || l.Window != "minute" || l.Limit != 2 || l.Used != 2 || l.Remaining != 0 {
		t.Errorf("%+v", body)
	}
	if begins, _ := g.books.counts(); begins != 2 {
		t.Errorf("%d calls begun, want 2", begins)
	}
}

// A call draws an estimate of its tokens and leaves what it used.
func TestRateTokensAreSettled(t *testing.T) {
	t.Parallel()
	g := rated(t, &modelgate.RateLimit{Level: modelgate.LevelClient, Unit: modelgate.UnitOutputTokens, Window: "minute", Limit: 10_000})
	remaining := func() int64 {
		t.Helper()
		resp, _ := g.chat(t, "acme/dear")
		n, err := strconv.ParseInt(resp.Header.Get("X-Ratelimit-Remaining-Tokens"), 10, 64)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d, %v", resp.StatusCode, err)
		}
		wait(t, g.books.ended, "END")
		return n
	}
	if first, second := remaining(), remaining(); first != 9000 || second <= 9000-1000 || second >= 10_000 {
		t.Errorf("%d and %d remain while calls run, want 9000, and then 2 less than what is estimated by then", first, second)
	}
}

// A call that is refused later gives everything back, and 429 comes before 403
// for its price.
func TestRefusedCallsGiveBack(t *testing.T) {
	t.Parallel()
	g := rated(t, &modelgate.RateLimit{Level: modelgate.LevelClient, Unit: modelgate.UnitRequests, Window: "minute", Limit: 2},
		&modelgate.RateLimit{Level: modelgate.LevelClient, Unit: modelgate.UnitConcurrency, Limit: 1})
	for range 5 {
		if resp, _ := g.chat(t, "no/such"); resp.StatusCode != 404 && resp.StatusCode != 403 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	for i, want := range []int{200, 200, 429} {
		if resp, _ := g.chat(t, "acme/dear"); resp.StatusCode != want {
			t.Errorf("call %d: %d, want %d", i, resp.StatusCode, want)
		} else if want == 200 {
			wait(t, g.books.ended, "END")
		}
	}
}
