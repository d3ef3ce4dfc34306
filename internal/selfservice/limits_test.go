package selfservice_test

import (
	"fmt"
	"testing"
	"time"

	"modelgate"
)

func (g *gate) limit(key, body string) {
	g.Helper()
	g.do(key, "PUT /gw/limits", body).want(204, "")
}

func TestLimits(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub := g.rootKey(client), g.subAccount(client, "shop")
		var keyID modelgate.KeyID
		own := g.key(client, func(k *modelgate.Key) { keyID = k.ID })
		g.do(root, "GET /gw/limits", "").want(200, `[]`)
		g.limit(root, `{"scope":"client","unit":"tokens","window":"minute","limit":100000}`)
		g.limit(root, `{"scope":"client","match":"tag:end_user=*","unit":"usd","window":"minute","limit":0.25,"burst":1.5,"owner":"operator"}`)
		g.limit(root, fmt.Sprintf(`{"scope":"sub_account","id":%q,"unit":"concurrency","limit":4}`, sub))
		g.limit(root, fmt.Sprintf(`{"scope":"key","id":%q,"match":"model:openai/*","unit":"requests","window":"second","limit":5}`, keyID))
		g.limit(root, `{"scope":"client","unit":"tokens","window":"minute","limit":50000,"burst":null}`) // replaces
		const all = `[{"scope":"client","unit":"tokens","window":"minute","limit":50000},` +
			`{"scope":"client","match":"tag:end_user=*","unit":"usd","window":"minute","limit":0.25,"burst":1.5},` +
			`{"scope":"key","id":%q,"match":"model:openai/*","unit":"requests","window":"second","limit":5},` +
			`{"scope":"sub_account","id":%q,"unit":"concurrency","limit":4}]`
		g.do(root, "GET /gw/limits", "").want(200, fmt.Sprintf(all, keyID, sub))

		// What binds a call of one of the keys.
		g.do(own, "GET /gw/quota?model=openai/gpt-5-mini&attribution=end_user=ann,x=y", "").want(200, fmt.Sprintf(`{"limits":[`+
			`{"kind":"rate","scope":"client","unit":"tokens","window":"minute","limit":50000,"used":0,"remaining":50000,"resets_at":null},`+
			`{"kind":"rate","scope":"client","match":"tag:end_user=*","unit":"usd","window":"minute","limit":0.25,"used":0,"remaining":1.5,"resets_at":null},`+
			`{"kind":"rate","scope":"key","id":%q,"match":"model:openai/*","unit":"requests","window":"second","limit":5,"used":0,"remaining":5,"resets_at":null}]}`, keyID))
		g.do(own, "GET /gw/quota?model=a/b", "").want(200, `{"limits":[`+
			`{"kind":"rate","scope":"client","unit":"tokens","window":"minute","limit":50000,"used":0,"remaining":50000,"resets_at":null}]}`)
		g.do(own, "GET /gw/quota?attribution=x", "").refused(400, "bad_request", "")

		g.do(root, "DELETE /gw/limits?scope=client&unit=tokens&window=minute", "").want(204, "")
		g.do(root, "DELETE /gw/limits?scope=client&unit=tokens&window=minute", "").refused(404, "not_found", "limit not found")
		g.do(root, "DELETE /gw/limits?scope=client&unit=usd&window=minute&match=tag:end_user=*", "").want(204, "")
		g.do(root, fmt.Sprintf("DELETE /gw/limits?scope=sub_account&id=%s&unit=concurrency", sub), "").want(204, "")
		if n := g.count(fmt.Sprintf("SELECT COUNT(*) FROM audit WHERE client_id = '%s' AND action IN ('limit.put', 'limit.delete')", client)); n != 8 {
			g.Errorf("%d audit records, want one for each of 8 changes", n)
		}
	})
}

