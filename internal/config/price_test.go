package config_test

import (
	"testing"
	"time"

	"modelgate/internal/pricing"

	"modelgate"
)

// null takes a unit away while an entry of dated holds.
func TestDatedNull(t *testing.T) {
	t.Parallel()
	cfg := load(t, "catalog:\n  - {slug: a/b, kind: llm, routes: [{provider: p, model: m}], price: {input: 1, search: 5, dated: [{from: 2026-12-01, until: 2026-12-02, search: null}]}}\n")
	for day, want := range map[int]pricing.Coverage{0: pricing.FullyPriced, 1: pricing.PartPriced, 2: pricing.FullyPriced} {
		at := time.Date(2026, 11, 30+day, 12, 0, 0, 0, time.UTC)
		if cost, priced, label := pricing.Cost(cfg.Catalog[0].Price, &modelgate.Usage{Input: 1e6, Searches: 1}, at); priced != want {
			t.Errorf("%s: outcome %d at %s (%s), want %d", at, priced, cost, label, want)
		}
	}
}

// Every unit that is counted can be priced, and every price is of a unit.
func TestUnitsOfPrices(t *testing.T) {
	t.Parallel()
	for u := range modelgate.UnitCount {
		load(t, "catalog:\n  - {slug: a/b, kind: llm, routes: [{provider: p, model: m}], price: {"+u.String()+": 1}}\n")
	}
}

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
		later    = `{input: 1, search: 5, second: [{size: 1080p, audio: true, usd: 0.4}, {usd: 0.1}], tiers: [{above: 1000, input: 9}], dated: [
			{from: 2026-12-01, until: 2027-01-01, input: 2, tiers: [], search: null}, {from: 2027-06-01, second: 7, multipliers: {speed: {fast: 3}}}, {from: 2027-07-01, minute: 6}]}`
		priority = `{input: 1, variants: [{service_tier: priority, input: 1.818181}, {service_tier: priority, above: 272000, input: 4}], tiers: [{above: 272000, input: 3}], multipliers: {service_tier: {priority: 5}}}`
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
		{"every other unit", `{input: 1, output: 1, image_input: 2, image_output: 3, cached_audio_input: 4, cached_image_input: 5, video_input: 6, reasoning: 7, minute: 8, page: 9, file_search: 10, code_session: 11, grounded_request: 12}`,
			modelgate.Usage{ImageInput: 1e6, ImageOutput: 1e6, CachedAudioInput: 1e6, CachedImageInput: 1e6, VideoInput: 1e6, Reasoning: 1e6,
				Seconds: 60e6, Pages: 1, FileSearches: 1e3, CodeSessions: 1, GroundedRequests: 1e3}, noon, 77 * modelgate.USD},
		{"half a minute", "{minute: 0.000000003}", modelgate.Usage{Seconds: 30e6}, noon, 2},
		{"a film by size and sound", later, modelgate.Usage{Seconds: 1e6, Size: "1080p", Audio: "true"}, noon, 400_000_000},
		{"a film without sound", later, modelgate.Usage{Seconds: 1e6, Size: "1080p", Audio: "false"}, noon, 100_000_000},
		{"a tier before a date that has none", later, modelgate.Usage{Input: 2000}, noon, 18_000_000},
		{"a date without the tiers", later, modelgate.Usage{Input: 2000}, at("2026-12-01T00:00:00Z"), 4_000_000},
		{"after its end", later, modelgate.Usage{Input: 2000}, at("2027-01-01T00:00:00Z"), 18_000_000},
		{"a price in place of a table", later, modelgate.Usage{Seconds: 1e6, Size: "1080p", Audio: "true"}, at("2027-06-01T00:00:00Z"), 7 * modelgate.USD},
		{"a price by the minute in place of one by the second", later, modelgate.Usage{Seconds: 1e6}, at("2027-07-01T00:00:00Z"), modelgate.USD / 10},
		{"dated multipliers", later, modelgate.Usage{Input: 1000, Speed: "fast"}, at("2027-06-01T00:00:00Z"), 3_000_000},
		{"a variant, not its factor", priority, modelgate.Usage{Input: 1000, ServiceTier: "priority"}, noon, 1_818_181},
		{"a variant of a tier", priority, modelgate.Usage{Input: 300_000, ServiceTier: "priority"}, noon, 1_200_000_000},
		{"a window on its day", `{input: 2, windows: [{from: "10:00", to: "14:00", days: [sat], input: 1}]}`, million, noon, modelgate.USD},
		{"a window on another day", `{input: 2, windows: [{from: "10:00", to: "14:00", days: [sun, mon], input: 1}]}`, million, noon, 2 * modelgate.USD},
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
