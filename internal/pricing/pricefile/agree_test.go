package pricefile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

const genaiFile = `[{"id": "openai", "models": [
  {"id": "plain", "name": "Plain", "context_window": 1000, "prices": {"input_mtok": 0.25, "cache_read_mtok": 0.025, "output_mtok": 2}},
  {"id": "tiered", "prices": {"input_mtok": {"base": 1.25, "tiers": [{"start": 271999, "price": 2.5}]}, "output_mtok": 10, "requests_kcount": 5}},
  {"id": "dated", "prices": [{"prices": {"input_mtok": 1}}, {"constraint": {"start_date": "2026-11-01"}, "prices": {"input_mtok": 2}}, {"constraint": {"start_date": "2026-12-01"}, "prices": {"input_mtok": 3}}]},
  {"id": "x-day", "prices": [{"constraint": {"start_time": "00:30:00Z", "end_time": "16:30:00Z"}, "prices": {"input_mtok": 1}}]},
  {"id": "x-unit", "prices": {"input_mtok": 1, "output_citation_mtok": 1}},
  {"id": "x-decimals", "prices": {"input_mtok": 0.1234567891}}]}]`

const openRouterFile = `{"data": [
  {"id": "openai/gpt", "name": "GPT", "context_length": 1000, "pricing": {"prompt": "0.00000025", "completion": "0.000002", "web_search": "0.01", "image": "0", "request": "0"}},
  {"id": "x/long", "pricing": {"prompt": "0.000001", "completion": "0.000002", "overrides": [{"min_prompt_tokens": 128000, "prompt": "0.000002"}]}},
  {"id": "x/night", "pricing": {"prompt": "0.000001", "overrides": [{"utc_start": 1630, "utc_end": 30, "prompt": "0.0000005"}]}},
  {"id": "x/auto", "pricing": {"prompt": "-1", "completion": "-1"}}]}`

const liteLLMTiersFile = `{
 "gpt": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1.5e-05, "input_cost_per_token_flex": 1.25e-06,
   "input_cost_per_token_above_272k_tokens": 5e-06, "input_cost_per_token_priority": 4.54545e-06, "input_cost_per_token_above_272k_tokens_priority": 9.0909e-06},
 "noise": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1.00000000000001e-06}}`

// TestOtherLists reads lists of genai-prices and OpenRouter, and service tiers of
// LiteLLM; what cannot be held exactly is refused by name.
func TestOtherLists(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		list    string
		want    []Entry
		refused []Refused
	}{
		"genai-prices": {genaiFile, []Entry{
			{Source: "openai", Model: "dated", Prices: []Price{{"input", "2"}}},
			{Source: "openai", Model: "plain", Name: "Plain", ContextLength: 1000, Prices: []Price{{"input", "0.25"}, {"cached_input", "0.025"}, {"output", "2"}}},
			{Source: "openai", Model: "tiered", Prices: []Price{{"input", "1.25"}, {"output", "10"}, {"request", "0.005"}}, Tiers: []Tier{{271_999, []Price{{"input", "2.5"}}}}},
		}, []Refused{
			{"genai-prices", "openai", "x-day", "prices by the time of the day are not supported"},
			{"genai-prices", "openai", "x-decimals", "input_mtok is no price: 0.1234567891"},
			{"genai-prices", "openai", "x-unit", "not supported: output_citation_mtok"},
		}},
		"OpenRouter": {openRouterFile, []Entry{
			{Source: "openrouter", Model: "openai/gpt", Name: "GPT", ContextLength: 1000, Prices: []Price{{"input", "0.25"}, {"output", "2"}, {"search", "10"}}},
			{Source: "openrouter", Model: "x/long", Prices: []Price{{"input", "1"}, {"output", "2"}}, Tiers: []Tier{{128_000, []Price{{"input", "2"}}}}},
		}, []Refused{
			{"OpenRouter", "openrouter", "x/auto", `pricing.prompt is no price: "-1"`},
			{"OpenRouter", "openrouter", "x/night", `pricing.overrides is not understood: {"utc_start": 1630, "utc_end": 30, "prompt": "0.0000005"}`},
		}},
		"LiteLLM": {liteLLMTiersFile, []Entry{
			{Source: "openai", Model: "gpt", Prices: []Price{{"input", "2.5"}, {"output", "15"}}, Tiers: []Tier{{272_000, []Price{{"input", "5"}}}},
				Variants: []Variant{{"flex", 0, []Price{{"input", "1.25"}}}, {"priority", 0, []Price{{"input", "4.54545"}}}, {"priority", 272_000, []Price{{"input", "9.0909"}}}}},
		}, []Refused{{"LiteLLM", "openai", "noise", "input_cost_per_token is no price: 1.00000000000001e-06"}}},
	} {
		got, refused, err := Read([]byte(tt.list), today)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range tt.want {
			tt.want[i].List, tt.want[i].Kind = name, modelgate.LLM
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(tt.refused, refused); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, _, err := Read([]byte(strings.Repeat("[", 100)+strings.Repeat("]", 100)), today); err == nil {
		t.Error("a list may be nested without end")
	}
	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, `,"m%d":{"litellm_provider":"p","mode":"chat","input_cost_per_token":-1}`, i)
	}
	if _, _, err := Read([]byte("{"+many.String()[1:]+"}"), today); err == nil || !strings.Contains(err.Error(), "200 of 200 models") {
		t.Errorf("a list that is not understood: %v", err)
	}
}

