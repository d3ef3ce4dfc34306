package modelgate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

func tokenRequest() modelgate.TokenRequest {
	return modelgate.TokenRequest{EndUser: "u-1", Models: []string{"openai/*"}, ExpiresInSeconds: 900, RequestsPerMinute: 60, Cap: modelgate.USD}
}

func TestTokenRequestValidate(t *testing.T) {
	t.Parallel()
	many := func(n int, s string) (list []string) {
		for range n {
			list = append(list, s)
		}
		return list
	}
	for name, test := range map[string]struct {
		change func(*modelgate.TokenRequest)
		fault  string // "" is accepted
	}{
		"plain": {func(*modelgate.TokenRequest) {}, ""},
		"largest": {func(r *modelgate.TokenRequest) {
			r.EndUser, r.ExpiresInSeconds, r.RequestsPerMinute, r.Cap = strings.Repeat("u", 128), 3600, 6000, modelgate.MaxBudget
		}, ""},
		"no cap":           {func(r *modelgate.TokenRequest) { r.Cap = 0 }, ""},
		"no user":          {func(r *modelgate.TokenRequest) { r.EndUser = "" }, "end_user"},
		"long user":        {func(r *modelgate.TokenRequest) { r.EndUser = strings.Repeat("u", 129) }, "end_user"},
		"user of two":      {func(r *modelgate.TokenRequest) { r.EndUser = "a\nb" }, "end_user"},
		"user not in text": {func(r *modelgate.TokenRequest) { r.EndUser = "\xff" }, "end_user"},
		"no models":        {func(r *modelgate.TokenRequest) { r.Models = nil }, "models"},
		"empty model":      {func(r *modelgate.TokenRequest) { r.Models = []string{""} }, "models"},
		"fifty models":     {func(r *modelgate.TokenRequest) { r.Models = many(50, "a/b") }, ""},
		"too many models":  {func(r *modelgate.TokenRequest) { r.Models = many(51, "a/b") }, "models"},
		"too short":        {func(r *modelgate.TokenRequest) { r.ExpiresInSeconds = 29 }, "expires_in_seconds must be an integer from 30 to 3600"},
		"too long":         {func(r *modelgate.TokenRequest) { r.ExpiresInSeconds = 3601 }, "expires_in_seconds"},
		"no requests":      {func(r *modelgate.TokenRequest) { r.RequestsPerMinute = 0 }, "requests_per_minute"},
		"many requests":    {func(r *modelgate.TokenRequest) { r.RequestsPerMinute = 6001 }, "requests_per_minute"},
		"too dear":         {func(r *modelgate.TokenRequest) { r.Cap = modelgate.MaxBudget + 1 }, "max_usd"},
		"origin":           {func(r *modelgate.TokenRequest) { r.Origins = []string{"https://a.example:8443", "app://local"} }, ""},
		"no origins":       {func(r *modelgate.TokenRequest) { r.Origins = []string{} }, "origins"},
		"too many origins": {func(r *modelgate.TokenRequest) { r.Origins = many(11, "https://a.example") }, "origins"},
		"null origin":      {func(r *modelgate.TokenRequest) { r.Origins = []string{"null"} }, "origins"},
		"origin with path": {func(r *modelgate.TokenRequest) { r.Origins = []string{"https://a.example/"} }, "origins"},
		"star":             {func(r *modelgate.TokenRequest) { r.Origins = []string{"https://*.example"} }, "origins"},
		"pairs":            {func(r *modelgate.TokenRequest) { r.Attribution = map[string]string{"team": "a"} }, ""},
		"key's pair":       {func(r *modelgate.TokenRequest) { r.Attribution = map[string]string{"token_id": "a"} }, "token_id is set by the gateway"},
		"user's pair":      {func(r *modelgate.TokenRequest) { r.Attribution = map[string]string{"end_user": "a"} }, "end_user is set by the gateway"},
		"pair's key":       {func(r *modelgate.TokenRequest) { r.Attribution = map[string]string{"a b": "a"} }, "attribution"},
		"pair's value":     {func(r *modelgate.TokenRequest) { r.Attribution = map[string]string{"a": "\x00"} }, "attribution"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tokenRequest()
			test.change(&r)
			err := r.Validate(3600)
			switch {
			case test.fault == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.fault != "" && (modelgate.KindOf(err) != modelgate.BadRequest || !strings.Contains(err.Error(), test.fault)):
				t.Errorf("%v, want bad_request about %s", err, test.fault)
			}
		})
	}
}

