package pricefile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var today = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

const modelsDevFile = `{
 "openai": {"id": "openai", "name": "OpenAI", "models": {
  "gpt-5-mini": {"id": "gpt-5-mini", "name": "GPT-5 Mini", "release_date": "2025-08-07", "modalities": {"input": ["text","image"], "output": ["text"]},
   "cost": {"input": 0.25, "output": 2, "cache_read": 0.025}, "limit": {"context": 400000, "output": 128000}},
  "text-embedding-3-small": {"id": "text-embedding-3-small", "modalities": {"output": ["text"]}, "cost": {"input": 0.02, "output": 0}, "limit": {"context": 8191, "output": 1536}},
  "free-thing": {"id": "free-thing"}}},
 "google": {"id": "google", "models": {
  "gemini-2.5-pro": {"id": "gemini-2.5-pro", "name": "Gemini 2.5 Pro", "cost": {"input": 1.25, "output": 10, "cache_read": 0.31, "context_over_200k": {"input": 2.5, "output": 15, "cache_read": 0.625}}, "limit": {"context": 1048576, "output": 65536}}}}}`

const liteLLMFile = `{
 "sample_spec": {"litellm_provider": "one of https://…", "mode": "one of: chat", "input_cost_per_token": 0},
 "gpt-5-mini": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-07, "cache_read_input_token_cost": 2.5e-08, "output_cost_per_token": 2e-06, "max_input_tokens": 272000, "max_output_tokens": 128000},
 "xai/grok-4": {"litellm_provider": "xai", "mode": "chat", "input_cost_per_token": 5.46875e-07, "input_cost_per_token_above_128k_tokens": 6e-06, "output_cost_per_token": 1.5e-05},
 "rerank-v3.5": {"litellm_provider": "cohere", "mode": "rerank", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0, "input_cost_per_query": 0.002},
 "tts-1": {"litellm_provider": "openai", "mode": "audio_speech", "input_cost_per_character": 1.5e-05},
 "hostile": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e999999999, "output_cost_per_token": -1}}`

func TestRead(t *testing.T) {
	t.Parallel()
	got, _, err := Read([]byte(modelsDevFile), today)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d entries, %v: %+v", len(got), err, got)
	}
	want := Entry{List: "models.dev", Source: "google", Model: "gemini-2.5-pro", Name: "Gemini 2.5 Pro", Kind: "llm", ContextLength: 1048576, MaxOutput: 65536,
		Prices: []Price{{"input", "1.25"}, {"cached_input", "0.31"}, {"output", "10"}},
		Tiers:  []Tier{{200000, []Price{{"input", "2.5"}, {"cached_input", "0.625"}, {"output", "15"}}}}}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if got[2].Kind != "embedding" {
		t.Errorf("%+v", got[2])
	}
	got, refused, err := Read([]byte(liteLLMFile), today)
	if diff := cmp.Diff([]Refused{{"LiteLLM", "openai", "hostile", "input_cost_per_token is no price: 1e999999999"}}, refused); diff != "" {
		t.Error(diff)
	}
	if err != nil || len(got) != 4 {
		t.Fatalf("%d entries, %v: %+v", len(got), err, got)
	}
	for i, want := range []Entry{
		{List: "LiteLLM", Source: "cohere", Model: "rerank-v3.5", Kind: "rerank", Prices: []Price{{"search", "2"}}},
		{List: "LiteLLM", Source: "openai", Model: "gpt-5-mini", Kind: "llm", ContextLength: 272000, MaxOutput: 128000, Prices: []Price{{"input", "0.25"}, {"cached_input", "0.025"}, {"output", "2"}}},
		{List: "LiteLLM", Source: "openai", Model: "tts-1", Kind: "audio", Prices: []Price{{"characters", "15"}}},
		{List: "LiteLLM", Source: "xai", Model: "grok-4", Kind: "llm", Prices: []Price{{"input", "0.546875"}, {"output", "15"}}, Tiers: []Tier{{127999, []Price{{"input", "6"}}}}},
	} {
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	for _, bad := range []string{"", "[]", "{}", `{"a":{"b":1}}`, "{"} {
		if _, _, err := Read([]byte(bad), today); err == nil {
			t.Errorf("Read(%q) found nothing wrong", bad)
		}
	}
}

