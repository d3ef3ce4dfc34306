package e2e

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// tokenLife is how long tokens live. Instances replace them a quarter of it, and
// up to a tenth of that, before their end.
const tokenLife = 6 * time.Second

// estate is a provider in a cloud that takes live tokens of a token service, and
// instances of the gateway before it on one database. The first segment of a path
// tells which instance calls. A second provider takes a key.
type estate struct {
	*testing.T
	service *cloud.TokenService
	gates   []*testkit.Gateway
	key     string
	http    *http.Client
	db      *sql.DB

	mu      sync.Mutex
	used    []map[string]bool // tokens, by instance
	expired int
}

func newEstate(t *testing.T, instances int) *estate {
	t.Helper()
	e := &estate{T: t, service: cloud.NewTokenService(t), used: make([]map[string]bool, instances)}
	e.service.Live(tokenLife)
	e.http = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 10_000}}
	t.Cleanup(e.http.CloseIdleConnections)
	provider := httptest.NewServer(e)
	t.Cleanup(provider.Close)
	file := filepath.Join(t.TempDir(), "gcp.json")
	if err := os.WriteFile(file, e.service.ServiceAccount(), 0o600); err != nil {
		t.Fatal(err)
	}
	database := testkit.Postgres(t)
	var err error
	if e.db, err = sql.Open("pgx", database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.db.Close() })
	for i := range instances {
		e.used[i] = map[string]bool{}
		e.gates = append(e.gates, testkit.StartGateway(t, testkit.GatewayOptions{
			Database: database, More: "enforcement: {budgets: strict}\n",
			Providers: fmt.Sprintf("\n  - {name: own, format: openai, base_url: \"%s/%d\", region: us, identity: {google: {credentials_file: %q}}}", provider.URL, i, file) +
				fmt.Sprintf("\n  - {name: keyed, format: openai, base_url: \"%s/keyed\", region: us, credential: sk-keyed}", provider.URL),
			Catalog: `
  - {slug: lab/own, kind: llm, context_length: 1000, max_output: 10, routes: [{provider: own, model: m}], price: {input: 1, output: 1}}
  - {slug: lab/keyed, kind: llm, context_length: 1000, max_output: 10, routes: [{provider: keyed, model: m}], price: {input: 1, output: 1}}`,
		}))
	}
	client := e.gates[0].NewClient("estate")
	e.key, _ = e.gates[0].NewKey(client)
	if status, text := e.send(0, "PUT", "/gw/budgets", `{"scope":"client","period":"month","limit_usd":1000}`); status != http.StatusNoContent {
		t.Fatalf("budget: %d %s", status, text)
	}
	return e
}

