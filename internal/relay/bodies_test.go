package relay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/web"
)

// TestOneBodyARouteAtATime: however many routes a model has, a call keeps its
// body as it came and that of the route under way, and takes room for both.
func TestOneBodyARouteAtATime(t *testing.T) {
	t.Parallel()
	room := web.NewRoom(5 << 20)
	g := open(t, "http://one", plan{backup: "http://two", options: Options{Room: room}})
	body := `{"model":"acme/two","messages":[{"role":"user","content":"` + strings.Repeat("x", 512<<10) + `"}]}`
	resolve := func() (*call, error) {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		c := &call{w: httptest.NewRecorder(), r: r, live: g.live.Load(), caller: g.caller}
		return c, g.relay.resolveDoor(c)
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
	c.room.Leave()
	second.room.Leave()
	if _, err := resolve(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
