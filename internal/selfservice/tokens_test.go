package selfservice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/selfservice"
	"modelgate/internal/store"
)

// tokenGate is a gate that mints browser tokens.
func tokenGate(g *gate) {
	g.keys = auth.New(auth.Options{Source: g.db, Tokens: g.db, Unreachable: store.Unreachable, Touch: g.db.TouchKeys, Now: time.Now, Log: g.options.Log})
	g.remake(func(o *selfservice.Options) {
		o.Keys = g.keys
		o.Tokens = selfservice.TokenBounds{MaxTTL: time.Hour, DefaultCap: modelgate.USD, PerClient: 10}
	})
}

type minted struct {
	TokenID   string    `json:"token_id"`
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (g *gate) mint(key, body string) (m minted) {
	g.Helper()
	g.do(key, "POST /gw/tokens", body).into(&m)
	return m
}

// A token reaches what pages need, and no other route.
func TestTokenRoutes(t *testing.T) {
	each(t, func(g *gate) {
		tokenGate(g)
		token := g.mint(g.rootKey(g.client(unchanged)), `{"end_user":"u","models":["openai/*"]}`).Token
		open := []string{"GET /gw/me", "GET /gw/models", "GET /gw/quota", "GET /v1/models", "GET /v1/models/openai/gpt-5-mini"}
		for _, row := range scopeTable {
			reply := g.do(token, row.endpoint, "")
			if slices.Contains(open, row.endpoint) {
				reply.want(200, "")
			} else {
				reply.refused(403, "forbidden", "a token cannot use this route")
			}
		}
	})
}

// A token ends with its key and its key's sub-account, at once on this instance.
func TestTokenEnds(t *testing.T) {
	each(t, func(g *gate) {
		tokenGate(g)
		client := g.client(unchanged)
		root := g.rootKey(client)
		sub := g.subAccount(client, "customer")
		key := modelgate.KeyID(g.ids.New().String())
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID, k.ID = sub, key })
		first := g.mint(bound, `{"end_user":"u","models":["openai/*"],"expires_in_seconds":60}`)
		if left := time.Until(first.ExpiresAt); left <= 0 || left > time.Minute {
			g.Errorf("a token of a minute ends in %s", left)
		}
		g.do(first.Token, "GET /gw/me", "").want(200, "")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"status":"suspended"}`).want(204, "")
		g.do(first.Token, "GET /gw/me", "").refused(401, "unauthorized", "invalid gateway key")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"status":"active"}`).want(204, "")
		g.do(first.Token, "GET /gw/me", "").want(200, "")
		g.do(root, "DELETE /gw/keys/"+string(key), "").want(204, "")
		g.do(first.Token, "GET /gw/me", "").refused(401, "unauthorized", "invalid gateway key")
	})
}

// A token reads its own rate and cap, whatever binds its key; no list of budgets
// has its cap.
func TestQuotaOfAToken(t *testing.T) {
	each(t, func(g *gate) {
		tokenGate(g)
		client := g.client(unchanged)
		root := g.rootKey(client)
		sub := g.subAccount(client, "customer")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":100}`).want(204, "")
		g.put(root, `{"scope":"client","period":"month","limit_usd":9}`)
		g.do(root, "PUT /gw/limits", `{"scope":"client","unit":"tokens","window":"minute","limit":1000}`).want(204, "")
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		token := g.mint(bound, `{"end_user":"u","models":["openai/*"],"max_usd":0.5,"requests_per_minute":5}`)
		g.do(token.Token, "GET /gw/quota", "").want(200, fmt.Sprintf(`{"limits":[`+
			`{"kind":"rate","scope":"token","id":%[1]q,"unit":"requests","window":"minute","limit":5,"used":1,"remaining":4,"resets_at":null},`+
			`{"kind":"token","scope":"token","id":%[1]q,"unit":"usd","limit":0.5,"used":0,"remaining":0.5,"resets_at":null}]}`, token.TokenID))
		var budgets []struct{ Scope string }
		g.do(root, "GET /gw/budgets", "").into(&budgets)
		if len(budgets) != 1 || budgets[0].Scope != "client" {
			g.Errorf("the budgets are %+v", budgets)
		}
	})
}

// An end customer mints and reads caps as billed; nobody mints past the bound.
func TestTokensOfCustomers(t *testing.T) {
	each(t, func(g *gate) {
		tokenGate(g)
		client := g.client(unchanged)
		root := g.rootKey(client)
		sub := g.subAccount(client, "customer")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":100}`).want(204, "")
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub; k.Scopes = []modelgate.Scope{modelgate.InferenceUse} })
		token := g.mint(bound, `{"end_user":"u","models":["openai/*"],"max_usd":3}`)
		var list []struct {
			TokenID string  `json:"token_id"`
			MaxUSD  float64 `json:"max_usd"`
		}
		g.do(bound, "GET /gw/tokens", "").into(&list)
		if len(list) != 1 || list[0].TokenID != token.TokenID || list[0].MaxUSD != 3 {
			g.Errorf("the customer sees %+v", list)
		}
		g.do(root, "GET /gw/tokens", "").into(&list)
		if len(list) != 1 || list[0].MaxUSD != 1.5 {
			g.Errorf("the reseller sees %+v, want what the cap costs", list)
		}
		g.do(root, "DELETE /gw/tokens?end_user=u", "").want(204, "")
		if g.do(token.Token, "GET /gw/me", "").status != 401 {
			g.Error("a revoked token works")
		}
		for range 10 {
			g.mint(root, `{"end_user":"u","models":["openai/*"]}`)
		}
		g.do(root, "POST /gw/tokens", `{"end_user":"u","models":["openai/*"]}`).refused(409, "conflict", "")
		for _, text := range []string{token.Token, "end_user\":\"u"} {
			if strings.Contains(g.log.String(), text) {
				g.Errorf("the log has %s", text)
			}
		}
	})
}
