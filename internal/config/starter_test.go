package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/pricing"
)

func starter(t *testing.T) map[string]*modelgate.Model {
	t.Helper()
	models, err := config.Starter(func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := modelgate.NewCatalog(models, nil)
	if err != nil {
		t.Fatal(err)
	}
	bySlug := make(map[string]*modelgate.Model)
	for _, m := range catalog.Models() {
		bySlug[m.Slug] = m
	}
	return bySlug
}

func TestStarterCatalog(t *testing.T) {
	t.Parallel()
	models := starter(t)
	if len(models) != 91 {
		t.Errorf("%d models, want 91", len(models))
	}
	count := make(map[modelgate.ModelKind]int)
	for slug, m := range models {
		count[m.Kind]++
		if m.Price == nil {
			if slug != "bytedance/seed3d-1.0" {
				t.Errorf("%s has no price", slug)
			}
			continue
		}
		// The dearest thing anyone sells costs less than this, and nothing
		// that is sold costs nothing.
		usage := modelgate.Usage{Input: 1e6, Output: 1e6, Images: 1, Seconds: 1e6, Characters: 1e6, Searches: 1e3, Megapixels: 1e6}
		cost, _, label := pricing.Cost(m.Price, &usage, time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
		if cost < modelgate.USD/100 || cost > 200*modelgate.USD {
			t.Errorf("%s: a million tokens and more cost %s (%s)", slug, cost, label)
		}
	}
	want := map[modelgate.ModelKind]int{modelgate.LLM: 41, modelgate.Image: 11, modelgate.Video: 11, modelgate.ThreeD: 5,
		modelgate.Embedding: 8, modelgate.Rerank: 7, modelgate.Audio: 8}
	for kind, n := range want {
		if count[kind] != n {
			t.Errorf("%d models of kind %s, want %d", count[kind], kind, n)
		}
	}
}

func TestStarterPrices(t *testing.T) {
	t.Parallel()
	models := starter(t)
	for _, c := range []struct {
		slug  string
		usage modelgate.Usage
		at    string
		want  modelgate.Nano
	}{
		{"anthropic/claude-fable-5.1", modelgate.Usage{Input: 1000, CachedInput: 1000, CacheWrite: 1000, CacheWrite1h: 1000, Output: 1000, Searches: 1}, "2026-11-21T00:00:00Z", 10_000_000 + 250_000 + 12_500_000 + 20_000_000 + 50_000_000 + 10_000_000},
		{"anthropic/claude-opus-5.5", modelgate.Usage{Input: 1000, Output: 1000, Speed: "fast"}, "2026-11-21T00:00:00Z", 48_000_000},
		{"anthropic/claude-haiku-5.5", modelgate.Usage{Input: 100_000, Output: 1000}, "2026-11-21T00:00:00Z", 10_500_000},
		{"anthropic/claude-haiku-5.5", modelgate.Usage{Input: 100_001, CacheWrite1h: 1000, Output: 1000}, "2026-11-21T00:00:00Z", 50_000_500 + 1_000_000 + 2_500_000},
		{"openai/gpt-6-astra", modelgate.Usage{Input: 272_000, Output: 1000}, "2026-11-21T00:00:00Z", 5_440_000_000 + 75_000_000},
		{"openai/gpt-5-nano", modelgate.Usage{Input: 1, CachedInput: 1, Output: 1}, "2026-11-21T00:00:00Z", 50 + 5 + 400},
		{"openai/gpt-4o-mini", modelgate.Usage{Input: 1000, Output: 1000, ServiceTier: "flex"}, "2026-11-21T00:00:00Z", 375_000},
		{"google/gemini-4-argon", modelgate.Usage{Input: 1000, Output: 1000}, "2026-11-30T23:59:59Z", 12_000_000},
		{"google/gemini-4-argon", modelgate.Usage{Input: 1000, Output: 1000}, "2026-12-01T00:00:00Z", 24_000_000},
		{"google/gemini-2.5-flash", modelgate.Usage{Input: 1000, AudioInput: 1000, Output: 1000}, "2026-11-21T00:00:00Z", 3_800_000},
		{"deepseek/deepseek-v4-flash", modelgate.Usage{CachedInput: 1000, Output: 1000}, "2026-11-21T05:00:00Z", 7_000 + 660_000},
		{"deepseek/deepseek-v4-flash", modelgate.Usage{CachedInput: 1000, Output: 1000}, "2026-11-21T09:59:59Z", 14_000 + 1_320_000},
		{"bfl/flux-2-pro", modelgate.Usage{Megapixels: 1e6}, "2026-11-21T00:00:00Z", 30_000_000},
		{"bfl/flux-2-pro", modelgate.Usage{Megapixels: 4e6}, "2026-11-21T00:00:00Z", 75_000_000},
		{"google/veo-3.1", modelgate.Usage{Seconds: 8e6}, "2026-11-21T00:00:00Z", 3_200_000_000},
		{"cohere/rerank-v4-pro", modelgate.Usage{Searches: 1}, "2026-11-21T00:00:00Z", 2_500_000},
		{"openai/tts-1-hd", modelgate.Usage{Characters: 100}, "2026-11-21T00:00:00Z", 3_000_000},
		{"tripo/tripo-v3.1", modelgate.Usage{}, "2026-11-21T00:00:00Z", 200_000_000},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		m := models[c.slug]
		if m == nil {
			t.Errorf("%s is not there", c.slug)
			continue
		}
		if got, _, label := pricing.Cost(m.Price, &c.usage, at); got != c.want {
			t.Errorf("%s: %+v at %s costs %d nano-USD (%s), want %d", c.slug, c.usage, c.at, got, label, c.want)
		}
	}
}

func TestStarterFilter(t *testing.T) {
	t.Parallel()
	models, err := config.Starter(func(provider string) bool { return provider == "gemini" })
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		if m.Author() != "google" || len(m.Routes) != 1 || m.Routes[0].Provider != "gemini" {
			t.Errorf("%s has the routes %v", m.Slug, m.Routes)
		}
	}
	if len(models) != 16 {
		t.Errorf("%d models, want 16", len(models))
	}
	if none, err := config.Starter(func(string) bool { return false }); err != nil || len(none) != 0 {
		t.Errorf("without providers: %d models, %v", len(none), err)
	}
}

// Every model says where its price is from and how sure it is, and stands in
// the file of its author.
func TestStarterSources(t *testing.T) {
	t.Parallel()
	source := regexp.MustCompile(`^# Price: (none|.+; confidence (high|medium|low))\.$`)
	files, err := filepath.Glob("starter/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		author := strings.TrimSuffix(filepath.Base(file), ".yaml")
		for _, block := range bytes.Split(text, []byte("\n\n"))[1:] {
			lines := strings.Split(string(block), "\n")
			slug := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "- slug: ") })
			if slug < 1 || !source.MatchString(lines[0]) || !strings.HasPrefix(lines[slug], "- slug: "+author+"/") {
				t.Errorf("%s: %q", file, lines[0])
			}
		}
	}
}
