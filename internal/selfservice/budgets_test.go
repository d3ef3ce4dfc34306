package selfservice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/auth"
)

// put sets a budget and wants it to be accepted.
func (g *gate) put(key, body string) {
	g.Helper()
	g.do(key, "PUT /gw/budgets", body).want(204, "")
}

func TestBudgets(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub := g.rootKey(client), g.subAccount(client, "shop")
		var keyID modelgate.KeyID
		g.key(client, func(k *modelgate.Key) { keyID = k.ID })
		g.do(root, "GET /gw/budgets", "").want(200, `[]`)

		g.put(root, `{"scope":"client","period":"month","limit_usd":25}`)
		g.put(root, `{"scope":"client","period":"day","limit_usd":1e0}`)
		g.put(root, fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"month","limit_usd":1000000000}`, sub))
		g.put(root, fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":0.000000001,"spend_usd":7,"tenant":[]}`, keyID))
		// What is not today's counts for the month, what is not this month's for
		// neither, and nothing for two of one kind.
		g.book(
			g.row(client, 0, func(r *modelgate.UsageRow) { r.KeyID, r.SubAccountID, r.Cost = keyID, sub, 300_000_001 }),
			g.row(client, 0, func(r *modelgate.UsageRow) { r.Cost = 5 }),
			g.row(client, 40*24*time.Hour, func(r *modelgate.UsageRow) { r.KeyID, r.SubAccountID, r.Cost = keyID, sub, 1e9 }),
			g.row(g.client(unchanged), 0, func(r *modelgate.UsageRow) { r.Cost = 1e9 }),
		)
		const all = `[{"scope":"client","period":"day","limit_usd":%s,"spend_usd":0.300000006},{"scope":"client","period":"month","limit_usd":25,"spend_usd":0.300000006},` +
			`{"scope":"key","id":"%s","period":"day","limit_usd":0.000000001,"spend_usd":0.300000001},{"scope":"sub_account","id":"%s","period":"month","limit_usd":1000000000,"spend_usd":0.300000001}]`
		g.do(root, "GET /gw/budgets", "").want(200, fmt.Sprintf(all, "1", keyID, sub))
		g.put(root, `{"scope":"client","period":"day","limit_usd":0.2}`) // less than is spent
		g.do(root, "GET /gw/budgets?client_id="+unknownID, "").want(200, fmt.Sprintf(all, "0.2", keyID, sub))

		g.do(root, "DELETE /gw/budgets?scope=client&period=day", "").want(204, "")
		g.do(root, "DELETE /gw/budgets?scope=client&period=day", "").refused(404, "not_found", "budget not found")
		g.do(root, fmt.Sprintf("DELETE /gw/budgets?scope=key&id=%s&period=month", keyID), "").refused(404, "not_found", "")
		g.do(root, fmt.Sprintf("DELETE /gw/budgets?scope=key&id=%s&period=day", keyID), "").want(204, "")
		g.put(root, `{"scope":"client","period":"day","limit_usd":2}`) // spending went on being counted
		g.do(root, "GET /gw/budgets", "").want(200, fmt.Sprintf(`[{"scope":"client","period":"day","limit_usd":2,"spend_usd":0.300000006},`+
			`{"scope":"client","period":"month","limit_usd":25,"spend_usd":0.300000006},{"scope":"sub_account","id":%q,"period":"month","limit_usd":1000000000,"spend_usd":0.300000001}]`, sub))
		if n := g.count(fmt.Sprintf("SELECT COUNT(*) FROM audit WHERE client_id = '%s' AND action IN ('budget.put', 'budget.delete')", client)); n != 8 {
			g.Errorf("%d audit records, want one for each of 8 changes", n)
		}
	})
}

