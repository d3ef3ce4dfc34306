package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"modelgate"
	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// fleet is three instances on one PostgreSQL, each with a valve of its own.
type fleet struct {
	*testing.T
	database  string
	instances []*testkit.Gateway
	valves    []*valve
	http      *http.Client
	client    modelgate.ClientID
	manager   string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, database: testkit.Postgres(t)}
	f.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 10_000}}
	t.Cleanup(f.http.CloseIdleConnections)
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream"})
	for range 3 {
		v, url := newValve(t, f.database)
		f.valves = append(f.valves, v)
		f.instances = append(f.instances, testkit.StartGateway(t, testkit.GatewayOptions{Database: url, Upstream: upstream.URL}))
	}
	f.client = f.instances[0].NewClient("fleet")
	f.manager, _ = f.instances[0].NewKey(f.client)
	return f
}

// send makes a request of an instance and returns the status and the body.
func (f *fleet) send(instance int, key, target, body string) (int, string) {
	method, path, _ := strings.Cut(target, " ")
	r, err := http.NewRequestWithContext(f.Context(), method, f.instances[instance].URL+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := f.http.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// status is that of a call which any valid key may make.
func (f *fleet) status(instance int, key string) int {
	status, _ := f.send(instance, key, "GET /gw/me", "")
	return status
}

// want sends a request and checks the status.
func (f *fleet) want(status, instance int, key, target, body string) {
	f.Helper()
	if got, text := f.send(instance, key, target, body); got != status {
		f.Errorf("instance %d: %s = %d %s, want %d", instance, target, got, text, status)
	}
}

// soon waits until a request has a status, which is what the others are told
// of within about a second.
func (f *fleet) soon(status, instance int, key, target, body string) {
	f.Helper()
	const within = 20 * time.Second
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		got, text := f.send(instance, key, target, body)
		if got == status {
			return
		}
		if time.Since(began) > within {
			f.Errorf("instance %d: %s = %d %s after %v, want %d", instance, target, got, text, within, status)
			return
		}
	}
}

// keys issues keys that every instance has met.
func (f *fleet) keys(n int) (secrets []string, ids []modelgate.KeyID) {
	f.Helper()
	for range n {
		status, text := f.send(0, f.manager, "POST /gw/keys", `{"scopes":["inference:use"]}`)
		var secret, id string
		if _, err := fmt.Sscanf(strings.NewReplacer(`"`, " ", ",", " ", ":", " ").Replace(text), "{ api_key_id   %s   key   %s", &id, &secret); err != nil || status != http.StatusOK {
			f.Fatalf("issue: %d %s (%v)", status, text, err)
		}
		secrets, ids = append(secrets, secret), append(ids, modelgate.KeyID(id))
		for i := range f.instances {
			f.want(200, i, secret, "GET /gw/me", "")
		}
	}
	return secrets, ids
}

// quantile is a figure of sorted durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// revoke revokes keys on the first instance and returns how long each of them
// worked on the others.
func (f *fleet) revoke(n int, every, limit time.Duration) []time.Duration {
	f.Helper()
	secrets, ids := f.keys(n)
	var mu sync.Mutex
	var worked []time.Duration
	var all sync.WaitGroup
	for i, id := range ids {
		for _, instance := range []int{1, 2} { // in use: revocations before this one have made it stale
			f.want(200, instance, secrets[i], "GET /gw/me", "")
		}
		f.want(204, 0, f.manager, "DELETE /gw/keys/"+string(id), "")
		revoked := time.Now()
		f.want(401, 0, secrets[i], "GET /gw/me", "") // on the handling instance at once
		for _, instance := range []int{1, 2} {
			all.Go(func() {
				status := 200
				for ; status == 200 && time.Since(revoked) < limit+5*time.Second; time.Sleep(every) {
					status = f.status(instance, secrets[i])
				}
				mu.Lock()
				defer mu.Unlock()
				worked = append(worked, time.Since(revoked))
				if status != 401 {
					f.Errorf("a revoked key ends with %d, want 401", status)
				}
			})
		}
		time.Sleep(97 * time.Millisecond) // spread over the second between two reads of the version
	}
	all.Wait()
	slices.Sort(worked)
	return worked
}

// TestAccessRevocation: what one instance revokes, the others refuse within
// two seconds.
func TestAccessRevocation(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	worked := f.revoke(size(10, 100), 10*time.Millisecond, 30*time.Second)
	p50, p99, longest := quantile(worked, 0.5), quantile(worked, 0.99), worked[len(worked)-1]
	t.Logf("%d revocations on one of three instances; on the others a key worked for p50 %v, p99 %v, at most %v", len(worked)/2, p50, p99, longest)
	if p99 > 2*time.Second {
		t.Errorf("p99 is %v, want at most 2 s", p99)
	}
}

// TestAccessWithoutTheFeed: where no instance learns of a new control
// version, age alone ends a revoked key within 30 seconds.
func TestAccessWithoutTheFeed(t *testing.T) {
	t.Parallel()
	if !*full {
		t.Skip("takes half a minute: make prove-access. The same rule is tested with a clock of its own in internal/auth")
	}
	f := newFleet(t)
	conn, err := pgx.Connect(t.Context(), f.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range []string{
		"CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
		"CREATE TRIGGER stay BEFORE UPDATE ON control FOR EACH ROW EXECUTE FUNCTION stay()",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	worked := f.revoke(100, 100*time.Millisecond, 30*time.Second)
	longest := worked[len(worked)-1]
	late := len(worked) - slices.IndexFunc(append(worked, time.Hour), func(d time.Duration) bool { return d > 5*time.Second })
	t.Logf("%d revocations without a version feed: a key worked for p50 %v, p99 %v, at most %v; %d of %d for over 5 s",
		len(worked)/2, quantile(worked, 0.5), quantile(worked, 0.99), longest, late, len(worked))
	if longest > 30*time.Second {
		t.Errorf("a key worked for %v, want at most 30 s", longest)
	}
	if late == 0 {
		t.Error("no key worked for over 5 s: the feed was not blocked")
	}
}

// TestAccessDatabaseAway: an instance that cannot reach the database serves
// the keys it knows for a minute at least, and a key revoked meanwhile for 90
// seconds at most. After that it says that it cannot tell, not that a key is
// bad.
func TestAccessDatabaseAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	secrets, ids := f.keys(10)
	dark := time.Now()
	f.valves[1].darken()
	defer f.valves[1].light()
	for _, id := range ids[5:] {
		f.want(204, 0, f.manager, "DELETE /gw/keys/"+string(id), "")
	}
	revoked := time.Now()
	var mu sync.Mutex
	var refusedFirst, revokedLast time.Duration
	counts := map[int]int{}
	var all sync.WaitGroup
	for i, secret := range secrets {
		good := i < 5
		all.Go(func() {
			for time.Since(revoked) < size(5*time.Second, 100*time.Second) {
				began := time.Since(dark)
				status := f.status(1, secret)
				mu.Lock()
				counts[status]++
				switch {
				case status == 401 || status != 200 && status != 503:
					f.Errorf("%d after %v without a database, want 200 or 503", status, began)
				case status == 503 && good && (refusedFirst == 0 || began < refusedFirst):
					refusedFirst = began
				case status == 200 && !good:
					revokedLast = max(revokedLast, time.Since(revoked))
				}
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	t.Logf("without a database: first 503 of a valid key after %v, last 200 of a revoked key after %v; answers by status %v", refusedFirst, revokedLast, counts)
	if refusedFirst != 0 && refusedFirst < time.Minute {
		t.Errorf("a valid key was refused after %v, want a minute at least", refusedFirst)
	}
	if revokedLast > 90*time.Second || *full && refusedFirst == 0 {
		t.Errorf("a revoked key worked for %v, want at most 90 s and 503 then", revokedLast)
	}
	f.valves[1].light()
	for i, secret := range secrets {
		f.soon(map[bool]int{true: 200, false: 401}[i < 5], 1, secret, "GET /gw/me", "")
	}
}

// TestAccessFirstCalls: thousands of first calls of one key at once cost an
// instance one look-up, and thousands of invented keys cost a bounded number.
func TestAccessFirstCalls(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	secret, _ := f.instances[0].NewKey(f.client)
	n := size(500, 5000)
	for instance, v := range f.valves {
		f.want(401, instance, modelgate.NewSecret().Reveal(), "GET /gw/me", "") // the statement is prepared
		before := v.lookups.Load()
		var wrong atomic.Int64
		start := make(chan struct{})
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				<-start
				if f.status(instance, secret) != 200 {
					wrong.Add(1)
				}
			})
		}
		close(start)
		all.Wait()
		looked := v.lookups.Load() - before
		t.Logf("instance %d: %d first calls of a key at once, %d look-ups, %d not answered with 200", instance, n, looked, wrong.Load())
		if looked != 1 || wrong.Load() > 0 {
			t.Errorf("instance %d: %d look-ups and %d wrong answers, want 1 and 0", instance, looked, wrong.Load())
		}
	}
	f.flood(0, size(3000, 50_000))
}

// flood presents invented keys and holds their look-ups to the bounds.
func (f *fleet) flood(instance, n int) {
	f.Helper()
	before, began := f.valves[instance].lookups.Load(), time.Now()
	var sent, wrong atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for sent.Add(1) <= int64(n) {
				if f.status(instance, modelgate.NewSecret().Reveal()) != 401 {
					wrong.Add(1)
				}
			}
		})
	}
	all.Wait()
	took, looked := time.Since(began), f.valves[instance].lookups.Load()-before
	most := 50 + 8 + 17 + int64(120*took.Seconds())
	f.Logf("%d invented keys in %v from one address: %d look-ups, %d not answered with 401", n, took, looked, wrong.Load())
	if looked > most || wrong.Load() > 0 {
		f.Errorf("%d look-ups and %d other answers, want at most %d and 0", looked, wrong.Load(), most)
	}
}

