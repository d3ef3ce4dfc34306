package gateway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/budget"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
	"modelgate/internal/store/spend"
)

var newUsers = flag.Int("new-users", 3, "new end users of TestFirstCallsOfANewEndUser; the full size is 1000")

// till is an organization with budgets in a real database.
type till struct {
	*testing.T
	db      *store.DB
	caller  *modelgate.Caller
	budgets *budget.Enforcer
}

// money are the limits of a till in nano-USD; 0 sets none.
type money struct {
	mode             budget.Mode
	balance          modelgate.Nano // below 0: a manual client without any
	client, sub, key modelgate.Nano
}

func newTill(t *testing.T, m money) *till {
	t.Helper()
	ctx := t.Context()
	db, err := store.Open(ctx, store.Options{URL: "sqlite:test.db", DataDir: t.TempDir()})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	t.Cleanup(func() { _ = db.Close() })
	ids := modelgate.NewIDs(time.Now)
	record := func() modelgate.Audit {
		return modelgate.Audit{ID: ids.New().String(), Action: "test", Actor: modelgate.Actor{Operator: "test"}}
	}
	c := modelgate.Client{ID: modelgate.ClientID(ids.New().String()), Name: "c", RoutingPolicy: modelgate.RouteAny, Billing: modelgate.Invoiced,
		MaxKeys: 10, Ceiling: modelgate.OpenCeiling(), CreatedAt: time.Now()}
	if m.balance != 0 {
		c.Billing = modelgate.Manual
	}
	must(db.CreateClient(ctx, c, record()))
	s := modelgate.SubAccount{ID: modelgate.SubAccountID(ids.New().String()), ClientID: c.ID, Name: "s", Slug: "s", Status: modelgate.SubAccountActive, CreatedAt: time.Now()}
	must(db.CreateSubAccount(ctx, s, record()))
	secret := modelgate.NewSecret()
	key, err := db.IssueKey(ctx, c.ID, access.IssueRequest{SubAccountID: s.ID, Admit: func(modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
		return modelgate.Key{ID: modelgate.KeyID(ids.New().String()), Prefix: secret.Prefix(), Scopes: modelgate.AllScopes(),
			Entitlements: modelgate.OpenEntitlements(), CreatedAt: time.Now()}, secret.Digest(), nil
	}}, record())
	must(err)
	if m.balance > 0 {
		must(db.Credit(ctx, c.ID, spend.BalanceEntry{ID: ids.New().String(), At: time.Now(), Amount: m.balance}, record()))
	}
	for _, b := range []modelgate.Budget{
		{Level: modelgate.LevelClient, ID: string(c.ID), Limit: m.client}, {Level: modelgate.LevelSubAccount, ID: string(s.ID), Limit: m.sub}, {Level: modelgate.LevelKey, ID: string(key.ID), Limit: m.key},
	} {
		if b.Period = modelgate.Month; b.Limit > 0 {
			must(db.PutBudget(ctx, c.ID, "", b, record()))
		}
	}
	caller, err := db.Caller(ctx, secret.Digest(), nil)
	must(err)
	x := &till{T: t, db: db, caller: &caller}
	if m.mode != "" {
		x.budgets = budget.New(budget.Options{Store: db, Instance: "i", Mode: m.mode, Unreachable: store.Unreachable, Now: time.Now, Log: slog.New(slog.DiscardHandler), Flushed: func(context.Context) error { return nil }})
		must(x.budgets.Start(ctx))
	}
	return x
}

// held is what is reserved of the key's budget.
func (x *till) held() modelgate.Nano {
	x.Helper()
	list, err := x.db.Budgets(context.WithoutCancel(x.Context()), x.caller.ClientID, spend.BudgetList{})
	if err != nil {
		x.Error(err)
	}
	for _, b := range list {
		if b.Level == modelgate.LevelKey {
			return b.Held
		}
	}
	return 0
}

