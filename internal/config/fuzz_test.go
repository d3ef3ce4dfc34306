package config

import (
	"strings"
	"testing"

	"modelgate/internal/pricing"
)

// FuzzLoad reads any bytes as a configuration: whatever they are, there are
// faults with places in the file, or settings that the catalog accepts.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "# nothing\n", "server: {listen: \":0\"}\n", "log:\n  level: info\n  level: warn\n", "a: &x {b: *x}\n<<: *x\n", "? - a\n: {}\n",
		"redis: {url: \"${URL:-redis://h:1/0}\"}\n", "limits: {burst: 1e9}\n", "- - - a\n", "a: [\n", "--- \n...\n---\n", "\xff\xfe\x00", "a: |\n  b\n c", "\"", "{", "!!binary x",
		"providers:\n  - name: a\n    format: openai\n    base_url: https://a\n    auth: {header: k}\n    allow: ['GET /**']\n    headers: {A: b}\n",
		"catalog:\n  - slug: a/b\n    kind: llm\n    routes: [{provider: a, model: b}]\n    price:\n      input: 0.25\n      image: [{size: x, usd: 1}]\n      tiers: [{above: 1, input: 2}]\n      dated: [{from: 2026-12-01, input: 3}]\n      windows: [{from: \"23:00\", to: \"01:00\", input: 4}]\n      multipliers: {speed: {fast: 2}}\n",
		"prices:\n- {provider: a, model: '*', price: {request: .1}}\n",
	} {
		f.Add([]byte(seed))
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return
		}
		l := loader{env: func(name string) (string, bool) { return "env-" + name, name != "NONE" }}
		var cfg *Config
		if doc := l.parse("f", text); doc != nil {
			cfg = l.read(doc, folder)
		}
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + 1
		for _, fault := range append(l.faults, l.warnings...) {
			if fault.Message == "" || fault.File == "f" && (fault.Line < 0 || fault.Line > lines+1 || fault.Column < 0) {
				t.Errorf("%q: fault %+v", text, fault)
			}
		}
		if len(l.faults) > 0 {
			return
		}
		if cfg == nil {
			t.Fatalf("%q: neither faults nor a configuration", text)
		}
		catalog, err := cfg.NewCatalog()
		if err != nil {
			t.Fatalf("%q: the catalog refuses what has no faults: %v", text, err)
		}
		for _, m := range catalog.Models() {
			if m.Price == nil {
				continue
			}
			if worst, _ := pricing.Bound(m.Price, pricing.Demand{Input: 1, Output: 1}); worst < 0 {
				t.Errorf("%q: %s costs %s at worst", text, m.Slug, worst)
			}
		}
	})
}
