package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// group is three instances behind a balancer, with one PostgreSQL and one
// Redis that the proof may stop.
type group struct {
	*testing.T
	database *testkit.PostgresCluster
	redis    *testkit.RedisServer
	upstream *upstream
	gates    []*testkit.Gateway
	balancer *balancer
	source   string
	client   modelgate.ClientID
}

// drainFor is longer than a balancer takes to look at readiness.
const drainFor = 2 * time.Second

func newGroup(t *testing.T) *group { return newGroupOf(t, "") }

// newGroupOf is newGroup with another binary.
func newGroupOf(t *testing.T, binary string) *group {
	t.Helper()
	g := &group{T: t, database: testkit.NewPostgresCluster(t), redis: testkit.NewRedisServer(t), upstream: newUpstream(t), balancer: newBalancer(t)}
	g.source = g.database.Database(t)
	for i := range 3 {
		gate := testkit.StartGateway(t, testkit.GatewayOptions{
			Binary: binary, Database: g.source, Upstream: g.upstream.URL, More: fmt.Sprintf("redis: {url: %q}\n", g.redis.URL()),
		})
		(&world{Gateway: gate, t: t, target: newTarget()}).drainDelay(drainFor)
		g.gates = append(g.gates, gate)
		g.balancer.set(i, gate.URL)
	}
	g.client = g.gates[0].NewClient("scale")
	return g
}

// key issues a key with limits.
func (g *group) key(limits ...string) string {
	g.Helper()
	secret, id := g.gates[0].NewKey(g.client)
	g.gates[0].Admin(nil, append([]string{"key", "limits", string(id)}, limits...)...)
	return secret
}

// limited waits until every instance knows a key and its limits.
func (g *group) limited(key string) {
	g.Helper()
	for _, gate := range g.gates {
		for began := time.Now(); ; {
			r, err := http.NewRequest(http.MethodGet, gate.URL+"/gw/me", nil)
			if err != nil {
				g.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+key)
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			if err == nil && resp.StatusCode == http.StatusOK {
				break
			}
			if time.Since(began) > patience {
				g.Fatalf("an instance does not know the key: %v", err)
			}
		}
	}
}

// roll restarts an instance as an upgrade does.
func (g *group) roll(i int) {
	g.Helper()
	g.end(i)
	g.gates[i].Start()
	g.balancer.set(i, g.gates[i].URL)
}

// end ends an instance in peace.
func (g *group) end(i int) {
	g.Helper()
	g.gates[i].Signal(syscall.SIGTERM)
	select {
	case <-g.gates[i].Exited():
	case <-time.After(patience):
		g.Fatalf("instance %d does not end", i)
	}
	if code := g.gates[i].ExitCode(); code != 0 {
		g.Errorf("instance %d ended with %d", i, code)
	}
}

// settle stops all and judges the books.
func (g *group) settle(title string, calls []*call, more ...string) {
	g.Helper()
	for _, gate := range g.gates {
		gate.Stop()
	}
	g.upstream.close()
	v := judge(g.T, calls, g.upstream.ledger.All(), readRows(g.T, "pgx", g.source))
	v.check(g.T)
	v.reconciled = "no difference"
	if stdout, stderr, code := g.gates[0].Run("reconcile", "--config", g.gates[0].ConfigFile); code != 0 {
		v.reconciled = "DIFFERENCES"
		g.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
	}
	if v.failed > 0 {
		why := map[string]int{}
		for _, c := range calls {
			if c.failed() {
				why[fmt.Sprintf("status %d, %v: %s", c.status, c.err, c.refusal)]++
			}
		}
		g.Errorf("%d calls failed: %v", v.failed, why)
	}
	if v.answered == 0 || v.exact != v.rows {
		g.Errorf("%d answered, %d of %d rows are exact", v.answered, v.exact, v.rows)
	}
	slices.SortFunc(calls, func(a, b *call) int { return int(a.took - b.took) })
	at := func(share float64) string {
		return fmt.Sprintf("%.1f ms", calls[int(share*float64(len(calls)-1))].took.Seconds()*1e3)
	}
	v.table(g.Output(), title, append(more, "call p50", at(0.5), "call p99", at(0.99), "call at most", at(1))...)
	if g.Failed() {
		for i, gate := range g.gates {
			g.Logf("the log of instance %d ends with\n%s", i, tail(gate.Log(), 1500))
		}
	}
}