// open starts a gate for the till's caller.
func (x *till) open(upstream string, p plan) *gate {
	x.Helper()
	p.who, p.options.Budgets = x.caller, x.budgets
	return open(x, upstream, p)
}

const rich = 1000 * modelgate.USD

// figures is the member of a refusal that says which limit it was.
var figures = regexp.MustCompile(`,"limit":\{[^}]*\}`)

func TestMoneyRefuses(t *testing.T) {
	t.Parallel()
	const (
		balance  = `{"error":{"type":"insufficient_balance","message":"account balance exhausted; top up to continue"}}`
		limit    = `{"error":{"type":"budget_exceeded","message":"budget limit reached"}}`
		detailed = `{"error":{"type":"budget_exceeded","message":"budget limit reached","detail":`
		limits   = detailed + `"strict budgets need the model's context_length and max_output in the catalog"}}`
		tools    = detailed + `"the member \"tools\" lets the provider run tools of its own, whose cost has no bound; leave it out, or use budgets that are not strict"}}`
		servers  = detailed + `"the member \"mcp_servers\" lets the provider run tools of its own, whose cost has no bound; leave it out, or use budgets that are not strict"}}`
		answers  = detailed + `"the number of answers that the request asks for has no bound"}}`
		unpriced = `{"error":{"type":"forbidden","message":"model has no price; a budget applies"}}`
		door     = "/v1/chat/completions"
		proxy    = "/openai/v1/chat/completions"
		tiny     = modelgate.Nano(1)
	)
	chat := func(model string) string { return `{"model":"` + model + `","max_tokens":5,"messages":[]}` }
	deny := modelgate.Entitlements{{Axis: modelgate.AxisProvider, Provider: "anthropic", ModelPattern: "*", Effect: modelgate.Allow}}
	strict := money{mode: budget.Strict, client: rich, sub: rich, key: rich}
	for name, tt := range map[string]struct {
		money      money
		allowed    modelgate.Entitlements
		path, body string
		status     int
		want       string
	}{
		"enough":                        {money{mode: budget.Estimate, balance: rich, client: rich, sub: rich, key: rich}, nil, door, chat("acme/chat"), 200, ""},
		"no balance":                    {money{mode: budget.Estimate, balance: -1}, nil, door, chat("acme/chat"), 402, balance},
		"balance before budgets":        {money{mode: budget.Strict, balance: -1, client: tiny, sub: tiny, key: tiny}, nil, door, chat("acme/bounded"), 402, balance},
		"client":                        {money{mode: budget.Strict, balance: rich, client: tiny, sub: rich, key: rich}, nil, door, chat("acme/bounded"), 402, limit},
		"sub-account":                   {money{mode: budget.Strict, client: rich, sub: tiny, key: rich}, nil, door, chat("acme/bounded"), 402, limit},
		"key":                           {money{mode: budget.Strict, client: rich, sub: rich, key: tiny}, nil, door, chat("acme/bounded"), 402, limit},
		"key, on the proxy":             {money{mode: budget.Strict, key: tiny}, nil, proxy, chat("gpt-b"), 402, limit},
		"the crossing call completes":   {money{mode: budget.Estimate, balance: tiny, client: tiny, sub: tiny, key: tiny}, nil, door, chat("acme/chat"), 200, ""},
		"nothing is enforced":           {money{balance: -1, client: tiny}, nil, door, chat("acme/unpriced"), 200, ""},
		"no price":                      {money{mode: budget.Estimate, key: rich}, nil, door, chat("acme/unpriced"), 403, unpriced},
		"no price, balance":             {money{mode: budget.Estimate, balance: rich}, nil, door, chat("acme/unpriced"), 403, unpriced},
		"no price, no budget":           {money{mode: budget.Estimate}, nil, door, chat("acme/unpriced"), 200, ""},
		"no price, proxy":               {money{mode: budget.Estimate, key: rich}, nil, proxy, chat("gpt-other"), 403, unpriced},
		"no price, no money":            {money{mode: budget.Estimate, balance: -1, key: tiny}, nil, door, chat("acme/unpriced"), 403, unpriced},
		"model before money":            {money{mode: budget.Estimate, balance: -1}, deny, door, chat("acme/chat"), 403, ""},
		"slug before money":             {money{mode: budget.Estimate, balance: -1}, nil, door, chat("acme/none"), 404, ""},
		"money before a missing route":  {money{mode: budget.Estimate, balance: -1}, nil, door, chat("acme/nowhere"), 402, balance},
		"missing route":                 {money{mode: budget.Estimate, balance: rich, key: rich}, nil, door, chat("acme/nowhere"), 502, ""},
		"a list costs nothing":          {money{mode: budget.Strict, balance: -1, key: tiny}, nil, "/openai/v1/models", "", 200, ""},
		"a count costs nothing":         {money{mode: budget.Strict, balance: -1, key: tiny}, nil, "/v1/messages/count_tokens", chat("acme/claude"), 200, ""},
		"strict, bounded":               {strict, nil, door, chat("acme/bounded"), 200, ""},
		"strict, no context length":     {strict, nil, door, chat("acme/chat"), 402, limits},
		"strict, tools of the provider": {strict, nil, door, `{"model":"acme/bounded","tools":[{"type":"web_search"}],"messages":[]}`, 402, tools},
		"strict, tools of the client":   {strict, nil, door, `{"model":"acme/bounded","tools":[{"type":"function","function":{"name":"f"}}],"messages":[]}`, 200, ""},
		"strict, servers of tools":      {strict, nil, door, `{"model":"acme/bounded","mcp_servers":[{"url":"https://a"}],"messages":[]}`, 402, servers},
		"strict, more than there is":    {strict, nil, door, `{"model":"acme/bounded","n":9223372036854775807,"messages":[]}`, 402, answers},
		"estimate, more than there is":  {money{mode: budget.Estimate, key: rich}, nil, door, `{"model":"acme/bounded","n":9223372036854775807,"messages":[]}`, 200, ""},
		"estimate, tools":               {money{mode: budget.Estimate, key: rich}, nil, door, `{"model":"acme/chat","tools":[{"type":"web_search"}],"messages":[]}`, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := rawUpstream(t, sends(sized("application/json", chatReply)))
			x := newTill(t, tt.money)
			g := x.open(u.URL, plan{caller: tt.allowed})
			resp, body, _ := g.do(t, tt.path, tt.body)
			if got := figures.ReplaceAllString(strings.TrimSpace(string(body)), ""); resp.StatusCode != tt.status || tt.want != "" && got != tt.want {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, got, tt.status, tt.want)
			}
			begins, _ := g.books.counts()
			if called := tt.status == 200; called != (u.hits.Load() == 1) || called != (begins == 1) {
				t.Errorf("%d calls and %d BEGIN", u.hits.Load(), begins)
			}
			if resp.StatusCode == 402 && (resp.Header.Get("x-should-retry") != "false" || resp.Header.Get("Retry-After") != "") {
				t.Errorf("headers of a refusal: %v", resp.Header)
			}
		})
	}
}