func TestMint(t *testing.T) {
	t.Parallel()
	r := tokenRequest()
	id := modelgate.NewIDs(time.Now).New()
	token, secret := r.Mint(id)
	text := secret.Reveal()
	if !modelgate.IsToken(text) || !modelgate.WellFormed(text) || len(text) != 55 {
		t.Errorf("the secret %q", text)
	}
	if modelgate.WellFormed(text[:54]+"g") || modelgate.WellFormed("gw_live_"+text[7:]) || modelgate.WellFormed(text[:54]) {
		t.Error("a changed token is well-formed")
	}
	if token.ExpiresAt.Sub(token.CreatedAt) != 15*time.Minute || string(token.ID) != id.String() {
		t.Errorf("%+v", token)
	}
	if b, capped := token.Budget(); !capped || b.Limit != modelgate.USD || b.Level != modelgate.LevelToken {
		t.Errorf("cap %+v, %v", b, capped)
	}
	if got := modelgate.KeyFault("gw_tmp_00"); got != "it has 9 characters instead of 55" {
		t.Errorf("fault %q", got)
	}
}

func TestCallerAs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	budget := modelgate.Budget{Level: modelgate.LevelKey, ID: "k", Period: modelgate.Day, Limit: 5}
	key := modelgate.Caller{
		KeyID: "k", Scopes: modelgate.AllScopes(), Budgets: []modelgate.Budget{budget},
		Entitlements: modelgate.Entitlements{{Axis: modelgate.AxisProvider, Provider: "*", ModelPattern: "*", Effect: modelgate.Allow}},
	}
	token := &modelgate.Token{ID: "t", EndUser: "u", Models: []string{"openai/gpt-*"}, Cap: 7, ExpiresAt: now.Add(time.Minute)}
	c := key.As(token)
	if diff := cmp.Diff([]modelgate.Scope{modelgate.InferenceUse}, c.Scopes); diff != "" {
		t.Errorf("scopes: %s", diff)
	}
	if len(key.Budgets) != 1 || len(c.Budgets) != 2 || c.Budgets[1].Level != modelgate.LevelToken || c.Budgets[1].Limit != 7 {
		t.Errorf("budgets %+v of a key with %+v", c.Budgets, key.Budgets)
	}
	if !c.Live(now) || c.Live(now.Add(time.Minute)) {
		t.Error("it does not end with the token")
	}
	key.ExpiresAt = now.Add(time.Second)
	if c := key.As(token); c.Live(now.Add(time.Second)) {
		t.Error("it does not end with the key")
	}
	model := func(slug string) *modelgate.Model { return &modelgate.Model{Slug: slug} }
	for name, test := range map[string]struct {
		models []*modelgate.Model
		want   bool
	}{
		"named":        {[]*modelgate.Model{model("openai/gpt-5")}, true},
		"one of two":   {[]*modelgate.Model{model("a/b"), model("openai/gpt-5")}, true},
		"other":        {[]*modelgate.Model{model("openai/o3")}, false},
		"uncatalogued": {nil, false},
	} {
		target := modelgate.Target{Provider: "p", Model: "m", Catalog: test.models}
		if !key.Permit(target) {
			t.Fatalf("%s: the key itself may not", name)
		}
		if got := c.Permit(target); got != test.want {
			t.Errorf("%s: permitted %v, want %v", name, got, test.want)
		}
	}
	if !key.PermitProvider("p", nil) || c.PermitProvider("p", nil) {
		t.Error("a call without a model is the key's to make, and not the token's")
	}
	if c.Sees(&budget) || !c.Sees(&c.Budgets[1]) {
		t.Error("a token sees its own cap and nothing else")
	}
}

func TestTokenOrigin(t *testing.T) {
	t.Parallel()
	anywhere, bound := modelgate.Token{}, modelgate.Token{Origins: []string{"https://a.example"}}
	for origin, want := range map[string]bool{"": false, "https://a.example": true, "https://A.example": false, "https://a.example:443": false, "https://a.example, https://b.example": false} {
		if !anywhere.PermitsOrigin(origin) || bound.PermitsOrigin(origin) != want {
			t.Errorf("%q: %v", origin, !want)
		}
	}
}

func TestTokenAttribute(t *testing.T) {
	t.Parallel()
	token := modelgate.Token{ID: "t", EndUser: "u", Attribution: map[string]string{"team": "a"}}
	got, err := token.Attribute(map[string]string{"env": "prod", "team": "a"})
	if diff := cmp.Diff(map[string]string{"token_id": "t", "end_user": "u", "team": "a", "env": "prod"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, key := range []string{"end_user", "team"} {
		if _, err := token.Attribute(map[string]string{key: "other"}); modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("another %s: %v", key, err)
		}
	}
	if !token.Made(got) || token.Made(map[string]string{"end_user": "u"}) || (&modelgate.Token{EndUser: "v"}).Made(got) {
		t.Error("jobs are those of tokens of the same end user")
	}
}
