package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestAsyncTrouble takes away first the provider and then the database while a
// job is polled: 503, and the job stays pending until both are back. Jobs of
// another provider, which takes polls and never answers them, keep none of
// this one's from ending.
func TestAsyncTrouble(t *testing.T) {
	t.Parallel()
	m := newMouthpiece(t)
	answers := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprintf(w, `{"id":"silent-%d"}`, time.Now().UnixNano())
			return
		}
		select {
		case <-answers:
			fmt.Fprint(w, `{"status":"completed","seconds":"4"}`)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(silent.CloseClientConnections)
	source := testkit.Postgres(t)
	v, way := newValve(t, source)
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		Database: way, Upstream: m.URL, Catalog: filmCatalog, More: sharedKey,
		Providers: fmt.Sprintf("\n  - {name: dashscope, format: dashscope, base_url: %q, region: eu, credential: sk-upstream}"+
			"\n  - {name: silent, format: openai, base_url: %q, region: eu, credential: sk-upstream}", m.URL, silent.URL),
	})
	w := &world{Gateway: g, t: t, client: g.NewClient("trouble")}
	w.key, _ = g.NewKey(w.client)
	for range 100 {
		w.want(200, "POST /silent/v1/videos", `{"model":"m","prompt":"x","seconds":"4"}`)
	}
	s := &films{seller: &seller{world: w}, m: m}
	s.make(w.key, "a", 200)
	s.make(w.key, "b", 200)
	refused := func(when string) {
		t.Helper()
		if status, answer := w.ask(w.key, "GET /v1/videos/a", ""); status != 503 || !strings.Contains(answer, `"type":"unavailable"`) {
			t.Errorf("%s: %d %s, want 503", when, status, answer)
		}
	}
	m.say("GET /api/v1/tasks/a", hangsUp)
	refused("the provider is away")
	if got := s.list("GET /gw/async?status=pending&limit=500").Get("data.#").Int(); got != 102 {
		t.Errorf("%d jobs are pending, want 102", got)
	}
	m.say("GET /api/v1/tasks/a", `{"output":{"task_status":"SUCCEEDED"},"usage":{"output_video_duration":6}}`)
	v.darken()
	refused("the database is away")
	v.light()
	w.eventually("the job can be polled", patience, func() bool {
		status, _ := w.ask(w.key, "GET /v1/videos/a", "")
		return status == 200
	})
	// Nobody polls the other one, and half of all polls are waiting.
	m.say("GET /api/v1/tasks/b", `{"output":{"task_status":"SUCCEEDED"},"usage":{"output_video_duration":7}}`)
	// The longer all this has taken, the later the next poll would be.
	due := alters(t, source, "UPDATE async_job SET next_poll = created_at, pause = 5000000 WHERE id IN (SELECT id FROM async_job WHERE status = 'pending' FOR UPDATE SKIP LOCKED)")
	w.eventually("the gateway ends the other one", patience, func() bool {
		due()
		return s.list("GET /gw/async?status=succeeded").Get("data.#").Int() == 2
	})
	for _, job := range s.list("GET /gw/async?status=succeeded").Get("data").Array() {
		if want := map[string]float64{"a": 0.6, "b": 0.7}[job.Get("task_id").String()]; job.Get("final_cost_usd").Num != want {
			t.Errorf("%s, want %v", job.Raw, want)
		}
	}
	close(answers)
	w.eventually("the silent provider's jobs end", 2*patience, func() bool {
		due()
		return s.list("GET /gw/async?status=succeeded&limit=500").Get("data.#").Int() == 102
	})
	g.Stop()
	if stdout, stderr, code := g.Run("reconcile", "--config", g.ConfigFile); code != 0 {
		t.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
	}
}

// TestAsyncRollingRotation gives two instances a new credential one after the
// other: jobs that the first makes with it are not over because the second
// does not know it yet, and those made with the old one are over only when it
// is gone.
func TestAsyncRollingRotation(t *testing.T) {
	t.Parallel()
	m := newMouthpiece(t)
	source := testkit.Postgres(t)
	options := func(credentials string) testkit.GatewayOptions {
		return testkit.GatewayOptions{
			Database: source, Upstream: m.URL, Catalog: filmCatalog, More: sharedKey,
			Providers: fmt.Sprintf("\n  - {name: dashscope, format: dashscope, base_url: %q, region: eu, %s}", m.URL, credentials),
		}
	}
	both := [2]*films{}
	for i := range both {
		both[i] = &films{seller: &seller{world: &world{Gateway: testkit.StartGateway(t, options("credential: sk-old")), t: t}}, m: m}
	}
	first, second := both[0], both[1]
	first.client = first.NewClient("rolling")
	first.key, _ = first.NewKey(first.client)
	second.key = first.key
	reload := func(s *films, credentials string) {
		t.Helper()
		s.Configure(options(credentials))
		before := strings.Count(s.Log(), "configuration reloaded")
		s.Signal(syscall.SIGHUP)
		s.eventually("reload", patience, func() bool { return strings.Count(s.Log(), "configuration reloaded") > before })
	}
	answered := func(s *films, id string, want int) {
		t.Helper()
		if status, answer := s.ask(s.key, "GET /v1/videos/"+id, ""); status != want {
			t.Errorf("job %s: %d %s, want %d", id, status, answer, want)
		}
	}
	first.make(first.key, "old", 200)
	reload(first, "credential: sk-new, previous_credentials: [sk-old]")
	first.make(first.key, "new", 200)
	first.eventually("both are in the ledger", patience, func() bool { return first.list("GET /gw/async").Get("data.#").Int() == 2 })
	answered(first, "old", 200)
	answered(first, "new", 200)
	answered(second, "old", 200)
	answered(second, "new", 503)
	// The pollers of both look after them meanwhile.
	time.Sleep(size(8*time.Second, 30*time.Second))
	answered(first, "new", 200)
	reload(second, "credential: sk-new, previous_credentials: [sk-old]")
	answered(second, "new", 200)
	answered(second, "old", 200)
	if n := first.list("GET /gw/async?status=pending").Get("data.#").Int(); n != 2 {
		t.Errorf("%d jobs are pending, want 2", n)
	}
	for _, s := range both {
		reload(s, "credential: sk-new")
	}
	for _, s := range both {
		answered(s, "old", 410)
		answered(s, "new", 200)
	}
	job := first.list("GET /gw/async?status=expired").Get("data.0")
	if job.Get("task_id").String() != "old" || job.Get("expiration_reason").String() != "credential_rotated" || job.Get("final_cost_usd").Num != 0 || job.Get("finalized_at").String() == "" {
		t.Errorf("the job %s", job.Raw)
	}
}