// TestAccessFlood: invented keys do not slow the calls of good ones.
func TestAccessFlood(t *testing.T) {
	if !*full {
		t.Skip("measures a machine that does nothing else: make prove-access. How many look-ups a flood costs is tested at every size")
	}
	f := newFleet(t)
	secrets, _ := f.keys(20)
	for _, rate := range []int{200, 1000} {
		var calm, flooded []time.Duration
		sent := 0
		for range 10 { // turn about, so that whatever else the machine does falls on both
			calm = append(calm, f.latencies(secrets, 2*time.Second)...)
			stop := f.pour(rate)
			flooded = append(flooded, f.latencies(secrets, 2*time.Second)...)
			sent += stop()
		}
		slices.Sort(calm)
		slices.Sort(flooded)
		a, b := quantile(calm, 0.99), quantile(flooded, 0.99)
		t.Logf("flood of %d invented keys in 20 s: p50 %v, p99 %v; calm: p50 %v, p99 %v; %.2f times the p99",
			sent, quantile(flooded, 0.5), b, quantile(calm, 0.5), a, float64(b)/float64(a))
		if b > 2*a {
			t.Errorf("p99 of good calls is %v in a flood of %d/s and %v without, want at most twice", b, rate, a)
		}
	}
}

// pour presents invented keys at a rate until it is stopped, which tells how
// many there were.
func (f *fleet) pour(rate int) (stop func() int) {
	const workers = 50
	done := make(chan struct{})
	var flooding sync.WaitGroup
	var sent atomic.Int64
	for range workers {
		flooding.Go(func() {
			tick := time.NewTicker(workers * time.Second / time.Duration(rate))
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
					f.status(0, modelgate.NewSecret().Reveal())
					sent.Add(1)
				}
			}
		})
	}
	return func() int {
		close(done)
		flooding.Wait()
		return int(sent.Load())
	}
}

