package selfservice_test

import (
	"encoding/csv"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
)

// focusDay is the day that tests of FOCUS files book in.
func focusDay() time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2) }

// focusRows are calls of two days, at prices that are rounded.
func (g *gate) focusRows(client modelgate.ClientID, n int, subs ...modelgate.SubAccountID) []modelgate.UsageRow {
	g.Helper()
	p := new(modelgate.Price)
	for u, usd := range map[modelgate.Unit]modelgate.Nano{modelgate.UnitInput: 250_000_001, modelgate.UnitOutput: 1_999_999_999, modelgate.UnitSearch: 10_000_000_003} {
		if err := p.Base.Set(u, usd); err != nil {
			g.Fatal(err)
		}
	}
	p.Multipliers = []modelgate.Multiplier{{Field: "service_tier", Value: "flex", Millionths: 333_333}}
	p.Prepare()
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]modelgate.UsageRow, n)
	for i := range rows {
		at := focusDay().Add(time.Duration(random.Int64N(int64(48 * time.Hour))))
		b := modelgate.CallBegin{ID: modelgate.NewIDs(func() time.Time { return at }).New(), ClientID: client, KeyID: "k", SubAccountID: subs[i%len(subs)],
			Provider: "azure-eu", Model: "deployment-7", Slug: "openai/gpt-5-mini", Author: "openai", Kind: modelgate.LLM, Region: "eu-west", Door: "/v1/messages",
			Attribution: map[string]string{"team": fmt.Sprint("t", i%3)}}
		b.At = b.ID.Time()
		e := modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, Usage: modelgate.Usage{Input: random.Int64N(5000), Output: random.Int64N(900),
			Searches: random.Int64N(3), ServiceTier: []string{"", "flex"}[i%2]}}
		e.Cost, _, e.PriceLabel = pricing.Cost(p, &e.Usage, b.At)
		rows[i] = modelgate.Row(b, e)
	}
	return rows
}

// focusSums are the sums of a file by an account's column, and its lines.
func focusSums(t *testing.T, file, column string) (map[string]modelgate.Nano, [][]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := make(map[string]int)
	for i, name := range all[0] {
		at[name] = i
	}
	sums := make(map[string]*big.Rat)
	for _, line := range all[1:] {
		cost, ok := new(big.Rat).SetString(line[at["BilledCost"]])
		if !ok {
			t.Fatalf("%q is no number", line[at["BilledCost"]])
		}
		account := line[at[column]]
		if sums[account] == nil {
			sums[account] = new(big.Rat)
		}
		sums[account].Add(sums[account], cost)
	}
	out := make(map[string]modelgate.Nano)
	for account, sum := range sums {
		if out[account], err = modelgate.ParseUSD(sum.FloatString(9)); err != nil { // ties do not occur here
			t.Fatal(err)
		}
	}
	return out, all
}

// TestFocusSumsAreThoseOfTheRows books calls and compares a file with them, in
// both views and by hours and days.
func TestFocusSumsAreThoseOfTheRows(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		one, two := g.subAccount(client, "one"), g.subAccount(client, "two")
		markup := modelgate.Markup(12_345_678)
		if err := g.db.PatchSubAccount(g.Context(), client, two, modelgate.SubAccountPatch{Markup: &markup}, g.operator("x")); err != nil {
			g.Fatal(err)
		}
		rows := g.focusRows(client, 600, "", one, two)
		g.book(rows...)
		g.book(g.focusRows(g.client(unchanged), 3, "")...)
		want := make(map[string]modelgate.Nano)
		for _, r := range rows {
			want[string(r.SubAccountID)] += r.Cost
		}
		key, window := g.rootKey(client), "?from="+focusDay().Format(time.DateOnly)+"&to="+focusDay().AddDate(0, 0, 2).Format(time.DateOnly)
		compare := func(file, column string, want map[string]modelgate.Nano) {
			g.Helper()
			got, _ := focusSums(g.T, file, column)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				g.Errorf("the file has %v, the rows %v", got, want)
			}
		}
		for _, more := range []string{"", "&granularity=hour", "&tags=team"} {
			answer := g.do(key, "GET /gw/focus"+window+more, "").want(200, "")
			compare(answer.body, "SubAccountId", want)
			if final, err := time.Parse(time.RFC3339, answer.header.Get("X-Gateway-Final-Through")); err != nil || time.Since(final) > time.Hour {
				g.Errorf("final through %v, %v", final, err)
			}
		}
		compare(g.do(key, "GET /gw/focus"+window+"&sub_account_id="+string(two), "").want(200, "").body, "SubAccountId", map[string]modelgate.Nano{string(two): want[string(two)]})
		billed := map[string]modelgate.Nano{string(one): want[string(one)], string(two): want[string(two)].Billed(markup)}
		compare(g.do(key, "GET /gw/focus"+window+"&view=billed&tags=team", "").want(200, "").body, "BillingAccountId", billed)

		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = two })
		own := g.do(bound, "GET /gw/focus"+window, "").want(200, "").body
		compare(own, "BillingAccountId", map[string]modelgate.Nano{string(two): billed[string(two)]})
		for _, hidden := range []string{"azure-eu", "deployment-7", "eu-west", "flex"} {
			if strings.Contains(own, hidden) {
				g.Errorf("an end customer is shown %q", hidden)
			}
		}
		g.do(bound, "GET /gw/focus"+window+"&view=cost", "").refused(403, "forbidden", "")
		g.do(bound, "GET /gw/focus"+window+"&sub_account_id="+string(one), "").refused(403, "forbidden", "")
		g.do(key, "GET /gw/focus"+window+"&sub_account_id=nobody", "").refused(404, "not_found", "")
	})
}