// TestScaleRollingRestart keeps a steady load on three instances while each of
// them is restarted, PostgreSQL is, and Redis is away for a while: no call
// fails and none is lost. The key has a budget and limits, so that slices and
// Redis are in use.
func TestScaleRollingRestart(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	rate := size(120.0, 1000)
	key := g.key("--rps", "20000", "--burst", "20000", "--concurrency", "5000")
	g.limited(key)
	g.budget(key)
	l := &load{target: newTarget(), key: key, callers: size(24, 96), rate: rate, mix: mix{slow: 0.1}, reached: make(chan int64)}
	l.target.set(g.balancer.URL)
	g.balanced()
	ctx, stop := context.WithCancel(t.Context())
	made := make(chan []*call, 1)
	began := time.Now()
	go func() { made <- l.run(ctx) }()
	lasts := func(d time.Duration) { l.until(t.Context(), l.done.Load()+int64(d.Seconds()*rate)) }
	pause := size(500*time.Millisecond, 5*time.Second)
	lasts(pause)
	for i := range g.gates {
		g.roll(i)
		lasts(pause)
	}
	g.database.Stop(t)
	lasts(size(time.Second, 5*time.Second))
	g.database.Start(t)
	lasts(pause)
	g.redis.Stop()
	lasts(size(time.Second, 10*time.Second))
	g.redis.Start(t)
	lasts(pause)
	ended := time.Since(began)
	stop()
	calls := <-made
	g.settle(fmt.Sprintf("three instances at %.0f calls/s: each restarted, PostgreSQL restarted, Redis away", rate), calls,
		"calls a second", fmt.Sprintf("%.0f", float64(len(calls))/ended.Seconds()))
}

// budget sets budgets that bind the key and are not used up.
func (g *group) budget(key string) {
	g.Helper()
	r, err := http.NewRequest(http.MethodPut, g.gates[0].URL+"/gw/budgets", strings.NewReader(`{"scope":"client","period":"month","limit_usd":100000}`))
	if err != nil {
		g.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		g.Fatalf("budget: %v, %v", resp, err)
	}
	resp.Body.Close()
}

// balanced waits until the balancer has found all instances.
func (g *group) balanced() {
	g.Helper()
	for began := time.Now(); g.balancer.found() < len(g.gates); {
		if time.Since(began) > patience {
			g.Fatal("not all instances are ready")
		}
	}
}

// TestScaleSharedRate: a key's rate holds for three instances together, to
// one per cent, while Redis is up. When a request is refused nothing was left,
// so what had been admitted by then is known as closely as the moment.
func TestScaleSharedRate(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	const rps, burst = 100, 200
	lasts := size(4*time.Second, 30*time.Second)
	for attempt := 1; ; attempt++ {
		key := g.key("--rps", fmt.Sprint(rps), "--burst", fmt.Sprint(burst))
		g.limited(key)
		time.Sleep(time.Duration(burst) * time.Second / time.Duration(rps)) // the bucket is full again
		p := g.pour(key, lasts)
		least, most := burst+rps*p.empty.Seconds(), burst+rps*p.judged.Seconds()
		off := max(0, float64(p.admitted)-most, least-float64(p.admitted)) / most
		t.Logf("%d admitted and %d refused in %v on three instances, want %.0f to %.0f: %.2f %% off; %.0f judged without Redis", p.admitted, p.refused, p.judged, least, most, 100*off, p.alone)
		if (p.alone > 0 || most-least > 0.01*most) && attempt < 5 {
			continue // this machine was too busy for Redis to answer in time, or to say when
		}
		if allowed := 0.01 + p.alone/most; off > allowed || p.refused == 0 {
			t.Errorf("%.2f %% off, want at most %.2f", 100*off, 100*allowed)
		}
		return
	}
}

// poured is what became of many requests.
type poured struct {
	admitted, refused int64
	// judged is when the last answer had come, empty when the last request that
	// was refused had not been sent yet, both from the first on.
	judged, empty time.Duration
	alone         float64 // judged by an instance without Redis
}

