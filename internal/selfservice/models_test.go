package selfservice_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/selfservice"
)

// priced gives a gate a catalog whose first model has every price and every
// description.
func priced(g *gate) {
	g.Helper()
	price := &modelgate.Price{}
	for unit, nano := range map[modelgate.Unit]int64{
		modelgate.UnitInput: 250_000_000, modelgate.UnitCachedInput: 25_000_001, modelgate.UnitCacheWrite: 0, modelgate.UnitCacheWrite1h: 1,
		modelgate.UnitOutput: 2_000_000_000, modelgate.UnitAudioInput: 3_000_000_000, modelgate.UnitAudioOutput: 4_000_000_000,
		modelgate.UnitRequest: 1_500_000, modelgate.UnitSearch: 10_000_000_000,
	} {
		if err := price.Base.Set(unit, modelgate.Nano(nano)); err != nil {
			g.Fatal(err)
		}
	}
	var later modelgate.Rates
	later.SetPerMillion(modelgate.UnitOutput, 7)
	price.Tiers = []modelgate.TierPrice{{Above: 1, Rates: later}}
	price.Dated = []modelgate.DatedPrice{{From: time.Now().Add(time.Hour), Price: &modelgate.Price{Base: later}}}
	c, err := modelgate.NewCatalog([]*modelgate.Model{
		{Slug: "acme/dear", DisplayName: "Dear", Kind: modelgate.LLM, ContextLength: 1000, MaxOutput: 100, Price: price,
			Description: "Sees and reads.", SupportedParameters: []string{"tools", "temperature"},
			Modalities: modelgate.Modalities{Input: []string{"text", "image"}},
			Routes:     []modelgate.Route{{Provider: "p", Model: "dear", Region: "us"}, {Provider: "q", Model: "dear", Region: "eu", Price: &modelgate.Price{Base: later}}}},
		{Slug: "acme/film", Kind: modelgate.Video, Routes: []modelgate.Route{{Provider: "p", Model: "film", Region: "us"}}},
		{Slug: "acme/3d", Kind: modelgate.ThreeD, Routes: []modelgate.Route{{Provider: "p", Model: "3d", Region: "us"}}},
		{Slug: "acme/vectors", Kind: modelgate.Embedding, ContextLength: 8, Routes: []modelgate.Route{{Provider: "p", Model: "vectors", Region: "eu"}}},
	}, nil)
	if err != nil {
		g.Fatal(err)
	}
	g.catalog = c
}

func TestModelPricesAreExactDecimalsPerUnit(t *testing.T) {
	g := setup(t, "sqlite")
	priced(g)
	client := g.client(unchanged)
	const own = `{"prompt":"0.00000025","completion":"0.000002","input_cache_read":"0.000000025000001","input_cache_write":"0",` +
		`"input_cache_write_1h":"0.000000000000001","audio":"0.000003","audio_output":"0.000004","request":"0.0015","web_search":"0.01"}`
	model := g.do(g.rootKey(client), "GET /v1/models/acme/dear", "").want(200, "")
	for _, want := range []string{
		`"pricing":` + own, `"description":"Sees and reads."`, `"supported_parameters":["tools","temperature"]`,
		`"architecture":{"modality":"text+image->text","input_modalities":["text","image"],"output_modalities":["text"]}`,
		`"top_provider":{"context_length":1000,"max_completion_tokens":100,"is_moderated":false}`,
	} {
		if !strings.Contains(model.body, want) {
			t.Errorf("%s, want %s", model.body, want)
		}
	}
	for slug, output := range map[string]string{"acme/film": "video", "acme/3d": "3d", "acme/vectors": "embeddings"} {
		one := g.do(g.rootKey(client), "GET /v1/models/"+slug, "").want(200, "")
		if !strings.Contains(one.body, `"output_modalities":["`+output+`"]`) || !strings.Contains(one.body, `"context_length":null`) {
			t.Errorf("%s: %s", slug, one.body)
		}
	}

	// An end customer sees what it is billed, rounded half to even: 1e-15 and a
	// half is 2e-15.
	account := g.subAccount(client, "customer")
	if _, err := g.raw.Exec("UPDATE sub_account SET markup = 50000000"); err != nil {
		t.Fatal(err)
	}
	bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = account })
	const billed = `{"prompt":"0.000000375","completion":"0.000003","input_cache_read":"0.000000037500002","input_cache_write":"0",` +
		`"input_cache_write_1h":"0.000000000000002","audio":"0.0000045","audio_output":"0.000006","request":"0.00225","web_search":"0.015"}`
	if model := g.do(bound, "GET /v1/models/acme/dear", "").want(200, ""); !strings.Contains(model.body, `"pricing":`+billed) {
		t.Errorf("for a customer: %s, want %s", model.body, billed)
	}
	// Calls of an organization that stays in the EU take the second route.
	european := g.client(func(c *modelgate.Client) { c.RoutingPolicy = modelgate.EUOnly })
	if model := g.do(g.rootKey(european), "GET /v1/models/acme/dear", "").want(200, ""); !strings.Contains(model.body, `"pricing":{"prompt":"-1","completion":"0.000000000000007"}`) {
		t.Errorf("in the EU: %s", model.body)
	}
}

