package selfservice_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

func TestIssuedKey(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub := g.rootKey(client), g.subAccount(client, "shop")

		plain := g.do(root, "POST /gw/keys", `{"scopes":["stats:read","inference:use","stats:read"]}`)
		shape := regexp.MustCompile(`^\{"api_key_id":"[0-9a-f-]{36}","key":"gw_live_[0-9a-f]{48}","scopes":\["inference:use","stats:read"\]\}$`)
		if plain.status != 200 || !shape.MatchString(plain.body) || plain.header.Get("Cache-Control") != "no-store" {
			g.Errorf("issued: %d %s %v", plain.status, plain.body, plain.header)
		}
		g.do(plain.field("key"), "GET /gw/me", "").
			rights(`{"scopes":["inference:use","stats:read"],"entitlements":[{"axis":"provider","provider":"*","model_pattern":"*","effect":"allow"}]}`)

		before := time.Now()
		full := g.do(root, "POST /gw/keys", fmt.Sprintf(`{"scopes":[],"entitlements":[],"sub_account_id":%q,"expires_in_seconds":60}`, strings.ToUpper(string(sub))))
		if got := full.field("sub_account_id"); got != string(sub) {
			g.Errorf("sub_account_id %s, want %s", got, sub)
		}
		at, err := time.Parse(time.RFC3339Nano, full.field("expires_at"))
		if err != nil || at.Before(before.Add(time.Minute).Truncate(time.Millisecond)) || at.After(time.Now().Add(time.Minute)) {
			g.Errorf("expires_at %s, %v", full.field("expires_at"), err)
		}
		g.do(full.field("key"), "GET /gw/me", "").rights(`{"scopes":[],"entitlements":[]}`)
	})
}