// atLeast raises a time.
func atLeast(t *atomic.Int64, now time.Duration) {
	for was := t.Load(); was < int64(now) && !t.CompareAndSwap(was, int64(now)); was = t.Load() {
	}
}

// pour makes as many requests as it can for a while, on all instances, at
// three times the rate and more.
func (g *group) pour(key string, lasts time.Duration) poured {
	g.Helper()
	before := g.alone()
	var yes, no, judged, empty atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	defer client.CloseIdleConnections()
	began := time.Now()
	var all sync.WaitGroup
	for worker := range 12 {
		all.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for time.Since(began) < lasts {
				r, err := http.NewRequest(http.MethodGet, g.gates[worker%3].URL+"/gw/me", nil)
				if err != nil {
					g.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+key)
				sent := time.Since(began)
				resp, err := client.Do(r)
				if err != nil {
					g.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body) // the connection is wanted again
				resp.Body.Close()
				atLeast(&judged, time.Since(began))
				switch resp.StatusCode {
				case http.StatusOK:
					yes.Add(1)
				case http.StatusTooManyRequests:
					no.Add(1)
					atLeast(&empty, sent)
				default:
					g.Errorf("status %d", resp.StatusCode)
				}
				<-tick.C
			}
		})
	}
	all.Wait()
	return poured{yes.Load(), no.Load(), time.Duration(judged.Load()), time.Duration(empty.Load()), g.alone() - before}
}

// alone is how many requests the instances judged without Redis.
func (g *group) alone() (n float64) {
	for _, gate := range g.gates {
		n += (&world{Gateway: gate, t: g.T}).metrics()["modelgate_limiter_fallbacks_total"]
	}
	return n
}

// TestScaleSharedConcurrency: so many calls at once on three instances
// together, and not one more. The provider keeps those it has until all are
// judged.
func TestScaleSharedConcurrency(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	const places = 30
	for attempt := 1; ; attempt++ {
		before := g.alone()
		admitted, refused := g.crowd(places, 3*places)
		alone := g.alone() - before
		t.Logf("%d of %d calls at once were admitted on three instances, %d refused, %d places; %.0f judged without Redis", admitted, 3*places, refused, places, alone)
		if alone > 0 && attempt < 5 {
			continue // this machine was too busy for Redis to answer in time
		}
		if admitted < places || float64(admitted) > places+alone || admitted+refused != 3*places {
			t.Errorf("%d admitted and %d refused, want %d and %d", admitted, refused, places, 2*places)
		}
		return
	}
}

// crowd makes so many calls at once with a key that has places for fewer.
func (g *group) crowd(places, wanted int) (admitted, refused int64) {
	g.Helper()
	key := g.key("--rps", "0", "--concurrency", fmt.Sprint(places))
	g.limited(key)
	var yes, no, under atomic.Int64
	judged := make(chan struct{}, wanted) // a token for each
	release := make(chan struct{})
	fn := func() {
		under.Add(1)
		judged <- struct{}{}
		<-release
	}
	g.upstream.arrived.Store(&fn)
	defer g.upstream.arrived.Store(nil)
	const body = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	var all sync.WaitGroup
	for i := range wanted {
		all.Go(func() {
			r, err := http.NewRequest(http.MethodPost, g.gates[i%3].URL+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				g.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+key)
			r.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				g.Error(err)
				return
			}
			defer resp.Body.Close()
			var e struct{ Error struct{ Type string } }
			switch err := json.NewDecoder(resp.Body).Decode(&e); {
			case resp.StatusCode == http.StatusOK:
				yes.Add(1)
			case resp.StatusCode == http.StatusTooManyRequests && e.Error.Type == string(modelgate.RateLimited):
				no.Add(1)
				judged <- struct{}{}
			default:
				g.Errorf("%d %v %v", resp.StatusCode, e, err)
			}
		})
	}
	late := time.After(patience)
	for range wanted {
		select {
		case <-judged:
			continue
		case <-late:
			g.Errorf("only %d at the provider and %d refused after %v", under.Load(), no.Load(), patience)
		}
		break
	}
	close(release)
	all.Wait()
	return yes.Load(), no.Load()
}