// ServeHTTP is the provider.
func (e *estate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !strings.HasPrefix(r.URL.Path, "/keyed/") {
		valid := e.service.Valid(token)
		e.mu.Lock()
		e.used[int(r.URL.Path[1]-'0')][token] = true
		if !valid {
			e.expired++
		}
		e.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`)
}

// send makes a request of an instance.
func (e *estate) send(instance int, method, path, body string) (int, string) {
	r, err := http.NewRequestWithContext(e.Context(), method, e.gates[instance].URL+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+e.key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := e.http.Do(r)
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

// call asks a model through an instance.
func (e *estate) call(instance int, slug string) (int, string) {
	return e.send(instance, "POST", "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, slug))
}

// steady has some callers of each instance ask every 20 ms until the time is up, and
// returns how many calls that were. All must be answered.
func (e *estate) steady(slug string, callers int, over <-chan struct{}) (calls int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range callers * len(e.gates) {
		all.Go(func() {
			for tick := time.NewTicker(20 * time.Millisecond); ; {
				select {
				case <-over:
					tick.Stop()
					return
				case <-tick.C:
				}
				status, text := e.call(i%len(e.gates), slug)
				if status != http.StatusOK {
					e.Errorf("%s: %d %s", slug, status, text)
				}
				mu.Lock()
				calls++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return calls
}

// fetches are what an instance says of its fetches.
func (e *estate) fetches(instance int) (ok, failed float64) {
	w := &world{Gateway: e.gates[instance], t: e.T}
	figures := w.metrics()
	return figures[`modelgate_credential_refreshes_total{outcome="ok",provider="own"}`], figures[`modelgate_credential_refreshes_total{outcome="failed",provider="own"}`]
}

// TestCloudTokens lets instances call steadily with tokens that live for seconds,
// while every third fetch of one fails. No call is refused, none goes out with a
// token that has expired, and each instance fetches its own.
func TestCloudTokens(t *testing.T) {
	t.Parallel()
	long := size(14*time.Second, 10*time.Minute)
	e := newEstate(t, 3)
	e.service.Break(func(n int) cloud.Fault {
		if n%3 == 0 {
			return cloud.Error
		}
		return cloud.None
	})
	over := make(chan struct{})
	time.AfterFunc(long, func() { close(over) })
	calls := e.steady("lab/own", 3, over)
	var ok, failed float64
	seen := map[string]int{}
	for i, used := range e.used {
		fetched, missed := e.fetches(i)
		ok, failed = ok+fetched, failed+missed
		if least := int(long/tokenLife) - 1; len(used) < least || float64(len(used)) > fetched {
			t.Errorf("instance %d used %d tokens of %.0f that it fetched, want %d at least", i, len(used), fetched, least)
		}
		for token := range used {
			if seen[token]++; seen[token] > 1 {
				t.Error("two instances used the same token")
			}
		}
	}
	if e.expired > 0 || failed == 0 {
		t.Errorf("%d calls went out with an expired token; %.0f fetches failed", e.expired, failed)
	}
	if asked := float64(len(e.service.Ledger())); asked < ok+failed || asked > ok+failed+float64(len(e.gates)) {
		t.Errorf("the token service was asked %.0f times, the instances count %.0f", asked, ok+failed)
	}
	fmt.Fprintf(t.Output(), "\ntokens that live %v, %d instances, %v, every third fetch fails\n  calls %d, all answered; with an expired token %d; fetches %.0f, failed %.0f\n",
		tokenLife, len(e.gates), long, calls, e.expired, ok+failed, failed)
}

// TestCloudTokensAway has the token service hang and then fail under many calls at
// once, again and again: each call gets 500 within five seconds, has no row and
// holds nothing, one fetch at a time is under way in each instance, and calls to
// another provider go on. Once the service is back the next call goes through.
func TestCloudTokensAway(t *testing.T) {
	t.Parallel()
	cycles, calls := size(2, 50), size(600, 10_000)
	const slack = 3 * time.Second // for a machine that is busy with so many calls
	e := newEstate(t, 2)
	over, others := make(chan struct{}), make(chan int)
	go func() { others <- e.steady("lab/keyed", 2, over) }()
	var slowest, back time.Duration
	mostFetches := 0.0
	for cycle := range cycles {
		fault := []cloud.Fault{cloud.Hang, cloud.Error}[cycle%2]
		e.service.Break(func(int) cloud.Fault { return fault })
		time.Sleep(tokenLife) // until no token that was fetched before is alive
		before := e.rows("lab/own")
		fetched := e.asked()
		began := time.Now()
		took := make([]time.Duration, calls)
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() {
				begun := time.Now()
				status, text := e.call(i%len(e.gates), "lab/own")
				took[i] = time.Since(begun)
				if status != http.StatusInternalServerError || !strings.Contains(text, "credential resolution failed") {
					t.Errorf("a call without a credential: %d %s", status, text)
				}
			})
		}
		all.Wait()
		slowest = max(slowest, slices.Max(took))
		// One fetch begins in a second at most, in each instance.
		fetches := (e.asked() - fetched) / float64(len(e.gates))
		mostFetches = max(mostFetches, fetches)
		if most := time.Since(began).Seconds() + 2; fetches > most {
			t.Errorf("%s: %.1f fetches of each instance in %v", fault, fetches, time.Since(began))
		}
		if n := e.rows("lab/own"); n != before {
			t.Errorf("%s: %d rows of calls without a credential", fault, n-before)
		}
		e.service.Break(func(int) cloud.Fault { return cloud.None })
		if fault == cloud.Hang {
			time.Sleep(5 * time.Second) // the fetch that hangs ends
		}
		for i := range e.gates {
			begun := time.Now()
			if status, text := e.call(i, "lab/own"); status != http.StatusOK {
				t.Errorf("instance %d, the service being back: %d %s", i, status, text)
			}
			back = max(back, time.Since(begun))
		}
	}
	close(over)
	went := <-others
	if slowest > 5*time.Second+slack || back > 2*time.Second+slack {
		t.Errorf("a refusal took %v, want five seconds; the first call after it %v, want two", slowest, back)
	}
	if e.expired > 0 || went == 0 {
		t.Errorf("%d calls went out with an expired token; %d calls to another provider", e.expired, went)
	}
	var held int64
	w := &world{t: t, Gateway: e.gates[0]}
	w.eventually("nothing is held", 30*time.Second, func() bool {
		return e.db.QueryRowContext(t.Context(), `SELECT COALESCE(SUM(held), 0) + (SELECT COUNT(*) FROM slice) FROM spend`).Scan(&held) == nil && held == 0
	})
	fmt.Fprintf(t.Output(), "\na token service that hangs and then fails, %d times, under %d calls at once to 2 instances\n  slowest refusal %v, first call afterwards %v, most fetches of an instance at a time of it %.1f; calls to another provider meanwhile %d, all answered\n",
		cycles, calls, slowest.Round(time.Millisecond), back.Round(time.Millisecond), mostFetches, went)
}

// asked is how often the token service was asked.
func (e *estate) asked() float64 { return float64(len(e.service.Ledger())) }

// rows are the usage rows of a model.
func (e *estate) rows(slug string) (n int) {
	e.Helper()
	provider := strings.TrimPrefix(slug, "lab/")
	if err := e.db.QueryRowContext(e.Context(), `SELECT COUNT(*) FROM usage_row WHERE provider = $1`, provider).Scan(&n); err != nil {
		e.Fatal(err)
	}
	return n
}
