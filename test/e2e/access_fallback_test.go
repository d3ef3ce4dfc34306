package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// TestAccessFallback: a key that names one model falls back to another
// provider only where the ceiling it was issued under opens that one too, and
// does not reach it through the provider proxy either. The ceiling of that
// moment counts, not a later one.
func TestAccessFallback(t *testing.T) {
	t.Parallel()
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream"})
	b := &block{T: t, gateway: testkit.StartGateway(t, testkit.GatewayOptions{Upstream: upstream.URL}), ledger: upstream.Ledger}
	client := b.gateway.NewClient("fallback")
	manager, _ := b.gateway.NewKey(client)
	ceiling := func(tuples string) {
		path := filepath.Join(t.TempDir(), "ceiling.json")
		text := `{"max_scopes":["inference:use","keys:manage"],"entitlements":` + tuples + `}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.gateway.Admin(nil, "ceiling", "set", "--client", string(client), "--file", path)
	}
	issue := func() string {
		const body = `{"scopes":["inference:use"],"entitlements":[{"axis":"vendor","provider":"acme","model_pattern":"both","effect":"allow"}]}`
		return b.member(b.call(manager, "POST /gw/keys", body, ""), "key")
	}
	wide := issue()
	ceiling(`[{"axis":"provider","provider":"openai","model_pattern":"*","effect":"allow"}]`)
	narrow := issue()
	ceiling(`[]`)
	for _, c := range []struct {
		name, key string
		models    []string // that the provider is asked for while the first route fails
		proxy     int
	}{
		{"open ceiling", wide, []string{"both-us", "both-eu"}, http.StatusOK},
		{"ceiling of one provider", narrow, []string{"both-us"}, http.StatusForbidden},
	} {
		before := b.ledger.Len()
		b.call(c.key, "POST /v1/chat/completions", `{"model":"acme/both","messages":[{"role":"user","content":"[[status=500]]"}]}`, "")
		var models []string
		for _, served := range b.ledger.All()[before:] {
			models = append(models, served.Model)
		}
		if !slices.Equal(models, c.models) {
			t.Errorf("%s: the provider was asked for %q, want %q", c.name, models, c.models)
		}
		for path, want := range map[string]int{"/openai": http.StatusOK, "/eu": c.proxy} {
			model := map[string]string{"/openai": "both-us", "/eu": "both-eu"}[path]
			a := b.call(c.key, "POST "+path+"/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, model), "")
			if a.status != want {
				t.Errorf("%s: %s on %s = %d %s, want %d", c.name, model, path, a.status, a.body, want)
			}
		}
	}
}