func TestModelsThatTheKeyMayCall(t *testing.T) {
	g := setup(t, "sqlite")
	priced(g)
	client := g.client(unchanged)
	european := g.client(func(c *modelgate.Client) { c.RoutingPolicy = modelgate.EUOnly })
	all := "acme/3d acme/dear acme/film acme/vectors"
	for name, c := range map[string]struct {
		key, query, want string
	}{
		"all":          {g.rootKey(client), "", all},
		"not narrowed": {g.rootKey(client), "?allowed=false", all},
		"all allowed":  {g.rootKey(client), "?allowed=true", all},
		"one kind": {g.key(client, func(k *modelgate.Key) {
			k.Entitlements[0] = modelgate.Entitlement{Axis: "kind", Provider: "video", ModelPattern: "*", Effect: "allow"}
		}), "?allowed=true", "acme/film"},
		"denied": {g.key(client, func(k *modelgate.Key) {
			k.Denies = modelgate.Entitlements{{Axis: "kind", Provider: "*", ModelPattern: "*", Effect: "deny"}}
		}), "?allowed=true", ""},
		"second route": {g.key(client, func(k *modelgate.Key) {
			k.Entitlements[0] = modelgate.Entitlement{Axis: "provider", Provider: "q", ModelPattern: "*", Effect: "allow"}
		}), "?allowed=true", "acme/dear"},
		"no inference":  {g.key(client, func(k *modelgate.Key) { k.Scopes = []modelgate.Scope{modelgate.StatsRead} }), "?allowed=true", ""},
		"only in EU":    {g.rootKey(european), "?allowed=true", "acme/dear acme/vectors"},
		"other unknown": {g.rootKey(client), "?beta=true&limit=0", all},
	} {
		var list struct {
			Data  []struct{ ID string }
			Total int `json:"total_count"`
		}
		a := g.do(c.key, "GET /v1/models"+c.query, "").want(200, "")
		if err := json.Unmarshal([]byte(a.body), &list); err != nil {
			t.Fatal(err)
		}
		var slugs []string
		for _, m := range list.Data {
			slugs = append(slugs, m.ID)
		}
		if got := strings.Join(slugs, " "); got != c.want || list.Total != len(slugs) {
			t.Errorf("%s: %q of %d, want %q", name, got, list.Total, c.want)
		}
	}
	g.do(g.rootKey(client), "GET /v1/models?allowed=yes", "").refused(400, "bad_request", "allowed must be true or false")
	g.do(g.rootKey(client), "GET /v1/models?allowed=true&allowed=true", "").refused(400, "bad_request", "allowed must be given once")
}

// claudes gives a gate five models that Anthropic's clients can call, each newer
// than the one before, and two that they cannot.
func claudes(g *gate) string {
	g.Helper()
	var models []*modelgate.Model
	for i := range 5 {
		m := &modelgate.Model{Slug: fmt.Sprintf("anthropic/claude-%d", i), DisplayName: fmt.Sprintf("Claude %d", i), Kind: modelgate.LLM, ContextLength: 200000,
			MaxOutput: 64000, Routes: []modelgate.Route{{Provider: "anthropic", Model: fmt.Sprintf("claude-%d", i)}}}
		if i > 0 {
			m.Created = time.Date(2026, time.Month(i), 2, 3, 4, 5, 0, time.UTC)
		}
		models = append(models, m)
	}
	gpt := &modelgate.Model{Slug: "openai/gpt", Kind: modelgate.LLM, Created: time.Now(), Routes: []modelgate.Route{{Provider: "openai", Model: "gpt"}}}
	picture := &modelgate.Model{Slug: "openai/picture", Kind: modelgate.Image, Routes: []modelgate.Route{{Provider: "openai", Model: "picture"}}}
	c, err := modelgate.NewCatalog(append(models, gpt, picture), nil)
	if err != nil {
		g.Fatal(err)
	}
	g.catalog = c
	g.remake(func(o *selfservice.Options) {
		o.Doors = func(m *modelgate.Model) []string {
			if m.Author() == "anthropic" {
				return []string{"/v1/chat/completions", "/v1/messages"}
			}
			return []string{"/v1/chat/completions"}
		}
	})
	return g.rootKey(g.client(unchanged))
}

