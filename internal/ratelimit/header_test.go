package ratelimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"modelgate"
	"modelgate/internal/ratelimit"
)

// What WriteHeaders writes are structured fields, whatever the figures.
func TestHeadersAreStructuredFields(t *testing.T) {
	t.Parallel()
	rates := ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, time.Now))
	one := func(l modelgate.Level, u modelgate.LimitUnit, limit int64) *modelgate.RateLimit {
		return rule(modelgate.RateLimit{Level: l, Unit: u, Window: "minute", Limit: limit})
	}
	c := caller(
		one(modelgate.LevelClient, modelgate.UnitTokens, 1_000_000_000), one(modelgate.LevelClient, modelgate.UnitTokens, 100),
		one(modelgate.LevelClient, modelgate.UnitUSD, int64(modelgate.MaxBudget)), one(modelgate.LevelKey, modelgate.UnitUSD, int64(modelgate.USD)),
		one(modelgate.LevelKey, modelgate.UnitOutputTokens, 5000),
	)
	taken, err := rates.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: 10, Output: 20, Cost: modelgate.USD / 2})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	ratelimit.WriteHeaders(h, taken.Shown)
	for name, parameters := range map[string][]string{"RateLimit-Policy": {"q", "w"}, "RateLimit": {"r", "t"}} {
		list, err := httpsfv.UnmarshalList(h[http.CanonicalHeaderKey(name)])
		if err != nil || len(list) != 4 {
			t.Fatalf("%s %q: %d members, %v", name, h.Get(name), len(list), err)
		}
		named := map[any]bool{}
		for _, member := range list {
			item, ok := member.(httpsfv.Item)
			if !ok || named[item.Value] {
				t.Errorf("%s %q: names that are no items or twice there", name, h.Get(name))
			}
			named[item.Value] = true
			for _, p := range parameters {
				if n, _ := item.Params.Get(p); n == nil {
					t.Errorf("%s %q: a member without %s", name, h.Get(name), p)
				} else if n, ok := n.(int64); !ok || n < 0 {
					t.Errorf("%s %q: %s is %v", name, h.Get(name), p, n)
				}
			}
		}
		if !named["client-tokens-minute"] || !named["key-usd-minute"] {
			t.Errorf("%s %q", name, h.Get(name))
		}
	}
	if h.Get("X-Ratelimit-Limit-Tokens") != "100" || h.Get("X-Ratelimit-Remaining-Tokens") != "70" || h.Get("X-Ratelimit-Reset-Tokens") != "18s" {
		t.Errorf("of the tightest: %v", h)
	}
	none := http.Header{}
	ratelimit.WriteHeaders(none, nil)
	if len(none) != 0 {
		t.Errorf("without limits: %v", none)
	}
}