func TestIssueRefuses(t *testing.T) {
	each(t, func(g *gate) {
		ceiling := modelgate.Ceiling{
			MaxScopes: []modelgate.Scope{modelgate.KeysManage, modelgate.StatsRead},
			Entitlements: modelgate.Entitlements{
				{Axis: "provider", Provider: "azure-eu", ModelPattern: "*", Effect: "allow"},
				{Axis: "vendor", Provider: "meta", ModelPattern: "*", Effect: "allow"},
				{Axis: "kind", Provider: "llm", ModelPattern: "*", Effect: "allow"},
				{Axis: "provider", Provider: "fal", ModelPattern: "*", Effect: "deny"},
			},
		}
		client := g.client(func(c *modelgate.Client) { c.Ceiling = ceiling })
		root := g.rootKey(client)
		tuple := func(axis, provider, pattern, effect string) string {
			return fmt.Sprintf(`{"scopes":[],"entitlements":[{"axis":%q,"provider":%q,"model_pattern":%q,"effect":%q}]}`, axis, provider, pattern, effect)
		}
		for _, c := range []struct {
			body   string
			status int
			kind   string
		}{
			{`{"scopes":["keys:manage"]}`, 200, ""},
			{`{"scopes":[]}`, 200, ""},
			{`{"scopes":[],"expires_in_seconds":1}`, 200, ""},
			{`{"scopes":[],"expires_in_seconds":null,"sub_account_id":null}`, 200, ""},
			{`{"scopes":[],"entitlements":[{"axis":null,"provider":"azure-eu","model_pattern":"*","effect":"allow"}]}`, 200, ""},
			{`{"scopes":[],"expires_in_seconds":315360000}`, 200, ""},
			{`{"scopes":[],"entitlements":[{"provider":"azure-eu","model_pattern":"*","effect":"allow"}]}`, 200, ""},
			{tuple("provider", "azure-eu", "*", "allow"), 200, ""},
			{tuple("provider", "fal", "*", "deny"), 200, ""},
			{tuple("vendor", "anyone", "any*", "deny"), 200, ""},
			{tuple("vendor", "openai", "gpt-5-mini", "allow"), 200, ""},
			{tuple("vendor", "meta", "*", "allow"), 200, ""},
			{tuple("kind", "nonsense", "*", "deny"), 200, ""},
			{tuple("kind", "llm", "*", "allow"), 200, ""},

			{`{"scopes":["inference:use"]}`, 403, "forbidden"},
			{tuple("provider", "azure-eu", "deployment-7", "allow"), 403, "forbidden"},
			{tuple("provider", "openai", "*", "deny"), 403, "forbidden"},
			{tuple("vendor", "openai", "nothing", "allow"), 403, "forbidden"},
			{tuple("vendor", "black-forest", "flux", "allow"), 403, "forbidden"},
			{tuple("vendor", "open*", "*", "allow"), 403, "forbidden"},
			{tuple("kind", "llm", "gpt-5-mini", "allow"), 403, "forbidden"},

			{``, 400, "bad_request"},
			{`{`, 400, "bad_request"},
			{`[]`, 400, "bad_request"},
			{`{}`, 400, "bad_request"},
			{`{"scopes":null}`, 400, "bad_request"},
			{`{"scopes":["all"]}`, 400, "bad_request"},
			{`{"scopes":"stats:read"}`, 400, "bad_request"},
			{`{"scopes":[],"scopes":[]}`, 400, "bad_request"},
			{`{"scopes":[]} x`, 400, "bad_request"},
			{`{"scopes":[],"entitlements":null}`, 400, "bad_request"},
			{`{"scopes":[],"entitlements":{}}`, 400, "bad_request"},
			{tuple("model", "a", "b", "allow"), 400, "bad_request"},
			{tuple("kind", "a", "b", "maybe"), 400, "bad_request"},
			{tuple("vendor", "", "b", "deny"), 400, "bad_request"},
			{`{"scopes":[],"sub_account_id":5}`, 400, "bad_request"},
			{`{"scopes":[],"sub_account_id":""}`, 403, "forbidden"},
			{`{"scopes":[],"expires_in_seconds":0}`, 400, "bad_request"},
			{`{"scopes":[],"expires_in_seconds":-1}`, 400, "bad_request"},
			{`{"scopes":[],"expires_in_seconds":315360001}`, 400, "bad_request"},
			{`{"scopes":[],"expires_in_seconds":9223372036854775807}`, 400, "bad_request"},
			{`{"scopes":[],"expires_in_seconds":1.5}`, 400, "bad_request"},
			{`{"scopes":[],"expires_in_seconds":"60"}`, 400, "bad_request"},
			{tuple("", "azure-eu", "*", "allow"), 400, "bad_request"},
			{`{"scopes":[],"entitlement":[]}`, 400, "bad_request"},
			{`{"scopes":[],"Entitlements":[]}`, 400, "bad_request"},
		} {
			keys := g.count("SELECT COUNT(*) FROM api_key")
			a := g.do(root, "POST /gw/keys", c.body)
			if c.status == 200 {
				a.want(200, "")
				continue
			}
			a.refused(c.status, c.kind, "")
			if n := g.count("SELECT COUNT(*) FROM api_key"); n != keys {
				g.Errorf("%s: %d keys were created", c.body, n-keys)
			}
		}
		// What a key was issued with binds it later: the ceiling's deny too.
		g.do(g.do(root, "POST /gw/keys", `{"scopes":[]}`).field("key"), "GET /gw/me", "").
			rights(`{"scopes":[],"entitlements":` + must(g, ceiling.Entitlements) + `}`)
	})
}

func must(g *gate, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		g.Fatal(err)
	}
	return string(b)
}

func TestCeilingIsThatOfNow(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		g.do(root, "GET /gw/ceiling", "").want(200, `{"max_scopes":["inference:use","stats:read","keys:manage"],"entitlements":`+must(g, modelgate.OpenEntitlements())+`}`)
		err := g.db.UpdateClient(g.Context(), client, func(c *modelgate.Client) error {
			c.Ceiling = modelgate.Ceiling{}
			return nil
		}, g.operator("client.set"))
		if err != nil {
			g.Fatal(err)
		}
		// The caller is still cached with the old ceiling; the issuance is not.
		g.do(root, "POST /gw/keys", `{"scopes":["stats:read"]}`).refused(403, "forbidden", "")
	})
}

