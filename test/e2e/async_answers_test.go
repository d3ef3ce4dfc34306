package e2e

import (
	"database/sql"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/test/testkit"
)

// liar is an upstream whose every answer about a job is another one: that it
// runs, that it has ended in one way or the other and at any length, at once
// or late, or nothing that could be understood. It keeps what it said of each.
type liar struct {
	*httptest.Server
	mu    sync.Mutex
	made  int
	said  map[string]map[ended]bool
	runs  atomic.Bool // says of all jobs that they run
	moved atomic.Bool // says of all jobs that they have succeeded
}

func newLiar(t *testing.T) *liar {
	t.Helper()
	l := &liar{said: map[string]map[ended]bool{}}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// ServeHTTP makes jobs and lies about them, in DashScope's shape.
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	id, found := strings.CutPrefix(r.URL.Path, "/api/v1/tasks/")
	if !found {
		l.mu.Lock()
		l.made++
		fmt.Fprintf(w, `{"output":{"task_id":"job-%d","task_status":"PENDING"}}`, l.made)
		l.mu.Unlock()
		return
	}
	body, says := l.lie()
	if says.status != "" {
		l.mu.Lock()
		if l.said[id] == nil {
			l.said[id] = map[ended]bool{}
		}
		l.said[id][says] = true
		l.mu.Unlock()
	}
	if rand.IntN(4) == 0 {
		time.Sleep(rand.N(300 * time.Millisecond)) // others are told otherwise meanwhile
	}
	if body == "" {
		w.WriteHeader([]int{404, 429, 500, 503}[rand.IntN(4)])
		body = `{"code":"InternalError","message":"no"}`
	}
	_, _ = io.WriteString(w, body)
}

// lie is an answer, "" for a refusal, and what it makes of a job.
func (l *liar) lie() (body string, says ended) {
	seconds := 1 + rand.IntN(9)
	switch n := rand.IntN(9); {
	case l.runs.Load():
		return `{"output":{"task_status":"RUNNING"}}`, ended{}
	case n < 3 || l.moved.Load():
		return fmt.Sprintf(`{"output":{"task_status":"SUCCEEDED"},"usage":{"output_video_duration":%d}}`, seconds),
			ended{status: "succeeded", parse: "ok", cost: int64(seconds) * 1e8, rowCost: int64(seconds) * 1e8}
	case n == 3:
		return `{"output":{"task_status":"FAILED"}}`, ended{status: "failed", parse: "failed"}
	case n == 4:
		return `{"output":{"task_status":"CANCELED"}}`, ended{status: "cancelled", parse: "cancelled"}
	case n == 5:
		return `{"output":{"task_status":"UNKNOWN"}}`, ended{status: "expired", reason: "provider", parse: "expired"}
	case n == 6:
		return `{"output":{"task_status":"RUNNING"}}`, ended{}
	case n == 7:
		return `{"output":`, ended{}
	}
	return "", ended{}
}

// newLiars is a studio of two instances before a liar.
func newLiars(t *testing.T) (*studio, *liar) {
	t.Helper()
	l := newLiar(t)
	s := &studio{t: t, source: testkit.Postgres(t), urls: make([]atomic.Pointer[string], 2)}
	s.client.Timeout = 30 * time.Second
	for i := range s.urls {
		g := testkit.StartGateway(t, testkit.GatewayOptions{
			Upstream: l.URL, Database: s.source, Catalog: filmCatalog, More: sharedKey,
			Providers: fmt.Sprintf("\n  - {name: dashscope, format: dashscope, base_url: %q, region: eu, credential: sk-upstream}", l.URL),
		})
		s.gateways = append(s.gateways, g)
		at := g.URL
		s.urls[i].Store(&at)
	}
	s.key, _ = s.gateways[0].NewKey(s.gateways[0].NewClient("studio"))
	return s, l
}

const filmOfFour = `{"model":"wan/film","input":{"prompt":"x"},"parameters":{"duration":4}}`

// create makes a job on one of the instances and returns its id.
func (s *studio) create(gateway int) string {
	s.t.Helper()
	status, answer := s.call(s.t.Context(), gateway, "POST", "/v1/videos", filmOfFour)
	_, rest, _ := strings.Cut(answer, `"task_id":"`)
	id, _, found := strings.Cut(rest, `"`)
	if status != http.StatusOK || !found {
		s.t.Fatalf("creation: %d %s", status, answer)
	}
	return id
}

// pollAll polls jobs from many sides at once, each several times.
func (s *studio) pollAll(ids []string, times int) {
	s.t.Helper()
	var work sync.WaitGroup
	for caller := range 12 {
		work.Go(func() {
			for n := range times * len(ids) {
				id := ids[(n*7+caller*13)%len(ids)]
				if status, answer := s.call(s.t.Context(), (n+caller)%2, "GET", "/v1/videos/"+id, ""); status == 0 || status == http.StatusConflict {
					s.t.Errorf("poll of %s: %d %s", id, status, answer)
				}
			}
		})
	}
	work.Wait()
}

