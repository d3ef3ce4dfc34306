package selfservice_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"modelgate"
)

// TestSeries shows an organization all its calls at what they cost, and an end
// customer its own as they are billed.
func TestSeries(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		sub := g.subAccount(client, "acme")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":50}`).want(204, "")
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		noon := time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour) // yesterday's, however long the test takes
		age := time.Since(noon)
		g.book(
			g.row(client, age, asIs),
			g.row(client, age, func(r *modelgate.UsageRow) {
				r.SubAccountID, r.CallBegin.Provider, r.StatusCode, r.LatencyMS = sub, "zeta", 502, 4000
			}),
			g.row(g.client(unchanged), age, asIs),
		)
		at := noon.Truncate(24 * time.Hour).Format(time.RFC3339)
		span := func(requests, tokens int, cost string, mean, p50, p95 int, counts string) string {
			return fmt.Sprintf(`[{"at":%q,"requests":%d,"errors":1,"total_tokens":%d,"total_cost_usd":%s,"latency_ms":{"mean":%d,"p50":%d,"p95":%d,"counts":%s}}]`,
				at, requests, tokens, cost, mean, p50, p95, counts)
		}
		g.do(root, "GET /gw/series", "").want(200, span(2, 30, "0.003", 2021, 40, 4307, `{"40":1,"4307":1}`))
		g.do(bound, "GET /gw/series?since=7d&interval=day", "").want(200, span(1, 15, "0.00225", 4000, 4307, 4307, `{"4307":1}`))
		grouped := func(requests, tokens int, cost, groups string) string {
			return fmt.Sprintf(`[{"at":%q,"requests":%d,"total_tokens":%d,"total_cost_usd":%s,"groups":%s}]`, at, requests, tokens, cost, groups)
		}
		without := func(text string) string { // what is not about groups
			return regexp.MustCompile(`"errors":1,|"latency_ms":\{[^}]*\}\},`).ReplaceAllString(text, "")
		}
		two := `[{"key":"azure-eu","requests":1,"total_tokens":15,"total_cost_usd":0.0015},{"key":"zeta","requests":1,"total_tokens":15,"total_cost_usd":0.0015}]`
		if got, want := without(g.do(root, "GET /gw/series?group_by=provider&top_by=requests", "").body), grouped(2, 30, "0.003", two); got != want {
			t.Errorf("providers: %s, want %s", got, want)
		}
		if got, want := without(g.do(bound, "GET /gw/series?group_by=region", "").body), grouped(1, 15, "0.00225", `[{"key":"unknown","requests":1,"total_tokens":15,"total_cost_usd":0.00225}]`); got != want {
			t.Errorf("a customer's regions: %s, want %s", got, want)
		}
		for _, bad := range []string{"since=", "since=0s", "interval=", "interval=week", "since=63d&interval=hour",
			"group_by=", "group_by=day", "group_by=no%20key", "group_by=model&top_by=", "top_by=errors"} {
			g.do(root, "GET /gw/series?"+bad, "").refused(400, "bad_request", "")
		}
	})
}

// TestPrices shows what models cost, and an end customer what it is billed.
func TestPrices(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		sub := g.subAccount(client, "acme")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":50}`).want(204, "")
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		price := new(modelgate.Price)
		for unit, usd := range map[modelgate.Unit]string{modelgate.UnitInput: "0.25", modelgate.UnitSearch: "2", modelgate.UnitImage: "0.04"} {
			amount, err := modelgate.ParseUSD(usd)
			if err == nil {
				err = price.Base.Set(unit, amount)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		price.Tiers = []modelgate.TierPrice{{Above: 1000, Rates: price.Base}}
		soon := time.Date(2999, 1, 2, 0, 0, 0, 0, time.UTC)
		later := &modelgate.Price{Base: price.Base}
		later.Base.SetPerMillion(modelgate.UnitInput, 500_000_000)
		price.Dated = []modelgate.DatedPrice{{From: soon, Until: soon.AddDate(0, 0, 1), Price: later}}
		model := &modelgate.Model{Slug: "a/m", Kind: modelgate.LLM, Routes: []modelgate.Route{{Provider: "p", Model: "n"}}, Price: price}
		free := &modelgate.Model{Slug: "b/n", Kind: modelgate.LLM, Routes: []modelgate.Route{{Provider: "p", Model: "o"}}}
		catalog, err := modelgate.NewCatalog([]*modelgate.Model{model, free}, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.catalog = catalog
		list := func(input, image, search, soon string) string {
			return `[{"slug":"a/m","prices":[{"unit":"input","per":1000000,"usd":` + input + `},{"unit":"image","per":1,"usd":` + image +
				`},{"unit":"search","per":1000,"usd":` + search + `}],"varies":true,"upcoming":[{"from":"2999-01-02T00:00:00Z","unit":"input","per":1000000,"usd":` + soon +
				`},{"from":"2999-01-03T00:00:00Z","unit":"input","per":1000000,"usd":` + input + `}],"door":""},{"slug":"b/n","prices":[],"varies":false,"upcoming":[],"door":""}]`
		}
		g.do(root, "GET /gw/prices", "").want(200, list("0.25", "0.04", "2", "0.5"))
		g.do(bound, "GET /gw/prices", "").want(200, list("0.375", "0.06", "3", "0.75"))
	})
}