func TestKeyCap(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(func(c *modelgate.Client) { c.MaxKeys = 2 })
		root := g.rootKey(client)
		second := g.do(root, "POST /gw/keys", `{"scopes":[]}`)
		g.do(root, "POST /gw/keys", `{"scopes":[]}`).
			refused(403, "forbidden", "active key limit reached for this client: revoke unused keys or ask the operator to raise max_keys")
		g.do(root, "DELETE /gw/keys/"+second.field("api_key_id"), "").want(204, "")
		g.do(root, "POST /gw/keys", `{"scopes":[]}`).want(200, "")
	})
}

func TestRevokedKeyIsRefusedAtOnce(t *testing.T) {
	each(t, func(g *gate) {
		root := g.rootKey(g.client(unchanged))
		issued := g.do(root, "POST /gw/keys", `{"scopes":[]}`)
		g.do(issued.field("key"), "GET /gw/me", "").want(200, "")
		revoke := "DELETE /gw/keys/" + strings.ToUpper(issued.field("api_key_id"))
		if a := g.do(root, revoke, "").want(204, ""); a.body != "" {
			g.Errorf("204 with the body %q", a.body)
		}
		g.do(issued.field("key"), "GET /gw/me", "").refused(401, "unauthorized", "invalid gateway key")
		g.do(root, revoke, "").want(204, "")
	})
}

func TestKeyList(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub := g.rootKey(client), g.subAccount(client, "shop")
		g.do(root, "POST /gw/keys", fmt.Sprintf(`{"scopes":["stats:read"],"sub_account_id":%q,"expires_in_seconds":60}`, sub)).want(200, "")
		revoked := g.do(root, "POST /gw/keys", `{"scopes":[]}`).field("api_key_id")
		g.do(root, "DELETE /gw/keys/"+revoked, "").want(204, "")
		g.rootKey(g.client(unchanged)) // another organization's

		var keys []object
		a := g.do(root, "GET /gw/keys", "").into(&keys)
		if len(keys) != 3 || a.header.Get("X-Next-Cursor") != "" {
			g.Fatalf("GET /gw/keys = %s, want three keys and no cursor", a.body)
		}
		var fields []string
		for name := range keys[0] {
			fields = append(fields, name)
		}
		slices.Sort(fields)
		if diff := cmp.Diff([]string{"created_at", "expires_at", "id", "key_prefix", "last_used_at", "name", "scopes", "status", "sub_account_id"}, fields); diff != "" {
			g.Errorf("fields of a key: %s", diff)
		}
		newest, bound, oldest := keys[0], keys[1], keys[2]
		if newest["id"] != revoked || newest["status"] != "revoked" || newest["sub_account_id"] != nil || newest["expires_at"] != nil || newest["last_used_at"] != nil {
			g.Errorf("newest: %v", newest)
		}
		if bound["sub_account_id"] != string(sub) || bound["status"] != "active" || bound["expires_at"] == nil {
			g.Errorf("bound: %v", bound)
		}
		if prefix := fmt.Sprint(oldest["key_prefix"]); prefix != root[:16] || strings.Contains(a.body, root) {
			g.Errorf("oldest: %v", oldest)
		}
		for _, k := range keys {
			at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(k["created_at"]))
			if err != nil || at.Location() != time.UTC || at.Nanosecond()%1000 != 0 {
				g.Errorf("created_at %v: want RFC 3339 in UTC with microseconds", k["created_at"])
			}
		}
	})
}