// Prices of models.dev for long prompts and for reasoning; an entry whose price
// has a member that is not understood is refused by name, and the rest is read.
func TestModelsDevPrices(t *testing.T) {
	t.Parallel()
	const list = `{"p":{"models":{
  "a-tier": {"cost":{"input":5,"output":22.5,"tiers":[{"input":10,"output":45,"tier":{"type":"context","size":272000}}],"context_over_200k":{"input":10,"output":45}}},
  "b-tiers": {"cost":{"input":1,"output":2,"tiers":[{"input":3,"tier":{"type":"context","size":256000}},{"input":2,"tier":{"type":"context","size":128000}}]}},
  "c-older": {"cost":{"input":1,"output":2,"context_over_200k":{"input":2}}},
  "d-reasoning": {"cost":{"input":0.1,"output":0.4,"reasoning":0.123456789,"input_audio":1,"output_audio":2}},
  "e-empty": {"cost":{"input":1,"output":2,"tiers":[],"context_over_200k":{"input":9}}},
  "x-member": {"cost":{"input":1,"output":2,"per_image":0.01}},
  "x-tier": {"cost":{"input":1,"output":2,"tiers":[{"input":3,"tier":{"type":"output","size":1000}}]}},
  "x-tier-member": {"cost":{"input":1,"output":2,"tiers":[{"input":3,"surge":1,"tier":{"type":"context","size":1000}}]}},
  "x-size": {"cost":{"input":1,"output":2,"tiers":[{"input":3,"tier":{"type":"context"}}]}},
  "x-text": {"cost":{"input":"1","output":2}},
  "x-decimals": {"cost":{"input":0.1234567891,"output":2}}}}}`
	entries, refused, err := Read([]byte(list), today)
	if err != nil {
		t.Fatal(err)
	}
	var got []Entry
	for _, e := range entries {
		got = append(got, Entry{Model: e.Model, Prices: e.Prices, Tiers: e.Tiers})
	}
	plain := []Price{{"input", "1"}, {"output", "2"}}
	want := []Entry{
		{Model: "a-tier", Prices: []Price{{"input", "5"}, {"output", "22.5"}}, Tiers: []Tier{{272_000, []Price{{"input", "10"}, {"output", "45"}}}}},
		{Model: "b-tiers", Prices: plain, Tiers: []Tier{{128_000, []Price{{"input", "2"}}}, {256_000, []Price{{"input", "3"}}}}},
		{Model: "c-older", Prices: plain, Tiers: []Tier{{200_000, []Price{{"input", "2"}}}}},
		{Model: "d-reasoning", Prices: []Price{{"input", "0.1"}, {"output", "0.4"}, {"reasoning", "0.123456789"}, {"audio_input", "1"}, {"audio_output", "2"}}},
		{Model: "e-empty", Prices: plain},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Refused{
		{"models.dev", "p", "x-decimals", "cost.input is no price: 0.1234567891"},
		{"models.dev", "p", "x-member", "cost.per_image is not understood"},
		{"models.dev", "p", "x-size", "cost.tiers[0].tier.size is no number of tokens"},
		{"models.dev", "p", "x-text", `cost.input is no price: "1"`},
		{"models.dev", "p", "x-tier", `cost.tiers[0].tier.type is not understood: "output"`},
		{"models.dev", "p", "x-tier-member", "cost.tiers[0].surge is not understood"},
	}, refused); diff != "" {
		t.Error(diff)
	}
}

// FuzzRead feeds lists that anyone may have written: whatever comes out can
// be written and is no more than what can stand in a line.
func FuzzRead(f *testing.F) {
	f.Add([]byte(modelsDevFile))
	f.Add([]byte(liteLLMFile))
	f.Add([]byte(genaiFile))
	f.Add([]byte(openRouterFile))
	f.Add([]byte(`{"a":{"models":{"b\n- slug: evil/x":{"cost":{"input":1}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, _, err := Read(text, today)
		if err != nil {
			return
		}
		var providers []Provider
		for _, e := range entries {
			providers = append(providers, Provider{Name: "p", Sources: []string{e.Source}, Author: "p"})
		}
		var changes []*Change
		for _, m := range Match(entries, providers) {
			if c := m.Compare(nil); c != nil {
				changes = append(changes, c)
			}
		}
		out := string(Catalog(nil, changes, today, "x"))
		for _, line := range strings.Split(out, "\n") {
			if slug, ok := strings.CutPrefix(line, "- slug: "); ok && !slugged.MatchString(slug) {
				t.Errorf("line %q", line)
			}
		}
		if strings.Count(out, "\n- slug: ") > len(entries) {
			t.Errorf("%d entries became\n%s", len(entries), out)
		}
	})
}