func TestBudgetsRefuse(t *testing.T) {
	each(t, func(g *gate) {
		client, other := g.client(unchanged), g.client(unchanged)
		root, foreign := g.rootKey(client), g.subAccount(other, "theirs")
		const scope, period, limit = "scope must be client, sub_account or key", "period must be month or day", "limit_usd must be more than 0 and at most 1000000000"
		for body, message := range map[string]string{
			`{"period":"day","limit_usd":1}`:                                                scope,
			`{"scope":"Client","period":"day","limit_usd":1}`:                               scope,
			`{"scope":"total","period":"day","limit_usd":1}`:                                scope,
			`{"scope":"client","limit_usd":1}`:                                              period,
			`{"scope":"client","period":"total","limit_usd":1}`:                             period,
			`{"scope":"client","period":"week","limit_usd":1}`:                              period,
			`{"scope":"client","period":"day"}`:                                             limit,
			`{"scope":"client","period":"day","limit_usd":0}`:                               limit,
			`{"scope":"client","period":"day","limit_usd":-0.5}`:                            limit,
			`{"scope":"client","period":"day","limit_usd":1000000000.000000001}`:            limit,
			`{"scope":"client","period":"day","limit_usd":1,"id":"` + string(client) + `"}`: "id must be left out for scope client",
			`{"scope":"key","period":"day","limit_usd":1}`:                                  "id is required for scope key",
			`{"scope":"sub_account","id":null,"period":"day","limit_usd":1}`:                "id is required for scope sub_account",
			`{"scope":"client","period":"day","limit_usd":0.0000000001}`:                    "",
			`{"scope":"client","period":"day","limit_usd":"1"}`:                             "",
			`{"scope":"client","period":"day","limit_usd":1e400}`:                           "",
			`{"scope":"client","period":"day","limit_usd":null}`:                            "limit_usd must not be null",
			`{"scope":"client","period":"day","limit_usd":1,"limit_usd":2}`:                 "",
			`{"scope":"client","period":"day","limit_usd":1`:                                "",
			`{"scope":"key","id":7,"period":"day","limit_usd":1}`:                           "",
			`[]`: "",
			``:   "",
		} {
			g.do(root, "PUT /gw/budgets", body).refused(400, "bad_request", message)
		}
		for _, id := range []string{unknownID, "not-a-uuid", "", string(foreign), string(client)} {
			for _, scope := range []string{"sub_account", "key"} {
				g.do(root, "PUT /gw/budgets", fmt.Sprintf(`{"scope":%q,"id":%q,"period":"day","limit_usd":1}`, scope, id)).refused(404, "not_found", "budget target not found")
				g.do(root, fmt.Sprintf("DELETE /gw/budgets?scope=%s&id=%s&period=day", scope, id), "").refused(404, "not_found", "budget target not found")
			}
		}
		for _, query := range []string{"", "scope=client", "period=day", "scope=client&period=total", "scope=client&period=day&period=day", "scope=key&period=day", "scope=client&period=day&id=" + string(client)} {
			g.do(root, "DELETE /gw/budgets?"+query, "").refused(400, "bad_request", "")
		}
		g.do(root, "POST /gw/budgets", "{}").refused(405, "bad_request", "")
		g.do(root, "GET /gw/budgets", "").want(200, `[]`)
		reader := g.key(client, func(k *modelgate.Key) { k.Scopes = []modelgate.Scope{modelgate.StatsRead, modelgate.InferenceUse} })
		for _, target := range []string{"GET /gw/budgets", "PUT /gw/budgets", "DELETE /gw/budgets?scope=client&period=day"} {
			g.do(reader, target, "").refused(403, "forbidden", "missing required scope: keys:manage")
		}
	})
}