// entry is a model of a list at a price per million tokens.
func entry(list, input, output string, more ...Price) Entry {
	return Entry{List: list, Source: "openai", Model: "gpt", Kind: modelgate.LLM, Prices: append([]Price{{"input", input}, {"output", output}}, more...)}
}

func matched(t *testing.T, entries ...Entry) *Model {
	t.Helper()
	models := Match(entries, []Provider{{Name: "openai", Sources: []string{"openai"}, Author: "openai"}})
	if len(models) != 1 {
		t.Fatalf("%d models", len(models))
	}
	return &models[0]
}

// TestAgreement: what two lists state is taken, and everything else needs a person.
func TestAgreement(t *testing.T) {
	t.Parallel()
	long := entry("b", "1", "2")
	long.Tiers = []Tier{{272_000, []Price{{"input", "2"}}}}
	longer := entry("a", "1", "2")
	longer.Tiers = []Tier{{271_999, []Price{{"input", "2"}}}}
	now := func(input, output string) map[Place]string {
		return map[Place]string{{Unit: "input"}: input, {Unit: "output"}: output}
	}
	for name, tt := range map[string]struct {
		entries []Entry
		now     map[Place]string
		doubts  string
		drastic bool
		same    bool
	}{
		"two lists, new":              {entries: []Entry{entry("a", "1", "2"), entry("b", "1", "2")}},
		"one list, new":               {entries: []Entry{entry("a", "1", "2")}, doubts: "input: only a states 1|output: only a states 2"},
		"two that differ":             {entries: []Entry{entry("a", "1", "2"), entry("b", "1", "3")}, doubts: "output: a 2, b 3"},
		"two of three":                {entries: []Entry{entry("a", "1", "2"), entry("b", "1", "2"), entry("c", "1", "3")}, doubts: "output: a 2, b 2, c 3"},
		"a unit of one":               {entries: []Entry{entry("a", "1", "2"), entry("b", "1", "2", Price{"cached_input", "0.1"})}, doubts: "cached_input: only b states 0.1"},
		"the seller's own list":       {entries: []Entry{{List: "OpenRouter", Source: "openai", Model: "gpt", Kind: modelgate.LLM, Prices: []Price{{"input", "1"}}}}},
		"no change":                   {entries: []Entry{entry("a", "1", "2")}, now: now("1", "2"), same: true},
		"no change, but contradicted": {entries: []Entry{entry("a", "1", "2"), entry("b", "1", "3")}, now: now("1", "2"), same: true},
		"one unit of one list":        {entries: []Entry{entry("a", "1", "2.5")}, now: now("1", "2"), doubts: "output: only a states 2.5"},
		"twice":                       {entries: []Entry{entry("a", "1", "4"), entry("b", "1", "4")}, now: now("1", "2")},
		"more than twice":             {entries: []Entry{entry("a", "1", "4.1"), entry("b", "1", "4.1")}, now: now("1", "2"), doubts: "output moves from 2 to 4.1", drastic: true},
		"less than half":              {entries: []Entry{entry("a", "1", "0.9"), entry("b", "1", "0.9")}, now: now("1", "2"), doubts: "output moves from 2 to 0.9", drastic: true},
		"to nothing":                  {entries: []Entry{entry("a", "0", "2"), entry("b", "0", "2")}, now: now("1", "2"), doubts: "input moves from 1 to 0", drastic: true},
		"a unit vanishes": {entries: []Entry{entry("a", "1", "2"), entry("b", "1", "2")}, now: map[Place]string{{Unit: "input"}: "1", {Unit: "output"}: "2", {Above: 9, Unit: "input"}: "3"},
			doubts: "input above 9, now 3, is in no list", drastic: true},
		"thresholds one token apart": {entries: []Entry{longer, long}},
	} {
		c := matched(t, tt.entries...).Compare(tt.now)
		if c == nil {
			if !tt.same {
				t.Errorf("%s: no change", name)
			}
			continue
		}
		if got := strings.Join(c.Doubts, "|"); tt.same || got != tt.doubts || c.Drastic != tt.drastic {
			t.Errorf("%s: %q, drastic %v", name, got, c.Drastic)
		}
		if c.Approved(nil) != (tt.doubts == "") || c.Approved([]string{"all"}) == tt.drastic || !c.Approved([]string{"openai/gpt"}) {
			t.Errorf("%s: approved %v, %v", name, c.Approved(nil), c.Approved([]string{"all"}))
		}
	}
	c := matched(t, longer, long).Compare(nil)
	if text := string(Catalog(nil, []*Change{c}, today, "")); !strings.Contains(text, "- {above: 271999, input: 2}\n") || !strings.Contains(text, `origin: {lists: ["a 2026-11-24", "b 2026-11-24"], checked: 2026-11-24}`) {
		t.Error(text)
	}
}