func TestLimitsRefuse(t *testing.T) {
	each(t, func(g *gate) {
		client, other := g.client(unchanged), g.client(unchanged)
		root, foreign := g.rootKey(client), g.subAccount(other, "theirs")
		const unit = "unit must be requests, input_tokens, output_tokens, tokens, usd or concurrency"
		for body, message := range map[string]string{
			`{"unit":"tokens","window":"minute","limit":1}`:                                                "scope must be client, sub_account or key",
			`{"scope":"gateway","unit":"tokens","window":"minute","limit":1}`:                              "scope must be client, sub_account or key",
			`{"scope":"client","window":"minute","limit":1}`:                                               unit,
			`{"scope":"client","unit":"token","window":"minute","limit":1}`:                                unit,
			`{"scope":"client","unit":"requests","limit":1}`:                                               "window must be second, minute, hour or day",
			`{"scope":"client","unit":"requests","window":"week","limit":1}`:                               "window must be second, minute, hour or day",
			`{"scope":"client","unit":"tokens","window":"second","limit":1}`:                               "window must be minute, hour or day for unit tokens",
			`{"scope":"client","unit":"tokens","window":"day","limit":9000000001}`:                         "limit must be from 1 to 9000000000",
			`{"scope":"client","unit":"requests","window":"day","limit":1000000001}`:                       "limit must be from 1 to 1000000000",
			`{"scope":"client","unit":"usd","window":"hour","limit":1,"burst":1}`:                          "burst must be left out for window hour",
			`{"scope":"client","unit":"concurrency","window":"minute","limit":1}`:                          "window must be left out for unit concurrency",
			`{"scope":"client","unit":"concurrency","limit":1,"burst":1}`:                                  "burst must be left out for unit concurrency",
			`{"scope":"client","unit":"concurrency","limit":1000001}`:                                      "limit must be from 1 to 1000000",
			`{"scope":"client","unit":"tokens","window":"minute"}`:                                         "limit must be from 1 to 1000000000",
			`{"scope":"client","unit":"tokens","window":"minute","limit":1000000001}`:                      "limit must be from 1 to 1000000000",
			`{"scope":"client","unit":"tokens","window":"minute","limit":-1}`:                              "limit must be from 1 to 1000000000",
			`{"scope":"client","unit":"tokens","window":"minute","limit":1.5}`:                             "limit must be a whole number for unit tokens",
			`{"scope":"client","unit":"tokens","window":"minute","limit":1,"burst":0}`:                     "burst must be from 1 to 1000000000",
			`{"scope":"client","unit":"usd","window":"minute","limit":0}`:                                  "limit must be more than 0 and at most 1000000000",
			`{"scope":"client","unit":"usd","window":"minute","limit":0.0000000001}`:                       "",
			`{"scope":"client","unit":"usd","window":"minute","limit":1e400}`:                              "",
			`{"scope":"client","unit":"usd","window":"minute","limit":"1"}`:                                "",
			`{"scope":"client","unit":"tokens","window":"minute","limit":1,"match":"user:x"}`:              "match must be model:GLOB or tag:KEY=VALUE",
			`{"scope":"client","unit":"tokens","window":"minute","limit":1,"match":""}`:                    "match must be model:GLOB or tag:KEY=VALUE",
			`{"scope":"key","unit":"tokens","window":"minute","limit":1}`:                                  "id is required for scope key",
			`{"scope":"client","unit":"tokens","window":"minute","limit":1,"id":"` + string(client) + `"}`: "id must be left out for scope client",
			`{"scope":"client","unit":"tokens","window":"minute","limit":1,"rate":2}`:                      "",
		} {
			g.do(root, "PUT /gw/limits", body).refused(400, "bad_request", message)
		}
		for _, id := range []string{unknownID, "not-a-uuid", string(foreign)} {
			g.do(root, "PUT /gw/limits", fmt.Sprintf(`{"scope":"sub_account","id":%q,"unit":"tokens","window":"minute","limit":1}`, id)).refused(404, "not_found", "limit target not found")
			g.do(root, "DELETE /gw/limits?scope=key&unit=tokens&window=minute&id="+id, "").refused(404, "not_found", "limit target not found")
		}
		for _, query := range []string{"", "scope=client", "scope=client&unit=tokens", "scope=client&unit=concurrency&window=minute", "scope=client&unit=concurrency&owner=operator", "scope=client&unit=concurrency&x=y"} {
			g.do(root, "DELETE /gw/limits?"+query, "").refused(400, "bad_request", "")
		}
		g.do(root, "GET /gw/limits", "").want(200, `[]`)
	})
}