// latencies are those of good calls, a steady 200 a second.
func (f *fleet) latencies(secrets []string, during time.Duration) []time.Duration {
	f.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for _, secret := range secrets {
		all.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for end := time.Now().Add(during); time.Now().Before(end); <-tick.C {
				began := time.Now()
				if status := f.status(0, secret); status != 200 {
					f.Errorf("a good call = %d", status)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return took
}

// TestAccessFlips suspends and resumes a sub-account on one instance while
// its key is in use on all: what follows a change on the handling instance
// sees it, nothing but 200 and 401 is ever answered, and in the end all agree.
func TestAccessFlips(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	_, text := f.send(0, f.manager, "POST /gw/subaccounts", `{"name":"Flips","slug":"flips"}`)
	subAccount := strings.Split(text, `"`)[3]
	bound, _ := f.instances[0].NewKey(f.client, "--sub-account", subAccount)
	const call = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	stop := make(chan struct{})
	var load sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for worker := range 6 {
		load.Go(func() {
			for instance := worker % 3; ; {
				select {
				case <-stop:
					return
				default:
				}
				target, body := "GET /gw/me", ""
				if worker >= 3 {
					target, body = "POST /v1/chat/completions", call
				}
				status, text := f.send(instance, bound, target, body)
				mu.Lock()
				counts[status]++
				if status != 200 && status != 401 {
					f.Errorf("instance %d: %s = %d %s under flips", instance, target, status, text)
				}
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	flips := size(60, 1000)
	for i := range flips {
		state, status := "suspended", 401
		if i%2 == 1 {
			state, status = "active", 200
		}
		f.want(204, 0, f.manager, "PATCH /gw/subaccounts/"+subAccount, `{"status":"`+state+`"}`)
		f.want(status, 0, bound, "GET /gw/me", "")
	}
	for _, instance := range []int{0, 1, 2} {
		f.soon(200, instance, bound, "GET /gw/me", "")
	}
	f.want(204, 0, f.manager, "PATCH /gw/subaccounts/"+subAccount, `{"status":"suspended"}`)
	for _, instance := range []int{0, 1, 2} {
		f.soon(401, instance, bound, "GET /gw/me", "")
	}
	close(stop)
	load.Wait()
	t.Logf("%d flips under load: answers by status %v", flips+1, counts)
	if counts[200] == 0 || counts[401] == 0 {
		t.Error("the load did not see both states")
	}
}

// TestAccessOperatorChanges: what an operator's command changes, every
// running instance follows.
func TestAccessOperatorChanges(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	limited, limitedID := f.instances[0].NewKey(f.client)
	const call = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	for i := range f.instances {
		f.want(200, i, limited, "GET /gw/me", "")
		f.want(200, i, f.manager, "POST /v1/chat/completions", call)
	}
	operator := f.instances[0]
	operator.Admin(nil, "client", "set", string(f.client), "--routing-policy", "eu_only", "--max-keys", "2")
	operator.Admin(nil, "key", "limits", string(limitedID), "--rps", "1", "--burst", "1")
	for i := range f.instances {
		f.soon(403, i, f.manager, "POST /v1/chat/completions", call)
		f.soon(403, i, f.manager, "POST /gw/keys", `{"scopes":[]}`)
		f.soon(429, i, limited, "GET /gw/me", "")
	}
	ceiling := filepath.Join(t.TempDir(), "ceiling.json")
	if err := os.WriteFile(ceiling, []byte(`{"max_scopes":["keys:manage"],"entitlements":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	operator.Admin(nil, "ceiling", "set", "--client", string(f.client), "--file", ceiling)
	for i := range f.instances {
		f.until(i, f.manager, "GET /gw/ceiling", `{"max_scopes":["keys:manage"],"entitlements":[]}`)
		f.want(200, i, f.manager, "GET /gw/usage", "") // what a key was issued with stays
	}
}

// until waits for an answer.
func (f *fleet) until(instance int, key, target, want string) {
	f.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, text := f.send(instance, key, target, "")
		if strings.TrimSpace(text) == want {
			return
		}
		if time.Since(began) > 5*time.Second {
			f.Errorf("instance %d: %s = %s after 5 s, want %s", instance, target, text, want)
			return
		}
	}
}