// acme/bounded costs 1,000 a token in and 2,000 a token out, 1,000 and 400 at
// most; acme/dear has a second route at ten times the price.
func TestMoneyReserved(t *testing.T) {
	t.Parallel()
	text := func(body string) modelgate.Nano { return modelgate.Nano(len(body)+2) / 3 * 1000 }
	const long = `{"model":"acme/bounded","messages":[{"role":"user","content":"long long long long long long long long"}],"max_tokens":7,"n":3}`
	for name, tt := range map[string]struct {
		mode       budget.Mode
		path, body string
		want       modelgate.Nano
	}{
		"strict, no limit":         {budget.Strict, "/v1/chat/completions", `{"model":"acme/bounded","messages":[]}`, 1_000_000 + 400*2000},
		"strict, max_tokens last":  {budget.Strict, "/v1/chat/completions", long, 3 * (1_000_000 + 7*2000)},
		"strict, too many":         {budget.Strict, "/v1/chat/completions", `{"model":"acme/bounded","max_completion_tokens":9999,"messages":[]}`, 1_000_000 + 400*2000},
		"strict, the larger":       {budget.Strict, "/v1/chat/completions", `{"model":"acme/bounded","max_tokens":1,"max_completion_tokens":9,"messages":[]}`, 1_000_000 + 9*2000},
		"strict, another's name":   {budget.Strict, "/v1/chat/completions", `{"model":"acme/bounded","max_output_tokens":9,"messages":[]}`, 1_000_000 + 400*2000},
		"strict, gemini's limit":   {budget.Strict, "/v1/chat/completions", `{"model":"acme/bounded","generationConfig":{"maxOutputTokens":1},"messages":[]}`, 1_000_000 + 400*2000},
		"strict, prompts":          {budget.Strict, "/v1/completions", `{"model":"acme/bounded","prompt":["a","b","c"],"n":2,"max_tokens":9}`, 6 * (1_000_000 + 9*2000)},
		"strict, embeddings":       {budget.Strict, "/v1/embeddings", `{"model":"acme/vector","input":["a","b","c"]}`, 3 * 1_000_000},
		"strict, proxy":            {budget.Strict, "/openai/v1/chat/completions", `{"model":"gpt-b","max_tokens":9,"messages":[]}`, 1_000_000 + 9*2000},
		"estimate":                 {budget.Estimate, "/v1/chat/completions", `{"model":"acme/bounded","max_tokens":50,"messages":[]}`, text(`{"model":"acme/bounded","max_tokens":50,"messages":[]}`) + 50*2000},
		"estimate, no limit":       {budget.Estimate, "/v1/chat/completions", `{"model":"acme/chat","messages":[]}`, text(`{"model":"acme/chat","messages":[]}`) + 1024*2000},
		"estimate, max_output":     {budget.Estimate, "/v1/chat/completions", `{"model":"acme/bounded","messages":[]}`, text(`{"model":"acme/bounded","messages":[]}`) + 400*2000},
		"estimate, n":              {budget.Estimate, "/v1/chat/completions", long, text(long) + 3*7*2000},
		"estimate, dearest route":  {budget.Estimate, "/v1/chat/completions", `{"model":"acme/dear","max_tokens":5,"messages":[]}`, 10 * (text(`{"model":"acme/dear","max_tokens":5,"messages":[]}`) + 5*2000)},
		"estimate, speech":         {budget.Estimate, "/v1/audio/speech", `{"model":"acme/voice","input":"four"}`, 60_000},
		"estimate, responses":      {budget.Estimate, "/v1/responses", `{"model":"acme/bounded","max_output_tokens":3,"input":""}`, text(`{"model":"acme/bounded","max_output_tokens":3,"input":""}`) + 3*2000},
		"estimate, messages":       {budget.Estimate, "/v1/messages", `{"model":"acme/claude","max_tokens":3,"messages":[]}`, text(`{"model":"acme/claude","max_tokens":3,"messages":[]}`) + 3*2000},
		"estimate, gemini's limit": {budget.Estimate, "/gemini/v1beta/models/gemini-x:generateContent", `{"generationConfig":{"maxOutputTokens":4,"candidateCount":2},"contents":[]}`, text(`{"generationConfig":{"maxOutputTokens":4,"candidateCount":2},"contents":[]}`) + 2*4*2000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTill(t, money{mode: tt.mode, key: 2 * tt.want}) // too little for more than one call
			held := make(chan modelgate.Nano, 2)
			u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
				held <- x.held()
				_, err := io.WriteString(conn, sized("application/json", chatReply))
				return err == nil
			})
			g := x.open(u.URL, plan{backup: u.URL})
			if resp, body, _ := g.do(t, tt.path, tt.body); resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if got := <-held; got != tt.want {
				t.Errorf("%d is reserved, want %d", got, tt.want)
			}
			if b := g.books.begins[0]; !b.Holds.Has(modelgate.LevelKey, modelgate.Month) || b.Holds.Has(modelgate.LevelClient, modelgate.Month) {
				t.Errorf("BEGIN says that it holds %b", b.Holds)
			}
		})
	}
}