func TestFocusRefusals(t *testing.T) {
	t.Parallel()
	g := setup(t, "sqlite")
	client := g.client(unchanged)
	key := g.rootKey(client)
	for query, message := range map[string]string{
		"":                               "from and to are required",
		"?from=2026-11-01":               "from and to are required",
		"?from=2026-11-01&to=2026-10-01": "to must be after from",
		"?from=2026-11-01&to=2027-11-01": "at most 92 days by day, 31 by hour",
		"?from=2026-11-01&to=2026-12-20&granularity=hour":       "at most 92 days by day, 31 by hour",
		"?from=2026-11-01&to=2026-12-01&format=xlsx":            `unknown format "xlsx"; use csv`,
		"?from=2026-11-01&to=2026-12-01&tags=a,b,c,d,e,f,g,h,i": "at most 8 tags",
	} {
		g.do(key, "GET /gw/focus"+query, "").refused(400, "bad_request", message)
	}
	g.do(key, "GET /gw/focus?from=2026-11-01&to=2026-12-01&views=x", "").refused(400, "bad_request", "")
	g.do(g.key(client, func(k *modelgate.Key) { k.Scopes = []modelgate.Scope{modelgate.InferenceUse} }), "GET /gw/focus", "").refused(403, "forbidden", "")
}

// TestFocusTagWithTooManyValues is refused before anything is sent, and so is
// what was pruned.
func TestFocusTagWithTooManyValues(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		rows := g.focusRows(client, 1001, "")
		for i := range rows {
			rows[i].Attribution["call"] = fmt.Sprint(i)
		}
		g.book(rows...)
		key, window := g.rootKey(client), "?from="+focusDay().Format(time.DateOnly)+"&to="+focusDay().AddDate(0, 0, 2).Format(time.DateOnly)
		g.do(key, "GET /gw/focus"+window+"&tags=call", "").refused(400, "bad_request", `tag "call" has more than 1000 values in this window`)
		g.do(key, "GET /gw/focus"+window+"&tags=team", "").want(200, "")
		for more := true; more; {
			var err error
			if _, more, err = g.db.Prune(g.Context(), client, focusDay().AddDate(0, 0, 1), 10_000); err != nil {
				g.Fatal(err)
			}
		}
		g.do(key, "GET /gw/focus"+window, "").refused(400, "bad_request", "usage before "+focusDay().AddDate(0, 0, 1).Format(time.DateOnly)+" is pruned")
	})
}

// TestOneFocusExportAtATime refuses a second file while a client takes the first.
func TestOneFocusExportAtATime(t *testing.T) {
	t.Parallel()
	g := setup(t, "sqlite")
	client := g.client(unchanged)
	key, other := g.rootKey(client), g.rootKey(g.client(unchanged))
	target := "/gw/focus?from=2026-11-01&to=2026-11-02"
	first := &slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequestWithContext(g.Context(), http.MethodGet, target, nil)
		r.Header.Set("Authorization", "Bearer "+key)
		g.handler.ServeHTTP(first, r)
	}()
	<-first.begun
	g.do(key, "GET "+target, "").refused(429, "rate_limited", "one export at a time")
	g.do(other, "GET "+target, "").want(200, "")
	close(first.goOn)
	<-done
	g.do(key, "GET "+target, "").want(200, "")
}
