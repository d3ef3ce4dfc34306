package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/jobs"
	"modelgate/internal/provider"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// sharedKey seals what instances share, such as the key of the evidence.
const sharedKey = "master_key: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\n"

// studio is one upstream with several gateways on one database before it.
type studio struct {
	t        *testing.T
	upstream *upstream
	source   string
	gateways []*testkit.Gateway
	urls     []atomic.Pointer[string]
	key      string
	client   http.Client
}

func newStudio(t *testing.T, gateways int) *studio {
	t.Helper()
	source := testkit.Postgres(t)
	return openStudio(t, gateways, source, source)
}

// openStudio is newStudio with a database, and the way of the gateways to it.
func openStudio(t *testing.T, gateways int, source, way string) *studio {
	t.Helper()
	s := &studio{t: t, upstream: newUpstream(t), source: source, urls: make([]atomic.Pointer[string], gateways)}
	s.client.Timeout = 30 * time.Second
	for i := range gateways {
		g := testkit.StartGateway(t, testkit.GatewayOptions{Upstream: s.upstream.URL, Database: way, More: sharedKey})
		s.gateways = append(s.gateways, g)
		at := g.URL // Start writes it anew
		s.urls[i].Store(&at)
	}
	s.key, _ = s.gateways[0].NewKey(s.gateways[0].NewClient("studio"))
	return s
}