// TestCatalogKeepsWhatIsThere changes one model of a file, and no other.
func TestCatalogKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	other := entry("a", "5", "6")
	other.Model = "other"
	models := Match([]Entry{entry("a", "1", "2"), other}, []Provider{{Name: "openai", Sources: []string{"openai"}, Author: "openai"}})
	var changes []*Change
	for i := range models {
		changes = append(changes, models[i].Compare(nil))
	}
	first := Catalog(nil, changes, today, "cli:me")
	if !Owned(first) || !Owned(nil) || Owned([]byte("- slug: a/b\n")) || !strings.Contains(string(first), `approved_by: "cli:me", approved_at: 2026-11-24`) {
		t.Errorf("%s", first)
	}
	change := matched(t, entry("a", "1", "2.5"), entry("b", "1", "2.5")).Compare(map[Place]string{{Unit: "input"}: "1", {Unit: "output"}: "2"})
	second := Catalog(first, []*Change{change}, today.AddDate(0, 0, 1), "")
	diff := Diff(first, second)
	if !strings.HasPrefix(diff, "@@ openai/gpt\n") || !strings.Contains(diff, "\n-    output: 2\n") || !strings.Contains(diff, "\n+    output: 2.5\n") || strings.Contains(diff, "other") || strings.Count(string(second), "- slug: ") != 2 {
		t.Errorf("%s\n%s", diff, second)
	}
	if d := Diff(second, second); d != "" {
		t.Errorf("no change is shown as %s", d)
	}
}

