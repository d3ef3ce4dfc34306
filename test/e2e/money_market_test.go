package e2e

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// market is an organization with two sub-accounts and eight keys, and a budget
// of each, on instances that share one PostgreSQL.
type market struct {
	*testing.T
	source   string // of the database
	db       *sql.DB
	upstream *upstream
	gateways []*testkit.Gateway
	targets  []*target
	http     *http.Client
	client   modelgate.ClientID
	manager  string
	subs     []string
	keys     []marketKey
	callers  int    // at once
	refusal  string // how the answer of a 402 begins

	marks  atomic.Int64
	mu     sync.Mutex
	made   []*attempt
	booked []bookedSum
}

// bookedSum is what all calls together have settled at a time.
type bookedSum struct {
	at  time.Time
	sum int64
}

type marketKey struct {
	secret, id string
	sub        int
}

// attempt is one call. Tokens cost 1,000 nano-USD in and 10,000 out.
type attempt struct {
	mark, key   int
	limit       int64 // max_tokens
	output      int64 // what the provider makes of it
	begun, over time.Time
	status      int // 0: no answer
	answer      string
	said        string        // further directives
	leaves      time.Duration // the caller goes after this long; 0: it stays
	pairs       string        // further attribution, after a comma
}

const (
	inputRate, outputRate = 1_000, 10_000
	marketContext         = 1_000
)

const marketCatalog = `
  - {slug: acme/small, kind: llm, context_length: 1000, max_output: 1000, routes: [{provider: openai, model: small}], price: {input: 1, output: 10}}`

// estimate is at most what a budget that estimates reserves for it, once the
// answers of late were as long as it may be.
func (a *attempt) estimate() int64 { return int64(len(a.body())+2)/3*inputRate + a.limit*outputRate }

func (a *attempt) body() string {
	return fmt.Sprintf(`{"model":"acme/small","max_tokens":%d,"messages":[{"role":"user","content":"[[mark=%d]] [[words=1]] [[output=%d]] [[delay=20ms]]%s"}]}`, a.limit, a.mark, a.output, a.said)
}

// newMarket starts the instances; way, unless nil, leads the i-th one to the
// database.
func newMarket(t *testing.T, instances int, mode string, way func(i int, database string) string) *market {
	t.Helper()
	m := &market{T: t, source: testkit.Postgres(t), upstream: newUpstream(t), callers: 256, refusal: `{"error":{"type":"budget_exceeded","message":"budget limit reached"`}
	m.http = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	t.Cleanup(m.http.CloseIdleConnections)
	var err error
	if m.db, err = sql.Open("pgx", m.source); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.db.Close() })
	for i := range instances {
		database := m.source
		if way != nil {
			database = way(i, database)
		}
		g := testkit.StartGateway(t, testkit.GatewayOptions{
			Database: database, Upstream: m.upstream.URL, Catalog: marketCatalog, More: "enforcement: {budgets: " + mode + "}\n",
		})
		m.gateways, m.targets = append(m.gateways, g), append(m.targets, newTarget())
		m.targets[i].set(g.URL)
	}
	m.client = m.gateways[0].NewClient("market")
	m.manager, _ = m.gateways[0].NewKey(m.client)
	for i := range 2 {
		m.subs = append(m.subs, member(m.manage("POST", "/gw/subaccounts", fmt.Sprintf(`{"name":"s","slug":"s%d"}`, i)), "id"))
	}
	for i := range 8 {
		issued := m.manage("POST", "/gw/keys", fmt.Sprintf(`{"scopes":["inference:use"],"sub_account_id":%q}`, m.subs[i%2]))
		m.keys = append(m.keys, marketKey{member(issued, "key"), member(issued, "api_key_id"), i % 2})
	}
	return m
}