// anthropic sends a request as Anthropic's clients do.
func (g *gate) anthropic(key, path string) *reply {
	g.Helper()
	r := httptest.NewRequestWithContext(g.Context(), "GET", path, nil)
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	return g.send(r)
}

func TestModelsForAnthropicsClients(t *testing.T) {
	g := setup(t, "sqlite")
	key := claudes(g)
	one := func(n, created string) string {
		return `{"type":"model","id":"anthropic/claude-` + n + `","display_name":"Claude ` + n + `","created_at":"` + created +
			`","max_input_tokens":200000,"max_tokens":64000,"capabilities":null,"lifecycle":"active","line":null,"deprecated_at":null,"retires_at":null}`
	}
	g.anthropic(key, "/v1/models?limit=1").want(200, `{"data":[`+one("4", "2026-04-02T03:04:05Z")+
		`],"has_more":true,"first_id":"anthropic/claude-4","last_id":"anthropic/claude-4"}`)
	g.anthropic(key, "/v1/models/anthropic/claude-0").want(200, one("0", "1970-01-01T00:00:00Z"))
	g.anthropic(key, "/v1/models/anthropic%2Fclaude-0").want(200, one("0", "1970-01-01T00:00:00Z"))
	for _, slug := range []string{"openai/gpt", "openai/picture", "openai/none"} {
		g.anthropic(key, "/v1/models/"+slug).refused(404, "not_found", `model "`+slug+`" not found in catalog (see GET /v1/models)`)
	}

	for query, want := range map[string]struct {
		ids  string // the numbers of the models
		more bool
	}{
		"":                                      {"43210", false},
		"?limit=1000":                           {"43210", false},
		"?limit=5":                              {"43210", false},
		"?limit=4":                              {"4321", true},
		"?limit=2&after_id=anthropic/claude-4":  {"32", true},
		"?limit=2&after_id=anthropic/claude-2":  {"10", false},
		"?after_id=anthropic%2Fclaude-0":        {"", false},
		"?limit=2&before_id=anthropic/claude-0": {"21", true},
		"?limit=2&before_id=anthropic/claude-2": {"43", false},
		"?before_id=anthropic/claude-4":         {"", false},
		"?allowed=true&limit=2":                 {"43", true},
	} {
		var list struct {
			Data    []struct{ ID string }
			HasMore bool    `json:"has_more"`
			FirstID *string `json:"first_id"`
			LastID  *string `json:"last_id"`
		}
		a := g.anthropic(key, "/v1/models"+query).want(200, "")
		if err := json.Unmarshal([]byte(a.body), &list); err != nil {
			t.Fatal(err)
		}
		ids := ""
		for _, m := range list.Data {
			ids += strings.TrimPrefix(m.ID, "anthropic/claude-")
		}
		if ids != want.ids || list.HasMore != want.more {
			t.Errorf("%q: %q, more %v, want %q, %v", query, ids, list.HasMore, want.ids, want.more)
		}
		if ends := list.FirstID != nil && list.LastID != nil; ends != (ids != "") {
			t.Errorf("%q: %s", query, a.body)
		} else if ends && (*list.FirstID != list.Data[0].ID || *list.LastID != list.Data[len(list.Data)-1].ID) {
			t.Errorf("%q: from %s to %s: %s", query, *list.FirstID, *list.LastID, a.body)
		}
	}
	for query, message := range map[string]string{
		"limit=0": "limit must be an integer from 1 to 1000", "limit=1001": "", "limit=x": "", "after_id=": "", "after_id=openai/gpt": "after_id is not the id of a model in this list",
		"before_id=none": "before_id is not the id of a model in this list", "after_id=anthropic/claude-1&before_id=anthropic/claude-2": "give after_id or before_id, not both",
		"allowed=1": "",
	} {
		g.anthropic(key, "/v1/models?"+query).refused(400, "bad_request", message)
	}
}
