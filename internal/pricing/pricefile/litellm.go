package pricefile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
)

const million, thousand = 1_000_000, 1_000

// liteLLMTokens are the prices per token of LiteLLM's list.
func liteLLMTokens() []member {
	return []member{
		{"input", "input_cost_per_token", million}, {"cached_input", "cache_read_input_token_cost", million},
		{"cache_write", "cache_creation_input_token_cost", million}, {"cache_write_1h", "cache_creation_input_token_cost_above_1hr", million},
		{"output", "output_cost_per_token", million}, {"reasoning", "output_cost_per_reasoning_token", million},
		{"audio_input", "input_cost_per_audio_token", million}, {"audio_output", "output_cost_per_audio_token", million},
		{"image_input", "input_cost_per_image_token", million}, {"image_output", "output_cost_per_image_token", million},
	}
}

// liteLLM reads a model of LiteLLM's list: USD per token, and others.
func liteLLM(name string, m gjson.Result) (Entry, error) {
	source := m.Get("litellm_provider").String()
	e := Entry{
		Source: source, Model: strings.TrimPrefix(name, source+"/"), Kind: liteLLMKinds[m.Get("mode").String()],
		ContextLength: count(m.Get("max_input_tokens")), MaxOutput: count(m.Get("max_output_tokens")),
	}
	others := []member{
		{"characters", "input_cost_per_character", million}, {"search", "input_cost_per_query", thousand},
		{"image", "output_cost_per_image", 1}, {"second", "output_cost_per_second", 1}, {"page", "ocr_cost_per_page", 1},
	}
	if e.Kind == modelgate.Audio && !m.Get("output_cost_per_second").Exists() {
		others = append(others, member{"second", "input_cost_per_second", 1})
	}
	var err error
	if e.Prices, err = prices("", m, append(liteLLMTokens(), others...)); err != nil {
		return e, err
	}
	if e.Kind == modelgate.Embedding || e.Kind == modelgate.Rerank {
		e.Prices = slices.DeleteFunc(e.Prices, func(p Price) bool { return p.Unit == "output" && p.USD == "0" || p.Unit == "input" && p.USD == "0" })
	}
	return e, liteLLMSuffixes(m, &e)
}

// liteLLMTiers are the service tiers by the ends of LiteLLM's names.
var liteLLMTiers = map[string]string{"": "", "_flex": "flex", "_priority": "priority", "_batches": "batch"}

// liteLLMSuffixes reads the prices for long prompts and for service tiers.
func liteLLMSuffixes(m gjson.Result, e *Entry) error {
	for _, threshold := range append([]int64{0}, liteLLMThresholds(m)...) {
		for suffix, serviceTier := range liteLLMTiers {
			if threshold == 0 && suffix == "" {
				continue
			}
			members := liteLLMTokens()
			for i := range members {
				if threshold > 0 {
					members[i].name += fmt.Sprintf("_above_%dk_tokens", threshold/1000)
				}
				members[i].name += suffix
			}
			found, err := prices("", m, members)
			if err != nil {
				return err
			}
			above := threshold
			if e.Source == "xai" && above > 0 {
				above-- // a prompt of so many tokens costs that already
			}
			switch {
			case len(found) == 0:
			case serviceTier == "":
				e.Tiers = append(e.Tiers, Tier{above, found})
			default:
				e.Variants = append(e.Variants, Variant{serviceTier, above, found})
			}
		}
	}
	slices.SortFunc(e.Tiers, func(a, b Tier) int { return cmp.Compare(a.Above, b.Above) })
	slices.SortFunc(e.Variants, func(a, b Variant) int {
		return cmp.Or(cmp.Compare(a.ServiceTier, b.ServiceTier), cmp.Compare(a.Above, b.Above))
	})
	return nil
}

// liteLLMThresholds are the prompt lengths above which a model has prices of their
// own, the lowest first.
func liteLLMThresholds(m gjson.Result) (above []int64) {
	m.ForEach(func(key, _ gjson.Result) bool {
		_, rest, found := strings.Cut(key.String(), "_above_")
		digits, _, plain := strings.Cut(rest, "k_tokens")
		n, err := strconv.ParseInt(digits, 10, 32)
		if found && plain && err == nil && n > 0 && !slices.Contains(above, n*1000) {
			above = append(above, n*1000)
		}
		return true
	})
	slices.Sort(above)
	return above
}

// liteLLMKinds are the kinds of models by their mode in LiteLLM's list.
var liteLLMKinds = map[string]modelgate.ModelKind{
	"chat": modelgate.LLM, "completion": modelgate.LLM, "responses": modelgate.LLM,
	"embedding": modelgate.Embedding, "rerank": modelgate.Rerank,
	"image_generation": modelgate.Image, "image_edit": modelgate.Image, "video_generation": modelgate.Video,
	"audio_speech": modelgate.Audio, "audio_transcription": modelgate.Audio,
}