// A route without a price is left out where money is counted, and what a
// model's answers were of late is what the next is taken for.
func TestMoneyRoutesAndRecentAnswers(t *testing.T) {
	t.Parallel()
	x := newTill(t, money{mode: budget.Estimate, key: rich})
	u := rawUpstream(t, sends(sized("application/json", chatReply)))
	g := x.open(u.URL, plan{backup: u.URL})
	if resp, body, _ := g.do(t, "/v1/chat/completions", `{"model":"acme/half","messages":[]}`); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if b := g.books.begins[0]; b.Provider != "backup" {
		t.Errorf("the call went to %s, which has no price", b.Provider)
	}
	typical, some := g.gateway.recent.p99Estimate(routeName{"backup", "gpt-i"})
	if typical != 5 || !some {
		t.Errorf("an answer is taken to have %d tokens, %t; want 5", typical, some)
	}
	var s sample
	for i := range 500 {
		s.add(int64(i % 100))
	}
	if s.typical != 99 {
		t.Errorf("the 99th percentile is %d, want 99", s.typical)
	}
	s.add(5000)
	if s.typical != 99 {
		t.Errorf("one outlier makes it %d, want 99", s.typical)
	}
}

// Whatever becomes of a call that cost nothing, its reservation is returned at
// once: the budget has room for one.
func TestMoneyComesBack(t *testing.T) {
	t.Parallel()
	const body = `{"model":"acme/bounded","max_tokens":1,"messages":[]}`
	for name, mishap := range map[string]func(g *gate, first func() bool){
		"BEGIN refused": func(g *gate, first func() bool) {
			g.books.onBegin = func() error {
				if first() {
					return errors.New("full")
				}
				return nil
			}
		},
		"BEGIN panics": func(g *gate, first func() bool) {
			g.books.onBegin = func() error {
				if first() {
					panic("broken")
				}
				return nil
			}
		},
		"END panics": func(g *gate, first func() bool) {
			g.books.onEnd = func() {
				if first() {
					panic("broken")
				}
			}
		},
		"the provider fails": func(*gate, func() bool) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTill(t, money{mode: budget.Strict, key: 1_000_000 + 2000})
			var answers, mishaps atomic.Int64
			u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
				answer := sized("application/json", chatReply)
				if answers.Add(1) == 1 && !strings.HasPrefix(name, "BEGIN") {
					answer = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}"
				}
				_, err := io.WriteString(conn, answer)
				return err == nil
			})
			g := x.open(u.URL, plan{})
			mishap(g, func() bool { return mishaps.Add(1) == 1 })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if resp, err := g.client.Do(g.request(ctx, "/v1/chat/completions", body)); err == nil {
				if resp.StatusCode == 200 {
					t.Errorf("the mishap did not happen")
				}
				_, _ = io.Copy(io.Discard, resp.Body) // it may be cut
				resp.Body.Close()
			}
			if resp, answer, _ := g.do(t, "/v1/chat/completions", body); resp.StatusCode != 200 {
				t.Errorf("the next call: %d %s", resp.StatusCode, answer)
			}
		})
	}
}

