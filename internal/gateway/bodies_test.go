package gateway

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
)

// TestOneBodyARouteAtATime: however many routes a model has, a call keeps its
// body as it came and that of the route under way, and takes room for both.
func TestOneBodyARouteAtATime(t *testing.T) {
	t.Parallel()
	room := httpx.NewMemoryQuota(5<<20, 0)
	g := open(t, "http://one", plan{backup: "http://two", options: Options{Memory: room}})
	body := `{"model":"acme/two","messages":[{"role":"user","content":"` + strings.Repeat("x", 512<<10) + `"}]}`
	resolve := func() (*call, error) {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		c := &call{inbound: inbound{w: httptest.NewRecorder(), r: r, snapshot: g.live.Load(), caller: g.caller}}
		return c, g.gateway.resolveDoor(c)
	}
	c, err := resolve()
	if err != nil || len(c.attempts) != 2 || string(c.body) != body {
		t.Fatalf("%d routes, %v", len(c.attempts), err)
	}
	for i, native := range []string{"gpt-x", "gpt-y"} {
		c.tried = i - 1
		if at, out := c.following(); at != i || out == nil {
			t.Fatalf("route %d after %d", at, c.tried)
		}
		if want := strings.Replace(body, "acme/two", native, 1); string(c.attempts[i].out.Body) != want || c.attempts[i].size != int64(len(want)) {
			t.Errorf("route %d gets %.60s", i, c.attempts[i].out.Body)
		}
		for j := range c.attempts {
			if held := c.attempts[j].out.Body != nil; held != (i == j) {
				t.Errorf("while route %d is tried, that of route %d is there: %v", i, j, held)
			}
		}
	}
	// An organization has half of the room: two bodies, kept twice each.
	second, err := resolve()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(); modelgate.KindOf(err) != modelgate.RateLimited {
		t.Errorf("a third call: %v", err)
	}
	c.room.Release()
	second.room.Release()
	if _, err := resolve(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestBodiesArriveAsTheyCame: the memory of bodies is used again, by calls
// side by side, and no provider ever sees a byte of another call's: through
// connections of the gateway's own and of net/http, as the only route and as
// the second, on the proxy, and where the provider answers before it has read.
func TestBodiesArriveAsTheyCame(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"own connections": false, "net/http": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const answer = `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`
			var seen atomic.Int64
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				control := http.NewResponseController(w)
				letter := r.Header.Get("X-Client-Request-Id")
				if letter < "e" { // it answers first
					_ = control.EnableFullDuplex() // of HTTP/1, which this is
					w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
					_, _ = io.WriteString(w, answer)
					_ = control.Flush()
				}
				body, _ := io.ReadAll(r.Body) // cut where the gateway has its answer
				seen.Add(int64(len(body)))
				_, content, _ := bytes.Cut(body, []byte(`"content":"`))
				content = bytes.TrimSuffix(content, []byte(`"}]}`))
				if bytes.Count(content, []byte(letter)) < len(content)-len(`"}]}`) {
					t.Errorf("call %s arrived as %.80q", letter, bytes.ReplaceAll(content, []byte(letter), nil))
				}
				switch {
				case letter == "h" && bytes.Contains(body, []byte("gpt-x")):
					w.WriteHeader(http.StatusTooManyRequests) // the second route takes it
				case letter >= "e":
					_, _ = io.WriteString(w, answer)
				}
			}))
			t.Cleanup(upstream.Close)
			g := open(t, upstream.URL, plan{backup: upstream.URL, options: Options{Memory: httpx.NewMemoryQuota(1<<30, 0)}, configure: func(c *provider.Config) { c.HTTP2 = http2 }})
			var callers sync.WaitGroup
			for i := range 8 {
				callers.Go(func() {
					letter, size := string(rune('a'+i)), 3000
					for round := range 8 {
						size = (size*2+i)%(900<<10) + 100
						path, model := "/v1/chat/completions", []string{"acme/chat", "acme/two"}[round%2]
						switch {
						case letter == "h":
							model = "acme/two"
						case round%3 == 0:
							path, model = "/openai/v1/chat/completions", "gpt-x"
						}
						r := g.request(t.Context(), path, `{"model":"`+model+`","messages":[{"role":"user","content":"`+strings.Repeat(letter, size)+`"}]}`)
						r.Header.Set("X-Client-Request-Id", letter)
						resp, err := g.client.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						_, err = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if err != nil || resp.StatusCode != http.StatusOK {
							t.Errorf("%s %s: %s, %v", path, model, resp.Status, err)
						}
					}
				})
			}
			callers.Wait()
			if seen.Load() == 0 {
				t.Error("no provider read anything")
			}
		})
	}
}