// member is a string in a JSON object.
func member(object, name string) string {
	_, rest, _ := strings.Cut(object, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// manage calls the management API of the last instance, which no test kills,
// and returns its answer, which must be good.
func (m *market) manage(method, path, body string) string {
	m.Helper()
	r, err := http.NewRequestWithContext(m.Context(), method, m.gateways[len(m.gateways)-1].URL+path, strings.NewReader(body))
	if err != nil {
		m.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+m.manager)
	resp, err := m.http.Do(r)
	if err != nil {
		m.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		m.Fatalf("%s %s %s: %d %s, %v", method, path, body, resp.StatusCode, text, err)
	}
	return string(text)
}

// budgets sets limits in nano-USD for the client, each sub-account and each
// key; 0 sets none.
func (m *market) budgets(client, sub, key int64) {
	m.Helper()
	put := func(scope, id string, limit int64) {
		if limit == 0 {
			return
		}
		if id != "" {
			id = fmt.Sprintf(`"id":%q,`, id)
		}
		m.manage("PUT", "/gw/budgets", fmt.Sprintf(`{"scope":%q,%s"period":"month","limit_usd":%s}`, scope, id, modelgate.Nano(limit)))
	}
	put("client", "", client)
	for _, id := range m.subs {
		put("sub_account", id, sub)
	}
	for _, k := range m.keys {
		put("key", k.id, key)
	}
}

// call makes an attempt on an instance.
func (m *market) call(instance int, a *attempt) {
	address, _ := m.targets[instance].get()
	a.begun = time.Now()
	defer func() {
		a.over = time.Now()
		m.mu.Lock()
		m.made = append(m.made, a)
		m.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(m.Context(), cmp.Or(a.leaves, patience))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(a.body()))
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+m.keys[a.key].secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Gateway-Attribution", "n="+strconv.Itoa(a.mark)+a.pairs)
	resp, err := m.http.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	a.status, a.answer = resp.StatusCode, strings.TrimSpace(string(text))
	if a.status == http.StatusPaymentRequired && !strings.HasPrefix(a.answer, m.refusal) {
		m.Errorf("402 with %s", text)
	}
}

// trade keeps all callers busy until enough says so. draw fills a new attempt
// in.
func (m *market) trade(draw func(*rand.Rand, *attempt), enough func() bool) {
	var callers sync.WaitGroup
	for i := range m.callers {
		random := rand.New(rand.NewPCG(uint64(i), uint64(m.marks.Load())))
		callers.Go(func() {
			for !enough() && m.Context().Err() == nil {
				a := &attempt{mark: int(m.marks.Add(1)), key: random.IntN(len(m.keys))}
				draw(random, a)
				m.call((i+a.mark)%len(m.gateways), a)
				if a.status != http.StatusOK {
					time.Sleep(10 * time.Millisecond) // a refused caller tries again, not at once
				}
			}
		})
	}
	callers.Wait()
}

// position is what the database says of a budget.
type position struct {
	scope, id            string
	settled, held, limit int64
}

// positions reads all budgets in one statement.
func (m *market) positions() []position {
	rows, err := m.db.QueryContext(m.Context(), `SELECT b.scope, b.scope_id, s.settled, s.held, b.amount FROM budget b JOIN spend s
		ON s.client_id = b.client_id AND s.scope = b.scope AND s.scope_id = b.scope_id AND s.period = b.period`)
	if err != nil {
		if m.Context().Err() == nil { // else the test has ended
			m.Error(err)
		}
		return nil
	}
	defer rows.Close()
	var all []position
	for rows.Next() {
		var p position
		if err := rows.Scan(&p.scope, &p.id, &p.settled, &p.held, &p.limit); err != nil {
			m.Error(err)
		}
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		m.Error(err)
	}
	return all
}

// settled is what the client has spent.
func (m *market) settled() int64 {
	for _, p := range m.positions() {
		if p.scope == "client" {
			return p.settled
		}
	}
	return 0
}

// filled is the least share of its limit that a budget of the scope has
// settled.
func (m *market) filled(scope string) float64 {
	least, found := 2.0, false
	for _, p := range m.positions() {
		if p.scope == scope {
			least, found = min(least, float64(p.settled)/float64(p.limit)), true
		}
	}
	if !found {
		return 0
	}
	return least
}

// watch samples the budgets every few milliseconds and hands every sample to
// see, until what it returns is called, which says how many there were.
func (m *market) watch(see func(time.Time, []position)) func() int {
	stop, sampled := make(chan struct{}), make(chan int, 1)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				sampled <- n
				return
			case <-m.Context().Done():
				sampled <- n
				return
			case <-tick.C:
				see(time.Now(), m.positions())
			}
		}
	}()
	return func() int {
		close(stop)
		return <-sampled
	}
}

// bills are the costs of what the provider served, by mark, as its ledger has
// them.
func (m *market) bills() map[int]int64 {
	costs := map[int]int64{}
	for _, s := range m.upstream.ledger.All() {
		mark, err := strconv.Atoi(s.Marker)
		if err != nil {
			continue // the gateway died while it sent the request
		}
		costs[mark] += s.InputTokens*inputRate + s.OutputTokens*outputRate
	}
	return costs
}

// nothingHeld waits until the idle instances have given everything back.
func (m *market) nothingHeld(within time.Duration) time.Duration {
	m.Helper()
	began := time.Now()
	for range time.Tick(50 * time.Millisecond) {
		var held, slices int64
		err := m.db.QueryRowContext(m.Context(), `SELECT COALESCE(SUM(held), 0), (SELECT COUNT(*) FROM slice) FROM spend`).Scan(&held, &slices)
		if err != nil {
			m.Fatal(err)
		}
		if held == 0 && slices == 0 {
			break
		}
		if time.Since(began) > within {
			m.Errorf("after %v %d nano-USD in %d leases are held and nothing is under way", within, held, slices)
			break
		}
	}
	return time.Since(began)
}

// close ends the instances and reconciles.
func (m *market) close() {
	m.Helper()
	for _, g := range m.gateways {
		g.Stop()
	}
	m.upstream.close()
	if stdout, stderr, code := m.gateways[0].Run("reconcile", "--config", m.gateways[0].ConfigFile); code != 0 {
		m.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
	}
	for _, g := range m.gateways {
		if m.Failed() {
			m.Logf("a gateway's log ends with\n%s", tail(g.Log(), 2000))
		}
	}
}

// report writes figures, a name and a value in turn.
func (m *market) report(title string, figures ...any) {
	w := m.Output()
	fmt.Fprintf(w, "\n%s\n", title)
	for i := 0; i+1 < len(figures); i += 2 {
		fmt.Fprintf(w, "  %-44s %12v\n", figures[i], figures[i+1])
	}
}

// tally counts the attempts by their outcome.
func (m *market) tally() (all, passed, refused, failed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.made {
		switch a.status {
		case http.StatusOK:
			passed++
		case http.StatusPaymentRequired:
			refused++
		default:
			failed++
		}
	}
	return len(m.made), passed, refused, failed
}