// call asks one of the gateways; status 0 is no answer.
func (s *studio) call(ctx context.Context, gateway int, method, path, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(ctx, method, *s.urls[gateway].Load()+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

// make asks for a video until one is made, and returns its id.
func (s *studio) make(ctx context.Context, gateway int, body string) string {
	for ctx.Err() == nil {
		status, answer := s.call(ctx, gateway, "POST", "/v1/videos", body)
		var job struct{ ID string }
		if status == http.StatusOK && json.Unmarshal([]byte(answer), &job) == nil && job.ID != "" {
			return job.ID
		}
		gateway = (gateway + 1) % len(s.gateways)
		time.Sleep(20 * time.Millisecond)
	}
	return ""
}

// ended is how a job stands in the database.
type ended struct {
	id             string
	status, reason string
	cost           int64
	parse          string
	rowCost        int64
}

func (s *studio) ledger() map[string]ended {
	s.t.Helper()
	db, err := sql.Open("pgx", s.source)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT j.task_id, j.id, j.status, j.reason, j.final_cost, u.parse_status, u.cost
FROM async_job j JOIN usage_row u ON u.client_id = j.client_id AND u.created_at = j.created_at AND u.id = j.id`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]ended{}
	for rows.Next() {
		var id string
		var e ended
		if err := rows.Scan(&id, &e.id, &e.status, &e.reason, &e.cost, &e.parse, &e.rowCost); err != nil {
			s.t.Fatal(err)
		}
		all[id] = e
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *studio) pending() int {
	n := 0
	for _, e := range s.ledger() {
		if e.status == "pending" {
			n++
		}
	}
	return n
}

// pollToo polls beside the instances, from this process, until it is told to
// stop; then it says how many jobs it has ended.
func (s *studio) pollToo() (stop func() int64) {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), store.Options{URL: s.source})
	if err != nil {
		s.t.Fatal(err)
	}
	at, err := provider.New(provider.Config{Name: "openai", Format: "openai", BaseURL: s.upstream.URL, Region: "us", Credentials: []string{"sk-upstream"}})
	if err != nil {
		s.t.Fatal(err)
	}
	var ended atomic.Int64
	poller := &jobs.Poller{
		Ledger: db, Now: time.Now, Log: slog.New(slog.DiscardHandler), Provider: func(string) jobs.Prober { return jobs.Client{Provider: at} },
		Ended: func(*modelgate.JobFinal) { ended.Add(1) }, Polled: func(string, string) {},
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		poller.Run(ctx)
	}()
	return func() int64 {
		cancel()
		<-done
		at.Close()
		if err := db.Close(); err != nil {
			s.t.Error(err)
		}
		return ended.Load()
	}
}

// finals counts the ends that the evidence has, by job, and sums their costs.
func (s *studio) finals() (ends map[string]int, sum modelgate.Nano) {
	s.t.Helper()
	status, file := s.call(s.t.Context(), 0, "GET", "/gw/evidence", "")
	if status != http.StatusOK {
		s.t.Fatalf("evidence: %d %s", status, tail(file, 500))
	}
	ends = map[string]int{}
	for line := range strings.Lines(file) {
		found := gjson.GetMany(line, "rec.type", "rec.ref", "rec.cost_usd")
		if found[0].String() != "usage.final" {
			continue
		}
		cost, err := modelgate.ParseUSD(found[2].String())
		if err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		ends[found[1].String()]++
		sum += cost
	}
	return ends, sum
}

// TestAsyncKills makes jobs, polls them from all sides (two instances, a third
// poller, clients), and kills the instances meanwhile: each job ends once, at
// what the provider's ledger says.
func TestAsyncKills(t *testing.T) {
	t.Parallel()
	jobs, kills := size(500, 10_000), size(3, 30)
	s := newStudio(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), size(5*time.Minute, 20*time.Minute))
	defer cancel()
	stop := s.pollToo()
	var mu sync.Mutex
	var made []string
	var next, polls atomic.Int64
	var makers sync.WaitGroup
	for range 12 {
		makers.Go(func() {
			for {
				n := int(next.Add(1))
				if n > jobs || ctx.Err() != nil {
					return
				}
				ending := [...]string{"", "", "[[job=failed]]", "[[job=cancelled]]"}[n%4]
				id := s.make(ctx, n%2, fmt.Sprintf(`{"model":"openai/sora-2","prompt":"film %d [[polls=%d]] %s","seconds":"%d"}`, n, 1+n%size(2, 3), ending, 1+n%12))
				mu.Lock()
				made = append(made, id)
				mu.Unlock()
				for range n % 4 { // some jobs nobody polls but the gateways
					s.call(ctx, rand.IntN(2), "GET", "/v1/videos/"+id, "")
					polls.Add(1)
				}
			}
		})
	}
	for i := range kills {
		time.Sleep(2 * time.Second)
		g := s.gateways[i%2]
		g.Kill()
		g.Start()
		at := g.URL
		s.urls[i%2].Store(&at)
	}
	makers.Wait()
	(&world{t: t}).eventually("nothing is pending", size(3*time.Minute, 10*time.Minute), func() bool { return s.pending() == 0 })
	third := stop()
	all := s.ledger()
	s.endedOnce(all)
	s.settle()
	judged := s.judge(all)
	if third == 0 {
		t.Error("the third poller ended no job")
	}
	for _, id := range made {
		if _, ok := all[id]; !ok {
			t.Errorf("job %q was answered and is not in the ledger", id)
		}
	}
	t.Logf("%d jobs answered, %d in the ledger, %d kills, %d polls of clients, %d requests upstream, %d jobs ended by the third poller: %s",
		len(made), len(all), kills, polls.Load(), s.upstream.ledger.Len(), third, judged)
}

// judge compares the ledger with the provider's, job by job. Whatever the
// provider has ended is in the ledger; what it was asked for by an instance
// that died before it had the answer is not, and nobody asks how it stands.
func (s *studio) judge(all map[string]ended) string {
	s.t.Helper()
	truth, taken := map[string]ended{}, map[string]bool{}
	for _, served := range s.upstream.ledger.All() {
		if served.Job != "" {
			taken[served.Job] = true
		}
		switch served.JobStatus {
		case "succeeded":
			truth[served.Job] = ended{status: "succeeded", cost: int64(served.Seconds * 1e8), parse: "ok"}
		case "failed", "cancelled", "expired": // in OpenAI's shape all of them are failures
			truth[served.Job] = ended{status: "failed", parse: "failed"}
		}
	}
	var sum, want int64
	for _, t := range truth {
		want += t.cost
	}
	wrong := 0
	for id, e := range all {
		t := truth[id]
		sum += e.cost
		if e.status != t.status || e.cost != t.cost || e.rowCost != t.cost || e.parse != t.parse {
			if wrong++; wrong < 5 {
				s.t.Errorf("job %s: %+v, the provider says %+v", id, e, t)
			}
		}
	}
	if sum != want || wrong > 0 {
		s.t.Errorf("%d of %d jobs are wrong; sum %d, the provider's %d", wrong, len(all), sum, want)
	}
	for id := range all {
		delete(taken, id)
	}
	return fmt.Sprintf("sum %d nano-USD, the provider's %d; %d jobs that the provider took died with an instance", sum, want, len(taken))
}

// TestAsyncRotation takes the credential of pending jobs away, in two steps.
func TestAsyncRotation(t *testing.T) {
	t.Parallel()
	jobs := size(25, 100)
	s := newStudio(t, 1)
	g := s.gateways[0]
	provider := func(more string) testkit.GatewayOptions {
		return testkit.GatewayOptions{Upstream: s.upstream.URL, Database: s.source, More: sharedKey,
			Providers: "\n  - {name: openai, format: openai, base_url: \"" + s.upstream.URL + "\", region: us, " + more + "}"}
	}
	var ids []string
	for n := range jobs {
		ids = append(ids, s.make(t.Context(), 0, fmt.Sprintf(`{"model":"openai/sora-2","prompt":"film %d [[polls=1000000]]","seconds":"4"}`, n)))
	}
	answered := func(want int) {
		t.Helper()
		wrong := 0
		for _, id := range ids {
			if status, answer := s.call(t.Context(), 0, "GET", "/v1/videos/"+id, ""); status != want {
				if wrong++; wrong < 4 {
					t.Errorf("job %s: %d %s, want %d", id, status, answer, want)
				}
			}
		}
	}
	reload := func(more string) {
		t.Helper()
		g.Configure(provider(more))
		before := strings.Count(g.Log(), "configuration reloaded")
		g.Signal(syscall.SIGHUP)
		(&world{t: t}).eventually("reload", 20*time.Second, func() bool { return strings.Count(g.Log(), "configuration reloaded") > before })
	}
	answered(200)
	reload("credential: sk-new, previous_credentials: [sk-upstream]")
	answered(200)
	if n := s.pending(); n != jobs {
		t.Errorf("%d jobs are pending while the credential is kept, want %d", n, jobs)
	}
	reload("credential: sk-new")
	answered(http.StatusGone)
	answered(http.StatusGone)
	for id, e := range s.ledger() {
		if e.status != "expired" || e.reason != "credential_rotated" || e.cost != 0 || e.rowCost != 0 || e.parse != "expired" {
			t.Errorf("job %s: %+v", id, e)
		}
	}
	s.settle()
	t.Logf("%d jobs: polled while the old credential was kept, 410 afterwards", jobs)
}
