package selfservice_test

import (
	"fmt"
	"strings"
	"testing"

	"modelgate"
)

func TestSubAccounts(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		g.do(root, "GET /gw/subaccounts", "").want(200, `[]`)
		created := g.do(root, "POST /gw/subaccounts", `{"name":"  Shop & Co  ","slug":"shop-1"}`)
		id, at := created.field("id"), created.field("created_at")
		object := fmt.Sprintf(`{"id":%q,"client_id":%q,"name":"Shop & Co","slug":"shop-1","status":"active","markup_pct":%%s,"created_at":%q}`, id, client, at)
		created.want(200, fmt.Sprintf(object, "0"))
		g.do(root, "GET /gw/subaccounts", "").want(200, "["+fmt.Sprintf(object, "0")+"]")

		g.do(root, "POST /gw/subaccounts", `{"name":"Other","slug":"shop-1"}`).refused(409, "conflict", "")
		g.do(g.rootKey(g.client(unchanged)), "POST /gw/subaccounts", `{"name":"Elsewhere","slug":"shop-1"}`).want(200, "")

		patch := "PATCH /gw/subaccounts/" + id
		g.do(root, patch, `{"status":"suspended","name":" Shop ","markup_pct":12.345678}`).want(204, "")
		want := strings.NewReplacer("Shop & Co", "Shop", `"active"`, `"suspended"`).Replace(fmt.Sprintf(object, "12.345678"))
		g.do(root, "GET /gw/subaccounts", "").want(200, "["+want+"]")
		g.do(root, patch, `{}`).want(204, "")
		for _, body := range []string{``, `[]`, `{"status":"gone"}`, `{"status":null}`, `{"name":""}`, `{"name":"  "}`, `{"name":null}`, `{"name":5}`,
			`{"name":"a\u0000b"}`, `{"markup_pct":-1}`, `{"markup_pct":10000.1}`, `{"markup_pct":"5"}`, `{"markup_pct":null}`,
			`{"markup_pct":1e99}`, `{"name":"changed","markup_pct":10001}`, `{"name":"` + strings.Repeat("x", 201) + `"}`} {
			g.do(root, patch, body).refused(400, "bad_request", "")
		}
		g.do(root, "GET /gw/subaccounts", "").want(200, "["+want+"]")
		for _, markup := range []string{"0", "10000"} {
			g.do(root, patch, `{"markup_pct":`+markup+`}`).want(204, "")
		}

		for _, body := range []string{``, `{}`, `{"name":"x"}`, `{"slug":"x"}`, `{"name":" ","slug":"x"}`, `{"name":"x","slug":""}`,
			`{"name":"x","slug":"X"}`, `{"name":"x","slug":"a_b"}`, `{"name":"x","slug":"` + strings.Repeat("a", 65) + `"}`, `{"name":"x","slug":null}`,
			`{"name":"x","slug":"é"}`} {
			g.do(root, "POST /gw/subaccounts", body).refused(400, "bad_request", "")
		}
		g.do(root, "POST /gw/subaccounts", `{"name":"x","slug":"`+strings.Repeat("a", 64)+`"}`).want(200, "")
	})
}

func TestSuspensionHoldsAtOnce(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub := g.rootKey(client), g.subAccount(client, "shop")
		issue := fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, sub)
		bound := g.do(root, "POST /gw/keys", issue).field("key")
		g.do(bound, "GET /gw/me", "").want(200, "")
		for range 3 {
			g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"status":"suspended"}`).want(204, "")
			g.do(bound, "GET /gw/me", "").refused(401, "unauthorized", "invalid gateway key")
			g.do(root, "POST /gw/keys", issue).refused(403, "forbidden", "sub-account not found or not active")
			g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"status":"active"}`).want(204, "")
			g.do(bound, "GET /gw/me", "").want(200, "")
		}
	})
}