// An end customer sees what is its own, as billed, and no figure tells the
// surcharge.
func TestBudgetsOfABoundKey(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub, sibling := g.rootKey(client), g.subAccount(client, "shop"), g.subAccount(client, "other")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":33.3}`).want(204, "")
		var own, others, free modelgate.KeyID
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID, own = sub, k.ID })
		g.key(client, func(k *modelgate.Key) { k.SubAccountID, others = sibling, k.ID })
		g.key(client, func(k *modelgate.Key) { free = k.ID })
		g.put(root, `{"scope":"client","period":"month","limit_usd":100}`)
		g.put(root, fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"month","limit_usd":10}`, sub))
		g.put(root, fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"month","limit_usd":10}`, sibling))
		g.put(root, fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":3}`, others))
		g.book(g.row(client, 0, func(r *modelgate.UsageRow) { r.KeyID, r.SubAccountID, r.Cost = own, sub, 1_000_000_000 }))

		g.put(bound, fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":5}`, own))
		g.do(bound, "GET /gw/budgets", "").want(200, fmt.Sprintf(`[{"scope":"key","id":%q,"period":"day","limit_usd":5,"spend_usd":1.333},`+
			`{"scope":"sub_account","id":%q,"period":"month","limit_usd":13.33,"spend_usd":1.333,"owner":"reseller"}]`, own, sub))
		var seen []struct {
			Scope string  `json:"scope"`
			ID    string  `json:"id"`
			Limit float64 `json:"limit_usd"`
		}
		g.do(root, "GET /gw/budgets", "").into(&seen)
		for _, b := range seen {
			if b.ID == string(own) && b.Limit != 3.750937734 {
				g.Errorf("the organization sees the limit %v, want it at cost, 3.750937734", b.Limit)
			}
		}
		if len(seen) != 5 {
			g.Errorf("the organization sees %d budgets, want all 5", len(seen))
		}
		// What it sets comes back as it was, whatever the surcharge.
		for _, markup := range []string{"0", "0.000001", "33.3", "10000"} {
			g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":`+markup+`}`).want(204, "")
			for set, want := range map[string]string{"0.000001": "0.000001", "0.123457": "0.123457", "999999999": "999999999", "0.000000001": "0.000001"} {
				g.put(bound, fmt.Sprintf(`{"scope":"key","id":%q,"period":"month","limit_usd":%s}`, own, set))
				var list []object
				g.do(bound, "GET /gw/budgets", "").into(&list)
				got := ""
				for _, b := range list {
					if b["period"] == "month" && b["scope"] == "key" {
						got = modelgate.Nano(b["limit_usd"].(float64) * 1e9).String()
					}
				}
				if fmt.Sprint(got) != want {
					g.Errorf("with markup %s, %s comes back as %s", markup, set, got)
				}
			}
		}
		for _, c := range []struct{ scope, id string }{{"client", ""}, {"sub_account", string(sub)}, {"sub_account", string(sibling)}} {
			body := fmt.Sprintf(`{"scope":%q,"id":%q,"period":"day","limit_usd":1}`, c.scope, c.id)
			g.do(bound, "PUT /gw/budgets", body).refused(403, "forbidden", "a key bound to a sub-account can set budgets of scope key only")
			g.do(bound, fmt.Sprintf("DELETE /gw/budgets?scope=%s&period=month&id=%s", c.scope, c.id), "").refused(403, "forbidden", "")
		}
		for _, id := range []modelgate.KeyID{others, free, unknownID} {
			g.do(bound, "PUT /gw/budgets", fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":1}`, id)).refused(404, "not_found", "budget target not found")
			g.do(bound, fmt.Sprintf("DELETE /gw/budgets?scope=key&period=day&id=%s", id), "").refused(404, "not_found", "")
		}
		g.do(bound, fmt.Sprintf("DELETE /gw/budgets?scope=key&period=day&id=%s", own), "").want(204, "")
	})
}

func TestBudgetsReadWhatWasJustBooked(t *testing.T) {
	t.Parallel()
	g := setup(t, "sqlite")
	client := g.client(unchanged)
	root := g.rootKey(client)
	g.put(root, `{"scope":"client","period":"month","limit_usd":25}`)
	g.setFlushed(func(context.Context) error {
		g.book(g.row(client, 0, asIs))
		return nil
	})
	const spent = `[{"scope":"client","period":"month","limit_usd":25,"spend_usd":0.0015}]`
	g.do(root, "GET /gw/budgets", "").want(200, spent)
	g.setFlushed(func(context.Context) error { return errors.New("the shipper is slow") })
	g.do(root, "GET /gw/budgets", "").want(200, spent)
}

// A change is known to the instance that made it before it is answered.
func TestBudgetsHoldAtOnce(t *testing.T) {
	t.Parallel()
	g := setup(t, "sqlite")
	client := g.client(unchanged)
	root := g.rootKey(client)
	limits := func() (limits []modelgate.Nano) {
		c, err := g.keys.Identify(t.Context(), root, auth.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range c.Budgets {
			limits = append(limits, b.Limit)
		}
		return limits
	}
	for _, c := range []struct {
		target, body string
		want         []modelgate.Nano
	}{
		{"PUT /gw/budgets", `{"scope":"client","period":"month","limit_usd":25}`, []modelgate.Nano{25e9}},
		{"PUT /gw/budgets", `{"scope":"client","period":"day","limit_usd":3}`, []modelgate.Nano{3e9, 25e9}},
		{"PUT /gw/budgets", `{"scope":"client","period":"month","limit_usd":24}`, []modelgate.Nano{3e9, 24e9}},
		{"DELETE /gw/budgets?scope=client&period=day", "", []modelgate.Nano{24e9}},
	} {
		g.do(root, c.target, c.body).want(204, "")
		if got := limits(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("after %s %s the key has %v, want %v", c.target, c.body, got, c.want)
		}
	}
}