// TestAsyncAnswers asks two instances for jobs of whom each answer says
// something else, from many sides at once. Each ends once, in one of the ways
// that the provider said, and nothing that it says later changes that.
func TestAsyncAnswers(t *testing.T) {
	t.Parallel()
	jobs := size(40, 400)
	s, l := newLiars(t)
	var ids []string
	for n := range jobs {
		ids = append(ids, s.create(n%2))
	}
	s.pollAll(ids, 3)
	(&world{t: t}).eventually("nothing is pending", patience, func() bool { return s.pending() == 0 })
	before := s.ledger()
	ways := map[string]int{}
	for id, e := range before {
		said := ended{status: e.status, reason: e.reason, cost: e.cost, parse: e.parse, rowCost: e.rowCost}
		if ways[e.status]++; !l.said[id][said] {
			t.Errorf("job %s has ended as %+v, which was never said: %+v", id, said, l.said[id])
		}
	}
	for _, status := range []string{"succeeded", "failed", "cancelled", "expired"} {
		if ways[status] == 0 && *full {
			t.Errorf("no job %s", status)
		}
	}
	said := 0
	for _, all := range l.said {
		said += len(all)
	}
	l.moved.Store(true)
	s.pollAll(ids, 1)
	if after := s.ledger(); len(before) != jobs || !maps.Equal(before, after) {
		t.Errorf("the ledger has changed since: %d jobs, then %d", len(before), len(after))
	}
	s.endedOnce(before)
	s.settle()
	t.Logf("%d jobs, of which %d different ends were told: %v", jobs, said, ways)
}

// endedOnce holds the evidence against the ledger: one end for each job, at
// its cost.
func (s *studio) endedOnce(all map[string]ended) {
	s.t.Helper()
	ends, sum := s.finals()
	for id, e := range all {
		if ends[e.id] != 1 {
			s.t.Errorf("the evidence has %d ends of job %s", ends[e.id], id)
		}
		sum -= modelgate.Nano(e.cost)
	}
	if len(ends) != len(all) || sum != 0 {
		s.t.Errorf("the evidence has %d ends of %d jobs, which cost %s more than theirs", len(ends), len(all), sum)
	}
}

// alters is a change of the database beside the gateways. It fails where they
// are changing the same rows and this side has to give way.
func alters(t *testing.T, source, statement string) func() bool {
	t.Helper()
	db, err := sql.Open("pgx", source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return func() bool {
		_, err := db.ExecContext(t.Context(), statement)
		return err == nil
	}
}

// TestAsyncDeadline lets the deadline of jobs pass of which the provider says
// that they run: they expire at what they were to cost, and an end that the
// provider tells afterwards comes too late.
func TestAsyncDeadline(t *testing.T) {
	t.Parallel()
	jobs := size(40, 400)
	s, l := newLiars(t)
	l.runs.Store(true)
	var ids []string
	for n := range jobs {
		ids = append(ids, s.create(n%2))
	}
	w := &world{t: t}
	w.eventually("all jobs are in the ledger", patience, func() bool { return s.pending() == jobs })
	dayPasses := alters(t, s.source, "UPDATE async_job SET deadline = created_at, next_poll = created_at")
	w.eventually("a day passes", patience, dayPasses)
	w.eventually("nothing is pending", patience, func() bool { return s.pending() == 0 })
	l.runs.Store(false)
	l.moved.Store(true)
	s.pollAll(ids, 1)
	all := s.ledger()
	for id, e := range all {
		if e.status != "expired" || e.reason != "deadline" || e.cost != 4e8 || e.rowCost != 4e8 || e.parse != "expired" {
			t.Errorf("job %s: %+v", id, e)
		}
	}
	_, page := s.call(t.Context(), 0, "GET", "/gw/async?limit=500", "")
	for _, job := range gjson.Get(page, "data").Array() {
		if job.Get("status").String() != "expired" || job.Get("expiration_reason").String() != "deadline" || job.Get("final_cost_usd").Num != 0.4 ||
			job.Get("provisional_cost_usd").Num != 0.4 || job.Get("finalized_at").Time().Before(job.Get("created_at").Time()) {
			t.Errorf("the list has %s", job.Raw)
		}
	}
	if n := gjson.Get(page, "data.#").Int(); n != int64(jobs) {
		t.Errorf("the list has %d jobs, want %d", n, jobs)
	}
	if _, page := s.call(t.Context(), 0, "GET", "/gw/async?limit=abc", ""); gjson.Get(page, "data.#").Int() != int64(min(jobs, 100)) {
		t.Error("a limit that is no number is not the default one")
	}
	s.endedOnce(all)
	if len(all) != jobs {
		t.Errorf("%d jobs are in the ledger, want %d", len(all), jobs)
	}
	s.settle()
	t.Logf("%d jobs expired, once each, and were then told to have succeeded", jobs)
}