func TestBranding(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		g.do(root, "GET /gw/branding", "").refused(404, "not_found", "")

		put := g.do(root, "PUT /gw/branding", `{"portal_slug":"acme","product_name":"Acme AI","logo_url":"https://a.example/l.png","accent_color":"#aaBB09","allow_self_issue":true}`)
		shape := fmt.Sprintf(`{"client_id":%q,"portal_slug":"acme","product_name":"Acme AI","logo_url":"https://a.example/l.png","accent_color":"#aaBB09","allow_self_issue":true,"created_at":%q,"updated_at":%q}`,
			client, put.field("created_at"), put.field("updated_at"))
		put.want(200, shape)
		g.do(root, "GET /gw/branding", "").want(200, shape)

		kept := g.do(root, "PUT /gw/branding", `{"portal_slug":"acme","product_name":"Acme","logo_url":null,"allow_self_issue":false}`)
		if kept.field("logo_url") != "https://a.example/l.png" || kept.field("accent_color") != "#aaBB09" || kept.field("created_at") != put.field("created_at") {
			g.Errorf("absent members: %s, want them kept", kept.body)
		}
		cleared := g.do(root, "PUT /gw/branding", `{"portal_slug":"acme","product_name":"Acme","logo_url":"","accent_color":"","allow_self_issue":false}`)
		if !strings.Contains(cleared.body, `"logo_url":null,"accent_color":null`) {
			g.Errorf("cleared members: %s, want null", cleared.body)
		}

		other := g.rootKey(g.client(unchanged))
		g.do(other, "PUT /gw/branding", `{"portal_slug":"acme","product_name":"Thief","allow_self_issue":false}`).refused(409, "conflict", "")
		g.do(other, "GET /gw/branding", "").refused(404, "not_found", "")

		for _, body := range []string{``, `{}`, `{"portal_slug":"acme"}`, `{"portal_slug":"Acme","product_name":"x"}`, `{"portal_slug":"acme","product_name":" "}`,
			`{"portal_slug":"acme","product_name":"` + strings.Repeat("é", 101) + `"}`,
			`{"portal_slug":"acme","product_name":"x","logo_url":"http://a"}`, `{"portal_slug":"acme","product_name":"x","logo_url":"javascript:x"}`,
			`{"portal_slug":"acme","product_name":"x","logo_url":7}`, `{"portal_slug":"acme","product_name":"x","accent_color":"red"}`,
			`{"portal_slug":"acme","product_name":"x","accent_color":"#12345g"}`, `{"portal_slug":"acme","product_name":"x","allow_self_issue":"yes"}`,
			`{"portal_slug":"acme","product_name":"x","allow_self_issue":null}`, `{"portal_slug":null,"product_name":"x"}`,
			`{"portal_slug":"acme","product_name":"x"}`} {
			g.do(root, "PUT /gw/branding", body).refused(400, "bad_request", "")
		}
		g.do(root, "PUT /gw/branding", `{"portal_slug":"acme-2","product_name":"`+strings.Repeat("é", 100)+`","allow_self_issue":false}`).want(200, "")
	})
}

func TestModels(t *testing.T) {
	g := setup(t, "sqlite")
	client := g.client(func(c *modelgate.Client) {
		c.Ceiling.Entitlements = modelgate.Entitlements{{Axis: "provider", Provider: "azure-eu", ModelPattern: "*", Effect: "allow"},
			{Axis: "kind", Provider: "image", ModelPattern: "*", Effect: "allow"}}
	})
	// The key itself may use nothing: allowed is about the ceiling.
	key := g.key(client, func(k *modelgate.Key) { k.Entitlements, k.Scopes = nil, nil })
	a := g.do(key, "GET /gw/models", "").want(200, `{"models":[`+
		`{"slug":"black-forest/flux","display_name":"BLACK-FOREST/FLUX","author":"black-forest","kind":"image","allowed":true},`+
		`{"slug":"meta/llama/big","display_name":"META/LLAMA/BIG","author":"meta","kind":"llm","allowed":false,"context_length":1000},`+
		`{"slug":"openai/gpt-5-mini","display_name":"OPENAI/GPT-5-MINI","author":"openai","kind":"llm","allowed":true,"context_length":1000}]}`)
	b := g.do(key, "GET /v1/models", "").want(200, `{"object":"list","data":[`+
		openModel(`"id":"black-forest/flux","object":"model","created":0,"owned_by":"black-forest"`, "black-forest/flux", "image", "null", "image")+`,`+
		openModel(`"id":"meta/llama/big","object":"model","created":0,"owned_by":"meta"`, "meta/llama/big", "llm", "1000", "text")+`,`+
		openModel(`"id":"openai/gpt-5-mini","object":"model","created":1768435200,"owned_by":"openai"`, "openai/gpt-5-mini", "llm", "1000", "text")+
		`],"total_count":3,"links":{"next":null}}`)
	for _, route := range []string{"azure-eu", "deployment-7", "fal", "together"} {
		if strings.Contains(a.body+b.body, `"`+route) {
			t.Errorf("the route %s is shown", route)
		}
	}
	one := openModel(`"id":"openai/gpt-5-mini","object":"model","created":1768435200,"owned_by":"openai"`, "openai/gpt-5-mini", "llm", "1000", "text")
	g.do(key, "GET /v1/models/openai/gpt-5-mini", "").want(200, one)
	g.do(key, "GET /v1/models/openai%2Fgpt-5-mini", "").want(200, one)
	g.do(key, "GET /v1/models/openai%2fgpt-5-mini", "").want(200, one)
	g.do(key, "GET /v1/models/meta/llama/big", "").want(200, "")
	for path, slug := range map[string]string{"openai/none": "openai/none", "gpt-5-mini": "gpt-5-mini", "openai%2Fgpt-5-mini/x": "openai/gpt-5-mini/x"} {
		g.do(key, "GET /v1/models/"+path, "").refused(404, "not_found", `model "`+slug+`" not found in catalog (see GET /v1/models)`)
	}
}

