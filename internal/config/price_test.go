package config_test

import (
	"testing"
	"time"

	"modelgate/internal/pricing"

	"modelgate"
)

// Each shape of a price, read from YAML, prices a usage.
func TestPriceShapes(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	noon := at("2026-11-21T12:00:00Z")
	million := modelgate.Usage{Input: 1e6}
	const (
		pictures = `{image: [{size: 1024x1024, quality: high, usd: 0.17}, {size: 1024x1024, usd: 0.04}, {quality: low, usd: 0.01}]}`
		layered  = `{input: 1, tiers: [{above: 200000, input: 2}], dated: [{from: 2026-12-01, input: 4}], windows: [{from: "23:00", to: "01:00", input: 0.5}]}`
		factors  = `{input: 2, multipliers: {service_tier: {flex: 0.5, priority: 2.5}, speed: {fast: 2}, inference_geo: {us: 1.1}}}`
	)
	for _, c := range []struct {
		name, price string
		usage       modelgate.Usage
		at          time.Time
		want        modelgate.Nano
	}{
		{"every unit", `{input: 1, cached_input: 2, cache_write: 3, cache_write_1h: 4, output: 5, audio_input: 6, audio_output: 7, image: 8, second: 9, characters: 10, search: 11, megapixel: 12, request: 13}`,
			modelgate.Usage{Input: 1e6, CachedInput: 1e6, CacheWrite: 1e6, CacheWrite1h: 1e6, Output: 1e6, AudioInput: 1e6, AudioOutput: 1e6,
				Images: 1, Seconds: 1e6, Characters: 1e6, Searches: 1e3, Megapixels: 1e6}, noon, 91 * modelgate.USD},
		{"the finest price", "{input: 0.000000001}", million, noon, 1},
		{"an exponent", "{input: 1e-3}", million, noon, modelgate.USD / 1000},
		{"what a float cannot hold", "{request: 0.1, second: 0.2}", modelgate.Usage{Seconds: 1e6}, noon, 300_000_000},
		{"more digits than a float holds", "{request: 12345.123456789}", modelgate.Usage{Input: 1}, noon, 12345_123456789},
		{"zero is a price", "{input: 2, cached_input: 0}", modelgate.Usage{CachedInput: 1e6}, noon, 0},
		{"picture", "{image: 0.04}", modelgate.Usage{Images: 3}, noon, 120_000_000},
		{"picture by both", pictures, modelgate.Usage{Images: 1, Size: "1024x1024", Quality: "high"}, noon, 170_000_000},
		{"picture by size", pictures, modelgate.Usage{Images: 1, Size: "1024x1024", Quality: "low"}, noon, 40_000_000},
		{"picture by quality", pictures, modelgate.Usage{Images: 1, Size: "512x512", Quality: "low"}, noon, 10_000_000},
		{"short prompt", layered, modelgate.Usage{Input: 200_000}, noon, 200_000_000},
		{"long prompt", layered, modelgate.Usage{Input: 300_000}, noon, 600_000_000},
		{"day before a date", layered, modelgate.Usage{Input: 100_000}, at("2026-11-30T22:59:59Z"), 100_000_000},
		{"from a date on", layered, modelgate.Usage{Input: 100_000}, at("2026-12-01T01:00:00Z"), 400_000_000},
		{"window", layered, modelgate.Usage{Input: 100_000}, at("2026-11-21T00:59:59Z"), 50_000_000},
		{"no multiplier", factors, million, noon, 2 * modelgate.USD},
		{"one multiplier", factors, modelgate.Usage{Input: 1e6, ServiceTier: "flex"}, noon, modelgate.USD},
		{"all multipliers", factors, modelgate.Usage{Input: 1e6, ServiceTier: "priority", Speed: "fast", InferenceGeo: "us"}, noon, 11 * modelgate.USD},
		{"until midnight", `{input: 2, windows: [{from: "12:00", to: "24:00", input: 1}]}`, million, at("2026-11-21T23:59:59Z"), modelgate.USD},
		{"from an instant on", `{input: 2, dated: [{from: "2026-11-21T14:00:00+02:00", input: 1}]}`, million, noon, modelgate.USD},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := load(t, "catalog:\n  - {slug: a/b, kind: llm, routes: [{provider: p, model: m}], price: "+c.price+"}\n")
			got, priced, label := pricing.Cost(cfg.Catalog[0].Price, &c.usage, c.at)
			if got != c.want || priced != pricing.FullyPriced {
				t.Errorf("%s costs %s (outcome %d, %s), want %s", c.price, got, priced, label, c.want)
			}
		})
	}
}
