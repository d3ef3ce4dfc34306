package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// migrations is how many a database has had.
func migrations(t *testing.T, source string) (n int) {
	t.Helper()
	db, err := sql.Open("pgx", source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT COUNT(*) FROM schema_version").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestScaleVersions replaces three instances of the version before by this
// one, one after the other, under load on one PostgreSQL: no call fails and
// none is lost. The last of the old ones leaves what it could not book in its
// spool, and its successor reads it.
func TestScaleVersions(t *testing.T) {
	t.Parallel()
	before := testkit.PreviousBinary(t)
	g := newGroupOf(t, before)
	rate := size(80.0, 400)
	key := g.key("--rps", "20000", "--burst", "20000", "--concurrency", "5000")
	g.limited(key)
	g.budget(key)
	old := migrations(t, g.source)
	l := &load{target: newTarget(), key: key, callers: size(24, 64), rate: rate, mix: mix{slow: 0.1}, reached: make(chan int64)}
	l.target.set(g.balancer.URL)
	g.balanced()
	made := make(chan []*call, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { made <- l.run(ctx) }()
	lasts := func(d time.Duration) { l.until(t.Context(), l.done.Load()+int64(d.Seconds()*rate)) }
	pause := size(time.Second, 10*time.Second)
	lasts(pause)
	for i := range 2 {
		g.gates[i].Upgrade(testkit.Binary(t))
		g.roll(i)
		lasts(2 * pause) // both versions side by side
	}
	if now := migrations(t, g.source); now == old {
		t.Logf("no migration since the version before: only the programs differ")
	}
	stop()
	calls := <-made
	free, _ := g.gates[0].NewKey(g.gates[0].NewClient("without budgets"))
	g.limited(free)
	g.database.Stop(t)
	last := &load{target: newTarget(), key: free, callers: 8, calls: size(40, 400), first: len(calls)}
	last.target.set(g.gates[2].URL)
	calls = append(calls, last.run(t.Context())...)
	g.end(2)
	g.database.Start(t)
	g.gates[2].Upgrade(testkit.Binary(t))
	g.gates[2].Start()
	g.settle(fmt.Sprintf("instances of the version before and of this one at %.0f calls/s", rate), calls)
}

// pair is an instance of the version before and one of this one, on one
// PostgreSQL.
type pair struct {
	*testing.T
	gates []*testkit.Gateway
}

func (p *pair) send(gate int, key, target, body string) (status int, answer []byte) {
	p.Helper()
	method, path, _ := strings.Cut(target, " ")
	r, err := http.NewRequestWithContext(p.Context(), method, p.gates[gate].URL+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		p.Fatal(err)
	}
	return resp.StatusCode, answer
}

// want sends a request, expects success and decodes the answer.
func (p *pair) want(gate int, key, target, body string, answer any) {
	p.Helper()
	status, text := p.send(gate, key, target, body)
	if status/100 != 2 {
		p.Fatalf("gate %d: %s = %d %s", gate, target, status, text)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(text, answer); err != nil {
		p.Fatalf("gate %d: %s: %v in %s", gate, target, err, text)
	}
}

// soon waits until a condition holds on what another instance has done.
func (p *pair) soon(what string, holds func() bool) {
	p.Helper()
	for began := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			p.Fatal(what)
		}
	}
}

// TestScaleVersionsTogether has two versions work on the same keys, budgets
// and jobs.
func TestScaleVersionsTogether(t *testing.T) {
	t.Parallel()
	before := testkit.PreviousBinary(t)
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream"})
	options := testkit.GatewayOptions{Binary: before, Database: testkit.Postgres(t), Upstream: upstream.URL, More: "enforcement: {budgets: estimate}\n"}
	p := &pair{T: t, gates: []*testkit.Gateway{testkit.StartGateway(t, options)}}
	manager, _ := p.gates[0].NewKey(p.gates[0].NewClient("versions"))
	p.want(0, manager, "POST /v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`, nil)
	options.Binary = ""
	p.gates = append(p.gates, testkit.StartGateway(t, options))
	t.Run("keys", func(t *testing.T) { (&pair{t, p.gates}).keys(manager) })
	t.Run("jobs", func(t *testing.T) { (&pair{t, p.gates}).jobs(manager) })
	t.Run("budgets", func(t *testing.T) { (&pair{t, p.gates}).budgets(manager) })
	p.gates[0].Stop()
	p.gates[1].Stop()
	if stdout, stderr, code := p.gates[1].Run("reconcile", "--config", p.gates[1].ConfigFile); code != 0 {
		t.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
	}
}

// keys: what one version issues and revokes, the other knows.
func (p *pair) keys(manager string) {
	for _, issuer := range []int{0, 1} {
		var issued struct {
			ID  string `json:"api_key_id"`
			Key string `json:"key"`
		}
		p.want(issuer, manager, "POST /gw/keys", `{"scopes":["inference:use"]}`, &issued)
		for gate := range p.gates {
			p.want(gate, issued.Key, "POST /v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`, nil)
			if status, answer := p.send(gate, issued.Key, "GET /gw/keys", ""); status != http.StatusForbidden {
				p.Errorf("gate %d lets the key do what it may not: %d %s", gate, status, answer)
			}
		}
		p.want(1-issuer, manager, "DELETE /gw/keys/"+issued.ID, "", nil)
		for gate := range p.gates {
			p.soon("a revoked key is still let in", func() bool {
				status, _ := p.send(gate, issued.Key, "GET /gw/me", "")
				return status == http.StatusUnauthorized
			})
		}
	}
}

// jobs: one version makes a job, the other sees its end; and both follow
// those that nobody asks for.
func (p *pair) jobs(manager string) {
	type job struct{ ID, Status string }
	const creation = `{"model":"openai/sora-2","prompt":"a kite [[polls=1]]","seconds":"4"}`
	for _, maker := range []int{0, 1} {
		var made, seen, unasked job
		p.want(maker, manager, "POST /v1/videos", creation, &made)
		p.want(maker, manager, "POST /v1/videos", creation, &unasked)
		p.soon("a job does not end", func() bool {
			p.want(1-maker, manager, "GET /v1/videos/"+made.ID, "", &seen)
			return seen.Status == "completed"
		})
	}
	p.soon("the jobs that nobody asked for do not end", func() bool {
		var ended struct {
			Data []struct {
				Cost float64 `json:"final_cost_usd"`
			}
		}
		p.want(0, manager, "GET /gw/async?status=succeeded", "", &ended)
		for _, j := range ended.Data {
			if j.Cost != 0.4 {
				p.Errorf("a job costs %v, want 0.4", j.Cost)
			}
		}
		return len(ended.Data) == 4
	})
}

// budgets: both versions spend one budget, and no more than it by more than
// the call of each that crosses it.
func (p *pair) budgets(manager string) {
	var issued struct {
		ID  string `json:"api_key_id"`
		Key string `json:"key"`
	}
	p.want(0, manager, "POST /gw/keys", `{"scopes":["inference:use"]}`, &issued)
	const limit, each = 0.02, 0.00020025 // a word in, 100 tokens out
	p.want(0, manager, "PUT /gw/budgets", fmt.Sprintf(`{"scope":"key","id":%q,"period":"month","limit_usd":%v}`, issued.ID, limit), nil)
	p.soon("the other version does not know the budget", func() bool {
		var budgets []struct{ Scope string }
		p.want(1, manager, "GET /gw/budgets", "", &budgets)
		return len(budgets) == 1
	})
	const call = `{"model":"openai/gpt-5-mini","max_completion_tokens":100,"messages":[{"role":"user","content":"[[output=100]] go"}]}`
	admitted := make([]int, len(p.gates))
	for gate := range p.gates { // one that is slow to begin finds something left
		p.want(gate, issued.Key, "POST /v1/chat/completions", call, nil)
		admitted[gate]++
	}
	var all sync.WaitGroup
	for gate := range p.gates {
		all.Go(func() {
			for refused := 0; refused < 3; {
				status, answer := p.send(gate, issued.Key, "POST /v1/chat/completions", call)
				switch status {
				case http.StatusOK:
					admitted[gate]++
				case http.StatusPaymentRequired:
					refused++
					time.Sleep(300 * time.Millisecond) // a refusal stands for a quarter of a second
				default:
					p.Errorf("gate %d: %d %s", gate, status, answer)
					return
				}
			}
		})
	}
	all.Wait()
	spent := float64(admitted[0]+admitted[1]) * each
	p.Logf("%d calls of the version before and %d of this one: %.6f USD of %v", admitted[0], admitted[1], spent, limit)
	if spent < 0.8*limit || spent > limit+2*each || admitted[0] == 0 || admitted[1] == 0 {
		p.Errorf("%v admitted, %.6f USD of a limit of %v", admitted, spent, limit)
	}
}