// Owners change their own limits only, and an end customer sees what is its own,
// as billed.
func TestLimitsOfABoundKey(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub := g.rootKey(client), g.subAccount(client, "shop")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":100}`).want(204, "")
		var own, others modelgate.KeyID
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID, own = sub, k.ID })
		g.key(client, func(k *modelgate.Key) { others = k.ID })
		target := fmt.Sprintf(`"scope":"key","id":%q,"unit":"usd","window":"minute"`, own)
		name := fmt.Sprintf("DELETE /gw/limits?scope=key&id=%s&unit=usd&window=minute", own)
		g.limit(root, `{"scope":"client","unit":"tokens","window":"minute","limit":7}`)
		g.limit(root, "{"+target+`,"limit":2}`)
		g.do(bound, name, "").refused(403, "forbidden", "set by the reseller")
		g.limit(bound, "{"+target+`,"limit":3,"burst":8}`)
		g.do(bound, "PUT /gw/limits", `{"scope":"client","unit":"tokens","window":"minute","limit":7}`).refused(403, "forbidden", "")
		g.do(bound, "PUT /gw/limits", fmt.Sprintf(`{"scope":"key","id":%q,"unit":"tokens","window":"minute","limit":7}`, others)).refused(404, "not_found", "")
		g.do(bound, "GET /gw/limits", "").want(200, "[{"+target+`,"limit":4,"owner":"reseller"},{`+target+`,"limit":3,"burst":8}]`)
		g.do(bound, "GET /gw/quota", "").want(200, fmt.Sprintf(`{"limits":[`+
			`{"kind":"rate","scope":"key","id":%q,"unit":"usd","window":"minute","limit":4,"used":0,"remaining":4,"resets_at":null,"owner":"reseller"},`+
			`{"kind":"rate","scope":"key","id":%q,"unit":"usd","window":"minute","limit":3,"used":0,"remaining":8,"resets_at":null}]}`, own, own))
		g.do(bound, name+"&owner=sub_account", "").refused(403, "forbidden", "")
		g.do(root, name+"&owner=sub_account", "").want(204, "")
		g.do(root, name+"&owner=sub_account", "").refused(404, "not_found", "limit not found")
		g.do(root, name, "").want(204, "")
		l := modelgate.RateLimit{Level: modelgate.LevelKey, ID: string(own), Unit: modelgate.UnitUSD, Window: "minute", Limit: 1, Owner: modelgate.OwnerOperator}
		if err := g.db.PutRateLimit(g.Context(), client, "", l, g.operator("limit.put")); err != nil {
			g.Fatal(err)
		}
		g.do(root, name, "").refused(403, "forbidden", "set by the operator")
		g.do(bound, name, "").refused(403, "forbidden", "set by the reseller")
	})
}

// An owner has a bounded number of limits on a target.
func TestLimitsAreBounded(t *testing.T) {
	g := setup(t, "sqlite")
	client := g.client(unchanged)
	var keyID modelgate.KeyID
	root := g.key(client, func(k *modelgate.Key) { keyID = k.ID })
	for i := range 33 {
		reply := g.do(root, "PUT /gw/limits", fmt.Sprintf(`{"scope":"key","id":%q,"match":"tag:n=%d","unit":"requests","window":"second","limit":1}`, keyID, i))
		if i < 32 {
			reply.want(204, "")
		} else {
			reply.refused(409, "conflict", "too many budgets and limits; remove some")
		}
	}
	if n := g.count("SELECT COUNT(*) FROM rate_limit"); n != 32 {
		g.Errorf("%d limits are stored, want 32", n)
	}
}

// The operator may allow an organization more limits or fewer. What is there
// stays.
func TestMaxRules(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(func(c *modelgate.Client) { c.MaxRules = 3 })
		root := g.rootKey(client)
		put := func(n int) *reply {
			if n%2 == 0 {
				return g.do(root, "PUT /gw/budgets", fmt.Sprintf(`{"scope":"client","window":"week","match":"tag:n=%d","limit_usd":1}`, n))
			}
			return g.do(root, "PUT /gw/limits", fmt.Sprintf(`{"scope":"client","match":"tag:n=%d","unit":"requests","window":"minute","limit":1}`, n))
		}
		for n := range 3 {
			put(n).want(204, "")
		}
		for n := 3; n < 5; n++ {
			put(n).refused(409, "conflict", "too many budgets and limits; remove some")
		}
		if n, err := g.db.RuleCount(g.Context()); n != 3 || err != nil {
			g.Errorf("%d rules are counted: %v", n, err)
		}
		most := func(n int) {
			err := g.db.UpdateClient(g.Context(), client, func(c *modelgate.Client) error { c.MaxRules = n; return nil }, g.operator("client.update"))
			if err != nil {
				g.Fatal(err)
			}
		}
		most(4)
		put(3).want(204, "")
		put(4).refused(409, "conflict", "too many budgets and limits; remove some")
		most(1)
		put(2).want(204, "") // in place of itself
		g.do(root, "DELETE /gw/limits?scope=client&match=tag:n%3D1&unit=requests&window=minute", "").want(204, "")
	})
}