// TestCheck compares a price with the lists.
func TestCheck(t *testing.T) {
	t.Parallel()
	rates := func(text string) (r modelgate.Rates) {
		if err := r.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	ours := func(base string) *modelgate.Price { return &modelgate.Price{Base: rates(base)} }
	tiered := ours("input=1 output=2")
	tiered.Tiers = []modelgate.TierPrice{{Above: 200_000, Rates: rates("input=2")}}
	long := entry("a", "1", "2")
	long.Tiers = []Tier{{272_000, []Price{{"input", "2"}}}}
	old := ours("input=1 output=2")
	old.Origin.Checked = today.AddDate(0, 0, -91)
	varied := ours("input=1 output=2")
	varied.Variants = []modelgate.Variant{{When: []modelgate.Condition{{Field: "service_tier", Value: "flex"}}, Rates: rates("input=0.5")}}
	for name, tt := range map[string]struct {
		ours    *modelgate.Price
		entries []Entry
		want    string
		fails   bool
	}{
		"confirmed":             {ours("input=1 output=2"), []Entry{entry("a", "1", "2"), entry("b", "1", "2")}, "", false},
		"another price":         {ours("input=1 output=3"), []Entry{entry("a", "1", "2"), entry("b", "1", "2")}, "differs output 3", true},
		"disputed":              {ours("input=1 output=2"), []Entry{entry("a", "1", "2"), entry("b", "1", "3")}, "disputed output 2", true},
		"one of two states it":  {ours("input=1 cached_input=0.1 output=2"), []Entry{entry("a", "1", "2", Price{"cached_input", "0.1"}), entry("b", "1", "2")}, "single cached_input 0.1", false},
		"we lack it":            {ours("input=1 output=2"), []Entry{entry("a", "1", "2", Price{"cached_input", "0.1"})}, "missing cached_input ", true},
		"as the fallback":       {ours("input=1 output=2"), []Entry{entry("a", "1", "2", Price{"cached_input", "1"}, Price{"reasoning", "2"})}, "", false},
		"nobody states it":      {ours("input=1 output=2 reasoning=3"), []Entry{entry("a", "1", "2")}, "extra reasoning 3", false},
		"another threshold":     {tiered, []Entry{long}, "tier input |tier input 2", true},
		"checked long ago":      {old, []Entry{entry("a", "1", "2")}, "stale  ", false},
		"a tier of the service": {varied, []Entry{entry("a", "1", "2")}, "extra input 0.5", false},
	} {
		var got []string
		fails := false
		for _, f := range matched(t, tt.entries...).Check(tt.ours, today) {
			got = append(got, f.Finding+" "+f.Unit+" "+f.Ours)
			fails = fails || f.Fails()
		}
		if strings.Join(got, "|") != tt.want || fails != tt.fails {
			t.Errorf("%s: %q, fails %v; want %q", name, got, fails, tt.want)
		}
	}
}

// TestImportThenCheck: what an import writes is what a check with the same lists
// finds nothing wrong with.
func TestImportThenCheck(t *testing.T) {
	t.Parallel()
	entries, _, err := Read([]byte(liteLLMTiersFile), today)
	if err != nil {
		t.Fatal(err)
	}
	m := matched(t, entries...)
	c := m.Compare(nil)
	made := c.entry()
	p := new(modelgate.Price)
	set := func(r *modelgate.Rates, prices []Price) {
		for _, one := range prices {
			u, _ := modelgate.UnitByName(one.Unit)
			usd, err := modelgate.ParseUSD(one.USD)
			if err == nil {
				err = r.Set(u, usd)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	set(&p.Base, made.Prices)
	for _, tier := range made.Tiers {
		one := modelgate.TierPrice{Above: tier.Above}
		set(&one.Rates, tier.Prices)
		p.Tiers = append(p.Tiers, one)
	}
	for _, v := range made.Variants {
		one := modelgate.Variant{When: []modelgate.Condition{{Field: "service_tier", Value: v.ServiceTier}}, Above: v.Above}
		set(&one.Rates, v.Prices)
		p.Variants = append(p.Variants, one)
	}
	if found := m.Check(p, time.Now()); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}
