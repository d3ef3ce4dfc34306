package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
	"modelgate/test/testkit/openid"
)

// TestRolesAndRoutes holds each role to what it may do.
func TestRolesAndRoutes(t *testing.T) {
	t.Parallel()
	p := openid.New(t, time.Now)
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	client := g.NewClient("Acme")
	key, _ := g.NewKey(client)
	root := newBrowser(t, g.URL)
	root.signIn("/dashboard", key)
	var sub struct{ ID string }
	if err := json.Unmarshal([]byte(root.want(200, "POST /dashboard/gw/subaccounts", `{"name":"Shop","slug":"shop"}`)), &sub); err != nil {
		t.Fatal(err)
	}
	roles := []string{"owner", "admin", "billing", "developer", "viewer"}
	var rules []string
	for _, role := range roles {
		rules = append(rules, fmt.Sprintf("{organization: %s, group: %s, role: %s}", client, role, role))
	}
	g.Stop()
	g.Configure(testkit.GatewayOptions{Server: `base_url: "http://gateway.test"`, More: signInConfig(p, strings.Join(rules, ", "))})
	g.Start()
	as := map[string]*browser{}
	for _, role := range roles {
		as[role] = signInAs(t, p, g.URL, role, role)
	}
	const call = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	for _, c := range []struct {
		route, body string
		want        [5]int // by role, in their order
	}{
		{"GET /gw/me", "", [5]int{200, 200, 200, 200, 200}},
		{"GET /gw/models", "", [5]int{200, 200, 200, 200, 200}},
		{"GET /gw/report", "", [5]int{200, 200, 200, 200, 200}},
		{"GET /gw/calls", "", [5]int{200, 200, 200, 200, 200}},
		{"GET /gw/evidence", "", [5]int{200, 200, 200, 200, 200}},
		{"GET /gw/sessions", "", [5]int{200, 200, 200, 200, 200}},
		{"POST /v1/chat/completions", call, [5]int{200, 200, 403, 200, 403}},
		{"GET /gw/keys", "", [5]int{200, 200, 200, 200, 403}},
		{"POST /gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":3600,"name":"mine"}`, [5]int{200, 200, 403, 200, 403}},
		{"POST /gw/keys", `{"scopes":["inference:use"]}`, [5]int{200, 200, 403, 403, 403}},
		{"POST /gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":7776001}`, [5]int{200, 200, 403, 403, 403}},
		{"POST /gw/keys", `{"scopes":["inference:use","stats:read"],"expires_in_seconds":60}`, [5]int{200, 200, 403, 403, 403}},
		{"POST /gw/keys", fmt.Sprintf(`{"scopes":["inference:use"],"expires_in_seconds":60,"sub_account_id":%q}`, sub.ID), [5]int{200, 200, 403, 403, 403}},
		{"DELETE /gw/keys/00000000-0000-7000-8000-00000000ffff", "", [5]int{404, 404, 403, 404, 403}},
		{"GET /gw/ceiling", "", [5]int{200, 200, 403, 403, 403}},
		{"GET /gw/subaccounts", "", [5]int{200, 200, 200, 403, 403}},
		{"PATCH /gw/subaccounts/" + sub.ID, `{"markup_pct":7}`, [5]int{204, 204, 204, 403, 403}},
		{"PATCH /gw/subaccounts/" + sub.ID, `{"name":"Other"}`, [5]int{204, 204, 403, 403, 403}},
		{"POST /gw/subaccounts", `{"name":"n","slug":"shop"}`, [5]int{409, 409, 403, 403, 403}},
		{"GET /gw/budgets", "", [5]int{200, 200, 200, 403, 403}},
		{"PUT /gw/budgets", `{"scope":"client","period":"month","limit_usd":50}`, [5]int{204, 204, 204, 403, 403}},
		{"GET /gw/limits", "", [5]int{200, 200, 403, 403, 403}},
		{"GET /gw/branding", "", [5]int{404, 404, 404, 403, 403}},
		{"PUT /gw/branding", `{"portal_slug":"shop","product_name":"Shop","allow_self_issue":false}`, [5]int{200, 200, 403, 403, 403}},
		{"POST /gw/billing/checkout", `{"amount_usd":10}`, [5]int{400, 400, 400, 403, 403}},
		{"GET /gw/processor/config", "", [5]int{200, 200, 200, 200, 200}},
		{"PUT /gw/processor/config", `{"enabled":false}`, [5]int{204, 204, 204, 403, 403}},
		{"GET /gw/people", "", [5]int{200, 200, 403, 403, 403}},
	} {
		method, path, _ := strings.Cut(c.route, " ")
		for i, role := range roles {
			if resp, text := as[role].send(method+" /dashboard"+path, c.body); resp.StatusCode != c.want[i] {
				t.Errorf("%s %s as %s = %d, want %d: %.200s", c.route, c.body, role, resp.StatusCode, c.want[i], text)
			}
		}
	}

	// A developer sees and revokes their own keys, and ten live ones are the most.
	type listed struct {
		ID     string
		Name   *string
		Owner  string
		Status string
	}
	dev := as["developer"]
	var mine string
	for _, k := range readJSON[[]listed](t, dev, "GET /dashboard/gw/keys") {
		if k.Owner == "" {
			t.Errorf("a developer sees %+v", k)
		}
		if k.Name != nil && *k.Name == "mine" {
			mine = k.ID
		}
	}
	for _, k := range readJSON[[]listed](t, as["admin"], "GET /dashboard/gw/keys") {
		if k.Owner == "" {
			dev.want(404, "DELETE /dashboard/gw/keys/"+k.ID, "")
		}
	}
	const own = `{"scopes":["inference:use"],"expires_in_seconds":3600}`
	var secret struct{ Key string }
	for range 9 {
		if err := json.Unmarshal([]byte(dev.want(200, "POST /dashboard/gw/keys", own)), &secret); err != nil {
			t.Fatal(err)
		}
	}
	dev.want(403, "POST /dashboard/gw/keys", own)
	dev.want(204, "DELETE /dashboard/gw/keys/"+mine, "")
	dev.want(200, "POST /dashboard/gw/keys", own)

	// The keys end with the membership, and those of admins stay.
	b := &bench{g, secret.Key}
	if resp, text := b.post(t, "/v1/chat/completions", call); resp.StatusCode != 200 {
		t.Errorf("the developer's key: %d %s", resp.StatusCode, text)
	}
	p.Claims = map[string]any{"sub": "developer", "groups": []string{"nothing"}}
	arrive(t, p, newBrowser(t, g.URL), g.URL, g.URL, "")
	if resp, _ := b.post(t, "/v1/chat/completions", call); resp.StatusCode != 401 {
		t.Errorf("the key of who has left: %d", resp.StatusCode)
	}
	dev.want(401, "GET /dashboard/gw/me", "")
	left := 0
	for _, k := range readJSON[[]listed](t, as["admin"], "GET /dashboard/gw/keys") {
		if k.Status == "active" && k.Owner == "" {
			left++
		}
	}
	if left < 9 {
		t.Errorf("%d keys of the organization are left", left)
	}
}