// Limits by the hour and day are limits as others are, with counters that begin
// anew on the clock.
func TestLimitsOnTheClock(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub := g.rootKey(client), g.subAccount(client, "shop")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":100}`).want(204, "")
		var own modelgate.KeyID
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID, own = sub, k.ID })
		g.limit(root, `{"scope":"client","unit":"requests","window":"hour","limit":5}`)
		g.limit(root, `{"scope":"client","unit":"requests","window":"hour","limit":7}`) // replaces
		g.limit(root, `{"scope":"client","unit":"requests","window":"minute","limit":3}`)
		g.limit(root, fmt.Sprintf(`{"scope":"sub_account","id":%q,"unit":"usd","window":"day","limit":2}`, sub))
		g.limit(bound, fmt.Sprintf(`{"scope":"key","id":%q,"match":"model:acme/*","unit":"tokens","window":"day","limit":9000000000}`, own))
		own4 := fmt.Sprintf(`{"scope":"key","id":%q,"match":"model:acme/*","unit":"tokens","window":"day","limit":9000000000`, own)
		own3 := fmt.Sprintf(`{"scope":"sub_account","id":%q,"unit":"usd","window":"day","limit":`, sub)
		g.do(root, "GET /gw/limits", "").want(200, `[{"scope":"client","unit":"requests","window":"hour","limit":7},`+
			`{"scope":"client","unit":"requests","window":"minute","limit":3},`+own4+`,"owner":"sub_account"},`+own3+`2}]`)
		g.do(bound, "GET /gw/limits", "").want(200, `[`+own4+`},`+own3+`4,"owner":"reseller"}]`)
		g.do(root, "GET /gw/budgets", "").want(200, `[]`)
		g.do(root, "GET /gw/quota", "").want(200, `{"limits":[`+
			`{"kind":"rate","scope":"client","unit":"requests","window":"minute","limit":3,"used":0,"remaining":3,"resets_at":null},`+
			`{"kind":"rate","scope":"client","unit":"requests","window":"hour","limit":7,"used":0,"remaining":7,"resets_at":`+endOf(modelgate.Hour)+`}]}`)
		g.do(bound, "GET /gw/quota?model=acme/chat", "").want(200, fmt.Sprintf(`{"limits":[`+
			`{"kind":"rate","scope":"sub_account","id":%q,"unit":"usd","window":"day","limit":4,"used":0,"remaining":4,"resets_at":%s,"owner":"reseller"},`+
			`{"kind":"rate","scope":"key","id":%q,"match":"model:acme/*","unit":"tokens","window":"day","limit":9000000000,"used":0,"remaining":9000000000,"resets_at":%s}]}`,
			sub, endOf(modelgate.Day), own, endOf(modelgate.Day)))
		g.do(bound, fmt.Sprintf("DELETE /gw/limits?scope=sub_account&id=%s&unit=usd&window=day", sub), "").refused(403, "forbidden", "")
		name := fmt.Sprintf("DELETE /gw/limits?scope=key&id=%s&unit=tokens&window=day&match=model:acme/*", own)
		g.do(root, name, "").refused(404, "not_found", "limit not found")
		g.do(root, name+"&owner=sub_account", "").want(204, "")
		g.do(root, "DELETE /gw/limits?scope=client&unit=requests&window=hour", "").want(204, "")
		g.do(root, "DELETE /gw/limits?scope=client&unit=requests&window=hour", "").refused(404, "not_found", "limit not found")
		g.do(root, "DELETE /gw/budgets?scope=client&period=day", "").refused(404, "not_found", "budget not found")
		g.do(root, "GET /gw/limits", "").want(200, `[{"scope":"client","unit":"requests","window":"minute","limit":3},`+own3+`2}]`)
	})
}

// endOf is the end of the present period as answers show it.
func endOf(p modelgate.Period) string {
	return p.End(time.Now()).Format(`"` + time.RFC3339 + `"`)
}
