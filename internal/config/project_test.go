package config_test

import (
	"strings"
	"testing"

	"modelgate/internal/config"
)

func TestProjectFaults(t *testing.T) {
	t.Parallel()
	const europe = "https://europe-west4-aiplatform.googleapis.com"
	for _, c := range []struct{ format, host, rest, want string }{
		{"openai", europe, "project: p", "project: goes with format vertex only"},
		{"openai", europe, "location: l", "location: goes with format vertex only"},
		{"vertex", europe, "credential: k", "project: is missing"},
		{"vertex", europe, "{project: p, location: us-east5}", "location: contradicts base_url, whose host is in europe-west4"},
		{"vertex", "https://vertex.internal", "project: p", "needs location: the host of base_url does not say it"},
		{"vertex", europe, "project: a/b", "project: want 1 to 64 of a-z, 0-9, :, . and -"},
		{"vertex", europe, "project: \"-\"", "project: want 1 to 64"},
		{"vertex", europe, "project: " + strings.Repeat("p", 65), "project: want 1 to 64"},
	} {
		rest := strings.NewReplacer("{", "", "}", "", ", ", "\n    ").Replace(c.rest)
		text := strings.Replace(withIdentity(c.host, rest), "format: openai", "format: "+c.format, 1)
		if got := strings.Join(check(t, text), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %q", text, got, c.want)
		}
	}
	text := strings.Replace(withIdentity(europe, "project: acme.com:p-1"), "format: openai", "format: vertex", 1)
	cfg, err := config.Load(write(t, text), env(nil))
	if err != nil {
		t.Fatal(err)
	}
	if p := cfg.Providers[0]; p.Location != "europe-west4" || p.Region != "europe-west4" {
		t.Errorf("location %q in region %q", p.Location, p.Region)
	}
	text += "catalog:\n  - {slug: a/b, kind: llm, routes: [{provider: a, model: gemini-3-pro}]}\n"
	if got := strings.Join(check(t, text), "\n"); !strings.Contains(got, "routes[0].model: want publisher/model with format vertex") {
		t.Errorf("a model without publisher: %s", got)
	}
}
