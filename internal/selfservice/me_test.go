package selfservice_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"modelgate"
)

// rights checks the scopes and entitlements of an answer of GET /gw/me, which come
// first.
func (a *reply) rights(body string) {
	a.g.Helper()
	if a.status != 200 || !strings.HasPrefix(a.body, strings.TrimSuffix(body, "}")+`,"api_key":{`) {
		a.g.Errorf("%s = %d %s, want %s and more", a.what, a.status, a.body, body)
	}
}

func TestMe(t *testing.T) {
	each(t, func(g *gate) {
		rate := 9
		client := g.client(func(c *modelgate.Client) { c.Limits.RequestsPerSecond = &rate })
		sub := g.subAccount(client, "shop")
		root := g.rootKey(client)
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":50}`).want(204, "")
		own := g.do(root, "POST /gw/keys", `{"scopes":["stats:read"],"entitlements":[],"name":"Nightly","expires_in_seconds":3600}`)
		theirs := g.do(root, "POST /gw/keys", fmt.Sprintf(`{"scopes":["keys:manage"],"entitlements":[],"sub_account_id":%q}`, sub))
		for _, key := range []*reply{own, theirs} {
			for _, period := range []string{"day", "month"} {
				g.do(root, "PUT /gw/budgets", fmt.Sprintf(`{"scope":"key","id":%q,"period":%q,"limit_usd":2}`, key.field("api_key_id"), period)).want(204, "")
			}
		}
		g.do(root, "PUT /gw/budgets", `{"scope":"client","period":"day","limit_usd":5}`).want(204, "")

		type me struct {
			APIKey struct {
				ID        string     `json:"id"`
				Name      *string    `json:"name"`
				Prefix    string     `json:"key_prefix"`
				CreatedAt time.Time  `json:"created_at"`
				ExpiresAt *time.Time `json:"expires_at"`
			} `json:"api_key"`
			Organization *struct{ ID, Name string }       `json:"organization"`
			SubAccount   *struct{ ID, Name, Slug string } `json:"sub_account"`
			Limits       map[string]int                   `json:"limits"`
			Budgets      []object                         `json:"budgets"`
		}
		var got me
		a := g.do(own.field("key"), "GET /gw/me", "").into(&got)
		if got.APIKey.ID != own.field("api_key_id") || got.APIKey.Name == nil || *got.APIKey.Name != "Nightly" ||
			!strings.HasPrefix(own.field("key"), got.APIKey.Prefix) || got.APIKey.ExpiresAt == nil || got.APIKey.ExpiresAt.Sub(got.APIKey.CreatedAt) != time.Hour ||
			got.Organization == nil || got.Organization.ID != string(client) || got.Organization.Name != "Acme" || got.SubAccount != nil ||
			got.Limits["requests_per_second"] != 9 || got.Limits["concurrency"] != 0 || len(got.Budgets) != 2 || got.Budgets[0]["limit_usd"] != 2.0 ||
			!strings.Contains(a.body, `"sub_account":null`) || strings.Contains(a.body, "last_used_at") || strings.Contains(a.body, own.field("key")) {
			g.Errorf("of the organization: %s", a.body)
		}
		got = me{}
		a = g.do(theirs.field("key"), "GET /gw/me", "").into(&got)
		if got.Organization != nil || strings.Contains(a.body, `"organization"`) || got.SubAccount == nil || got.SubAccount.ID != string(sub) ||
			got.SubAccount.Slug != "shop" || got.APIKey.Name != nil || got.APIKey.ExpiresAt != nil || len(got.Budgets) != 2 || got.Budgets[0]["limit_usd"] != 3.0 ||
			got.Budgets[0]["owner"] != "reseller" {
			g.Errorf("of a customer: %s", a.body)
		}
	})
}