// A limit by the hour refuses until the next, and answers say how much of it is
// left. It estimates where budgets are strict, and needs no price unless it counts
// dollars.
func TestLimitsOnTheClock(t *testing.T) {
	t.Parallel()
	for _, mode := range []budget.Mode{budget.Strict, budget.Estimate} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`))
			}))
			t.Cleanup(upstream.Close)
			x := newTill(t, money{mode: mode})
			who := *x.caller
			who.SubAccountID = ""
			for n, u := range []modelgate.LimitUnit{modelgate.UnitRequests, modelgate.UnitTokens} {
				l := modelgate.RateLimit{Level: modelgate.LevelClient, ID: string(who.ClientID), Unit: u, Window: "hour", Limit: []int64{2, 1_000_000}[n]}
				if err := x.db.PutRateLimit(t.Context(), who.ClientID, "", l, modelgate.Audit{ID: string(l.Unit), Action: "limit.put", Actor: modelgate.Actor{Operator: "test"}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := x.db.RulesOf(t.Context(), &who, 2, 0); err != nil || len(who.Rules) != 2 {
				t.Fatalf("%d rules, %v", len(who.Rules), err)
			}
			x.caller = &who
			g := x.open(upstream.URL, plan{})
			for left := range 2 {
				resp, _ := g.chat(t, "acme/chat")
				if got := resp.Header.Get("X-Ratelimit-Remaining-Requests"); resp.StatusCode != 200 || got != strconv.Itoa(1-left) {
					t.Fatalf("status %d, %s requests are left", resp.StatusCode, got)
				}
				if got := resp.Header.Get("RateLimit-Policy"); !strings.Contains(got, `"client-requests-hour";q=2;w=3600`) || !strings.Contains(got, `"client-tokens-hour";q=1000000;w=3600;qu="tokens"`) {
					t.Error(got)
				}
				wait(t, g.books.ended, "END")
			}
			resp, answer := g.chat(t, "acme/chat")
			after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if resp.StatusCode != 429 || err != nil || after < 1 || after > 3600 || (after > 60) != (resp.Header.Get("X-Should-Retry") == "false") {
				t.Errorf("%d, Retry-After %d, %q", resp.StatusCode, after, resp.Header.Get("X-Should-Retry"))
			}
			if !strings.Contains(string(answer), `"limit":{"kind":"rate","scope":"client","unit":"requests","window":"hour","limit":2,"used":2,"remaining":0,"needed":1,"resets_at":`) {
				t.Errorf("%s", answer)
			}
			if got := resp.Header.Get("RateLimit"); !strings.Contains(got, `"client-requests-hour";r=0`) {
				t.Error(got)
			}
		})
	}
}

// The first calls of a new end user come at once, and its budget is below one of
// them: none passes, however many there are.
func TestFirstCallsOfANewEndUser(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`))
	}))
	t.Cleanup(upstream.Close)
	x := newTill(t, money{mode: budget.Strict})
	who := *x.caller
	match, err := modelgate.ParseMatch("tag:end_user=*")
	if err != nil {
		t.Fatal(err)
	}
	b := modelgate.Budget{Level: modelgate.LevelClient, ID: string(who.ClientID), Period: modelgate.Week, Match: match, Limit: 1000}
	if err := x.db.PutBudget(t.Context(), who.ClientID, "", b, modelgate.Audit{ID: "1", Action: "budget.put", Actor: modelgate.Actor{Operator: "test"}}); err != nil {
		t.Fatal(err)
	}
	if err := x.db.RulesOf(t.Context(), &who, 1, 0); err != nil || len(who.Rules) != 1 {
		t.Fatalf("%d rules, %v", len(who.Rules), err)
	}
	x.caller = &who
	g := x.open(upstream.URL, plan{})
	for user := range *newUsers {
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				r := g.request(t.Context(), "/v1/chat/completions", `{"model":"acme/bounded","max_tokens":1,"messages":[]}`)
				r.Header.Set("X-Gateway-Attribution", fmt.Sprint("end_user=u", user))
				resp, err := g.client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != 402 {
					t.Errorf("user %d: %d %s", user, resp.StatusCode, answer)
				}
			})
		}
		calls.Wait()
	}
	if n := served.Load(); n != 0 {
		t.Errorf("the provider has served %d calls", n)
	}
}
