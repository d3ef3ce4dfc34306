package config_test

import (
	"testing"
	"time"

	"modelgate/internal/pricing"

	"modelgate"
)

// The prices of a provider's tools complete those of its language models, and
// of nothing else.
func TestToolPrices(t *testing.T) {
	t.Parallel()
	cfg := load(t, `
providers:
  - {name: pa, format: openai, base_url: "http://127.0.0.1:1", credential: k, tool_prices: {search: 10, file_search: 2.5, code_session: 0.03, grounded_request: 35}}
  - {name: qa, format: openai, base_url: "http://127.0.0.1:1", credential: k}
  - {name: ra, format: openai, base_url: "http://127.0.0.1:1", credential: k, price_factor: 1.1, tool_prices: {search: 10}}
catalog:
  - {slug: a/region, kind: llm, routes: [{provider: ra, model: region}], price: {input: 1, dated: [{from: 1999-01-01, input: 2}]}}
  - {slug: a/plain, kind: llm, routes: [{provider: pa, model: plain}, {provider: qa, model: plain}], price: {input: 1, multipliers: {service_tier: {flex: 0.5}}}}
  - {slug: a/own, kind: llm, routes: [{provider: pa, model: own, price: {input: 1, search: 25}}]}
  - {slug: a/grounded, kind: llm, routes: [{provider: pa, model: grounded}], price: {input: 1, grounded_request: 14}}
  - {slug: a/unpriced, kind: llm, routes: [{provider: pa, model: unpriced}]}
  - {slug: a/rank, kind: rerank, routes: [{provider: pa, model: rank}], price: {input: 1}}
prices:
  - {provider: pa, model: "more-*", price: {input: 1, output: 2}}
`)
	catalog, err := cfg.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	searched := modelgate.Usage{Searches: 1, ServiceTier: "flex"}
	grounded := modelgate.Usage{Searches: 2, GroundedRequests: 1}
	for _, tt := range []struct {
		provider, model string
		usage           modelgate.Usage
		want            modelgate.Nano
		priced          pricing.Coverage
	}{
		{"pa", "plain", searched, 10_000_000, pricing.FullyPriced}, // no factor touches it
		{"pa", "plain", modelgate.Usage{FileSearches: 1, CodeSessions: 1}, 32_500_000, pricing.FullyPriced},
		{"pa", "plain", modelgate.Usage{Input: 1e6, Searches: 1, ServiceTier: "flex"}, 510_000_000, pricing.FullyPriced},
		{"qa", "plain", modelgate.Usage{Input: 1e6, Searches: 1}, modelgate.USD, pricing.PartPriced},
		{"ra", "region", modelgate.Usage{Input: 1e6, Searches: 1}, 1_110_000_000, pricing.FullyPriced}, // not on the search
		{"pa", "own", searched, 25_000_000, pricing.FullyPriced},
		{"pa", "plain", grounded, 20_000_000, pricing.FullyPriced},
		{"pa", "grounded", grounded, 14_000_000, pricing.FullyPriced},
		{"pa", "unpriced", searched, 0, pricing.Unpriced},
		{"pa", "rank", searched, 0, pricing.Unpriced},
		{"pa", "more-x", searched, 10_000_000, pricing.FullyPriced},
	} {
		cost, priced, label := pricing.Cost(catalog.ProxyPrice(tt.provider, tt.model), &tt.usage, time.Unix(0, 0))
		if cost != tt.want || priced != tt.priced {
			t.Errorf("%s at %s costs %s (outcome %d, %q), want %s (%d)", tt.model, tt.provider, cost, priced, label, tt.want, tt.priced)
		}
	}
}
