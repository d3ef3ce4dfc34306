package pricefile

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
)

// openRouterPrices are the prices of OpenRouter's list: USD per token as text.
func openRouterPrices() []member {
	return []member{
		{"input", "prompt", million}, {"cached_input", "input_cache_read", million}, {"cache_write", "input_cache_write", million},
		{"cache_write_1h", "input_cache_write_1h", million}, {"output", "completion", million}, {"reasoning", "internal_reasoning", million},
		{"audio_input", "audio", million}, {"audio_output", "audio_output", million}, {"image_input", "image_token", million},
		{"image_output", "image_output", million}, {"cached_audio_input", "input_audio_cache", million}, {"search", "web_search", thousand},
		{"request", "request", 1},
	}
}

// openRouter reads OpenRouter's list of models.
func openRouter(data gjson.Result, add adder) {
	for _, m := range data.Array() {
		e := Entry{
			Source: "openrouter", Model: m.Get("id").String(), Name: m.Get("name").String(), Kind: modelgate.LLM,
			ContextLength: count(m.Get("context_length")), MaxOutput: count(m.Get("top_provider.max_completion_tokens")),
		}
		pricing := m.Get("pricing")
		var err error
		if e.Prices, err = prices("pricing.", pricing, openRouterPrices()); err == nil {
			e.Prices = slices.DeleteFunc(e.Prices, func(p Price) bool { return p.USD == "0" && p.Unit != "input" && p.Unit != "output" })
			err = e.openRouterOverrides(pricing.Get("overrides"))
		}
		add("OpenRouter", "openrouter", e.Model, e, err)
	}
}

// openRouterOverrides reads the prices of long prompts.
func (e *Entry) openRouterOverrides(list gjson.Result) error {
	for _, o := range list.Array() {
		above := count(o.Get("min_prompt_tokens"))
		if above == 0 || o.Get("utc_start").Exists() || o.Get("utc_days").Exists() {
			return fmt.Errorf("pricing.overrides is not understood: %.60s", o.Raw)
		}
		found, err := prices("pricing.overrides.", o, openRouterPrices())
		if err != nil {
			return err
		}
		e.Tiers = slices.DeleteFunc(e.Tiers, func(t Tier) bool { return t.Above == above }) // later entries win
		e.Tiers = append(e.Tiers, Tier{above, found})
	}
	slices.SortFunc(e.Tiers, func(a, b Tier) int { return cmp.Compare(a.Above, b.Above) })
	return nil
}

// perThousand is a price of a thousand as that of one.
func perThousand(v gjson.Result) string {
	r, ok := new(big.Rat).SetString(v.Raw)
	if !ok {
		return ""
	}
	spelled := r.Quo(r, big.NewRat(thousand, 1)).FloatString(9)
	if kept, ok := new(big.Rat).SetString(spelled); !ok || kept.Cmp(r) != 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimRight(spelled, "0"), ".")
}