// openModel is a model without a price in the list for OpenAI's clients: their
// members first, then those of OpenRouter's.
func openModel(openai, slug, kind, context, output string) string {
	return `{` + openai + `,"name":"` + strings.ToUpper(slug) + `","canonical_slug":"` + slug + `","kind":"` + kind +
		`","context_length":` + context + `,"architecture":{"modality":"text->` + output + `","input_modalities":["text"],"output_modalities":["` + output +
		`"]},"pricing":{"prompt":"-1","completion":"-1"},"top_provider":{"context_length":` + context +
		`,"max_completion_tokens":null,"is_moderated":false},"supported_parameters":[],"supported_voices":null,"default_parameters":null,` +
		`"per_request_limits":null,"links":{"details":"/v1/models/` + slug + `"}}`
}

// TestBoundKeyIsConfined gives a key of an end customer every right there is
// and sees how far it gets.
func TestBoundKeyIsConfined(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		mine, neighbours := g.subAccount(client, "mine"), g.subAccount(client, "neighbours")
		root := g.rootKey(client)
		own := modelgate.Entitlements{{Axis: "vendor", Provider: "openai", ModelPattern: "*", Effect: "allow"}}
		denies := modelgate.Entitlements{{Axis: "kind", Provider: "image", ModelPattern: "*", Effect: "deny"}}
		key := g.key(client, func(k *modelgate.Key) { k.SubAccountID, k.Entitlements, k.Denies = mine, own, denies })

		for _, target := range []string{"GET /gw/subaccounts", "POST /gw/subaccounts", "PATCH /gw/subaccounts/" + string(mine), "GET /gw/branding", "PUT /gw/branding"} {
			g.do(key, target, `{}`).refused(403, "forbidden", "")
		}
		g.do(key, "GET /gw/me", "").rights(`{"scopes":["inference:use","stats:read","keys:manage"],"entitlements":` + must(g, own) + `}`)
		g.do(key, "GET /gw/ceiling", "").want(200, `{"max_scopes":["inference:use","stats:read","keys:manage"],"entitlements":`+
			must(g, append(own[:1:1], denies...))+`}`)
		var models struct{ Models []object }
		g.do(key, "GET /gw/models", "").into(&models)
		for _, m := range models.Models {
			if want := m["author"] == "openai"; m["allowed"] != want {
				g.Errorf("%v: allowed %v under its own ceiling, want %t", m["slug"], m["allowed"], want)
			}
		}

		g.do(root, "POST /gw/keys", fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, neighbours)).want(200, "")
		child := g.do(key, "POST /gw/keys", `{"scopes":["stats:read"]}`)
		if child.field("sub_account_id") != string(mine) {
			g.Errorf("a key issued by a bound key: %s, want it bound to %s", child.body, mine)
		}
		g.do(key, "POST /gw/keys", fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, mine)).want(200, "")
		g.do(key, "POST /gw/keys", fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, neighbours)).refused(403, "forbidden", "sub-account not found or not active")
		g.do(key, "POST /gw/keys", `{"scopes":[],"entitlements":[{"provider":"*","model_pattern":"*","effect":"allow"}]}`).refused(403, "forbidden", "")

		var keys []object
		g.do(key, "GET /gw/keys", "").into(&keys)
		for _, k := range keys {
			if k["sub_account_id"] != string(mine) {
				g.Errorf("a bound key sees %v", k)
			}
		}
		var all []object
		g.do(root, "GET /gw/keys", "").into(&all)
		if len(keys) != 3 || len(all) != 5 {
			g.Errorf("%d keys for the end customer and %d in all, want 3 and 5", len(keys), len(all))
		}
		for _, k := range all {
			target := "DELETE /gw/keys/" + fmt.Sprint(k["id"])
			if k["sub_account_id"] != string(mine) {
				g.do(key, target, "").refused(404, "not_found", "key not found")
			}
		}
		g.do(key, "DELETE /gw/keys/"+child.field("api_key_id"), "").want(204, "")
		g.do(child.field("key"), "GET /gw/me", "").refused(401, "unauthorized", "")

		cursor := g.do(root, "GET /gw/keys?limit=1", "").header.Get("X-Next-Cursor")
		g.do(key, "GET /gw/keys?limit=1&cursor="+cursor, "").refused(400, "bad_request", "")
	})
}