func TestKeyPaging(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, other := g.rootKey(client), g.rootKey(g.client(unchanged))
		for range 6 {
			g.do(root, "POST /gw/keys", `{"scopes":[]}`).want(200, "")
		}
		var all []object
		g.do(root, "GET /gw/keys", "").into(&all)
		for _, limit := range []int{1, 2, 3, 6, 7, 8, 1000} {
			var got []object
			cursor, pages := "", 0
			for {
				target := fmt.Sprintf("GET /gw/keys?limit=%d", limit)
				if cursor != "" {
					target += "&cursor=" + cursor
				}
				var rows []object
				cursor = g.do(root, target, "").into(&rows).header.Get("X-Next-Cursor")
				got = append(got, rows...)
				if pages++; cursor == "" || pages > 20 {
					break
				}
			}
			if diff := cmp.Diff(all, got); diff != "" || pages != max(1, (7+limit-1)/limit) {
				g.Errorf("limit %d: %d pages, %s", limit, pages, diff)
			}
		}
		cursor := g.do(root, "GET /gw/keys?limit=2", "").header.Get("X-Next-Cursor")
		g.do(other, "GET /gw/keys?limit=2&cursor="+cursor, "").refused(400, "bad_request", "")
		g.do(root, "GET /gw/usage?cursor="+cursor, "").refused(400, "bad_request", "")
		for _, bad := range []string{"limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "limit=1.5", "limit=2&limit=2", "cursor=x", "cursor=", "cursor=" + cursor + "x", "limit=%zz"} {
			g.do(root, "GET /gw/keys?"+bad, "").refused(400, "bad_request", "")
		}
	})
}

func TestLastUse(t *testing.T) {
	g := setup(t, "sqlite")
	root := g.rootKey(g.client(unchanged))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.keys.Run(ctx) }()
	g.do(root, "GET /gw/me", "").want(200, "")
	cancel() // Run stores what is left
	<-done
	var keys []object
	g.do(root, "GET /gw/keys", "").into(&keys)
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(keys[0]["last_used_at"]))
	if err != nil || time.Since(at) > time.Minute {
		t.Errorf("last_used_at %v", keys[0]["last_used_at"])
	}
}

func TestEveryChangeIsAudited(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		issued := g.do(root, "POST /gw/keys", `{"scopes":["stats:read"],"expires_in_seconds":60}`)
		revoked := g.do(root, "DELETE /gw/keys/"+issued.field("api_key_id"), "")
		created := g.do(root, "POST /gw/subaccounts", `{"name":"Shop","slug":"shop"}`)
		patched := g.do(root, "PATCH /gw/subaccounts/"+created.field("id"), `{"markup_pct":12.5}`)
		branded := g.do(root, "PUT /gw/branding", `{"portal_slug":"p`+string(client)+`","product_name":"P","allow_self_issue":true}`)
		for _, c := range []struct {
			reply                  *reply
			action, target, change string
		}{
			{issued, "key.issue", issued.field("api_key_id"), `{"scopes":["stats:read"],"entitlements":[{"axis":"provider","provider":"*","model_pattern":"*","effect":"allow"}],"expires_at":"`},
			{revoked, "key.revoke", issued.field("api_key_id"), ""},
			{created, "sub_account.create", created.field("id"), `{"name":"Shop","slug":"shop"}`},
			{patched, "sub_account.update", created.field("id"), `{"markup_pct":12.5}`},
			{branded, "branding.put", string(client), `"product_name":"P"`},
		} {
			var action, target, actor, change string
			row := g.raw.QueryRow(fmt.Sprintf("SELECT action, target_id, actor, COALESCE(change, '') FROM audit WHERE request_id = '%s' AND client_id = '%s'",
				c.reply.header.Get("X-Gateway-Request-Id"), client))
			if err := row.Scan(&action, &target, &actor, &change); err != nil {
				g.Errorf("%s: %v", c.action, err)
				continue
			}
			if action != c.action || target != c.target || !strings.Contains(actor, `"key_id"`) || !strings.Contains(change, c.change) {
				g.Errorf("audit of %s: %s %s %s %s", c.action, action, target, actor, change)
			}
			if strings.Contains(change+actor, "gw_live_") {
				g.Errorf("audit of %s holds a secret", c.action)
			}
		}
		// A refused change leaves no trace.
		before := g.count("SELECT COUNT(*) FROM audit")
		g.do(root, "POST /gw/subaccounts", `{"name":"Shop","slug":"shop"}`).refused(409, "conflict", "")
		g.do(root, "DELETE /gw/keys/"+unknownID, "").refused(404, "not_found", "")
		if n := g.count("SELECT COUNT(*) FROM audit"); n != before {
			g.Errorf("%d audits of refused changes", n-before)
		}
	})
}
