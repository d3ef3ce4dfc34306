// Package pricefile reads the public lists of model prices, models.dev's
// api.json and LiteLLM's model_prices_and_context_window.json, and writes what
// they say as a catalog file that a person reviews. Nothing here runs while
// the service does: a public list is no authority on what is billed.
package pricefile

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
)

// Entry is a model of a list.
type Entry struct {
	Source        string // the list's name of the provider
	Model         string // the provider's own id
	Name          string // what people call it, "" where the list does not say
	Kind          modelgate.ModelKind
	ContextLength int64  // tokens; 0 unknown
	MaxOutput     int64  // tokens; 0 unknown
	Created       string // a day, 2026-01-31; anything else is unknown
	Prices        []Price
	Tiers         []Tier
}

// Price is what a unit costs, as the catalog spells both.
type Price struct{ Unit, USD string }

// Refused is a model of a list whose price is not understood.
type Refused struct {
	Source string `json:"source"`
	Model  string `json:"model"`
	Reason string `json:"reason"` // names the member
}

// Tier is a price for prompts of more than so many tokens.
type Tier struct {
	Above  int64
	Prices []Price
}

// Read reads a list of either kind, which it recognizes. Models without a
// price are left out, and so are those of models.dev whose price has a member
// that is not understood: these are listed.
func Read(text []byte) (entries []Entry, refused []Refused, err error) {
	if !gjson.ValidBytes(text) {
		return nil, nil, errors.New("the price list is no JSON")
	}
	root := gjson.ParseBytes(text)
	if wrapped := root.Get("providers"); wrapped.IsObject() {
		root = wrapped
	}
	known := false
	root.ForEach(func(key, value gjson.Result) bool {
		switch {
		case value.Get("models").IsObject():
			known = true
			value.Get("models").ForEach(func(id, m gjson.Result) bool {
				e, err := modelsDev(key.String(), id.String(), m)
				if err != nil {
					refused = append(refused, Refused{key.String(), id.String(), err.Error()})
				} else {
					entries = appendPriced(entries, e)
				}
				return true
			})
		case value.Get("litellm_provider").Type == gjson.String:
			known = true
			entries = appendPriced(entries, liteLLM(key.String(), value))
		}
		return true
	})
	if !known {
		return nil, nil, errors.New("the price list is neither models.dev's api.json nor LiteLLM's model_prices_and_context_window.json")
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Model, b.Model))
	})
	slices.SortStableFunc(refused, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Model, b.Model))
	})
	return entries, refused, nil
}

func appendPriced(entries []Entry, e Entry) []Entry {
	if len(e.Prices) == 0 || e.Kind == "" || e.Model == "" {
		return entries
	}
	return append(entries, e)
}

// modelsDevKind tells kinds by what a model gives back.
func modelsDevKind(m gjson.Result) modelgate.ModelKind {
	var out []string
	for _, v := range m.Get("modalities.output").Array() {
		out = append(out, v.String())
	}
	switch {
	case slices.Contains(out, "embedding"), strings.Contains(strings.ToLower(m.Get("id").String()), "embed"):
		return modelgate.Embedding
	case len(out) == 0, slices.Contains(out, "text"):
		return modelgate.LLM
	case slices.Contains(out, "video"):
		return modelgate.Video
	case slices.Contains(out, "image"):
		return modelgate.Image
	case slices.Contains(out, "audio"):
		return modelgate.Audio
	}
	return ""
}

// liteLLM reads a model of LiteLLM's list: USD per token, and others.
func liteLLM(name string, m gjson.Result) Entry {
	source := m.Get("litellm_provider").String()
	e := Entry{
		Source: source, Model: strings.TrimPrefix(name, source+"/"), Kind: liteLLMKinds[m.Get("mode").String()],
		ContextLength: count(m.Get("max_input_tokens")), MaxOutput: count(m.Get("max_output_tokens")),
	}
	const million, thousand = 1_000_000, 1_000
	tokens := []Price{
		{"input", "input_cost_per_token"}, {"cached_input", "cache_read_input_token_cost"}, {"cache_write", "cache_creation_input_token_cost"},
		{"cache_write_1h", "cache_creation_input_token_cost_above_1hr"}, {"output", "output_cost_per_token"},
		{"reasoning", "output_cost_per_reasoning_token"},
		{"audio_input", "input_cost_per_audio_token"}, {"audio_output", "output_cost_per_audio_token"},
	}
	e.Prices = slices.Concat(
		prices(m, million, tokens),
		prices(m, million, []Price{{"characters", "input_cost_per_character"}}),
		prices(m, thousand, []Price{{"search", "input_cost_per_query"}}),
		prices(m, 1, []Price{{"image", "output_cost_per_image"}, {"second", "output_cost_per_second"}}),
	)
	if e.Kind == modelgate.Audio && !slices.ContainsFunc(e.Prices, func(p Price) bool { return p.Unit == "second" }) {
		e.Prices = append(e.Prices, prices(m, 1, []Price{{"second", "input_cost_per_second"}})...)
	}
	for _, above := range thresholds(m) {
		suffix := fmt.Sprintf("_above_%dk_tokens", above/1000)
		long := slices.Clone(tokens)
		for i := range long {
			long[i].USD += suffix
		}
		if found := prices(m, million, long); len(found) > 0 {
			e.Tiers = append(e.Tiers, Tier{above, found})
		}
	}
	if e.Kind == modelgate.Embedding || e.Kind == modelgate.Rerank {
		e.Prices = slices.DeleteFunc(e.Prices, func(p Price) bool { return p.Unit == "output" && p.USD == "0" || p.Unit == "input" && p.USD == "0" })
	}
	return e
}

// thresholds are the prompt lengths above which a model of LiteLLM's list has
// prices of their own, the lowest first.
func thresholds(m gjson.Result) (above []int64) {
	m.ForEach(func(key, _ gjson.Result) bool {
		_, rest, found := strings.Cut(key.String(), "_above_")
		digits, plain := strings.CutSuffix(rest, "k_tokens")
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

// prices reads members by their names in the list, given as USD.
func prices(m gjson.Result, factor int64, names []Price) (found []Price) {
	for _, n := range names {
		if usd := decimal(m.Get(n.USD), factor); usd != "" {
			found = append(found, Price{n.Unit, usd})
		}
	}
	return found
}

// places are the decimals of a price in the catalog.
const places = 9

// decimal is a number times a factor, rounded to nine decimals without a detour
// over floating point, because LiteLLM's list has the noise of one; "" for none
// and for one below zero.
func decimal(v gjson.Result, factor int64) string {
	const most = 40 // characters; a price has fewer, and an exponent must not grow
	_, e, _ := strings.Cut(strings.ToLower(v.Raw), "e")
	exponent, _ := strconv.Atoi(e) // 0 without one, and held at the ends of the range
	if v.Type != gjson.Number || len(v.Raw) > most || exponent > 12 || exponent < -12 {
		return ""
	}
	r, ok := new(big.Rat).SetString(v.Raw)
	if !ok || r.Sign() < 0 {
		return ""
	}
	text := r.Mul(r, new(big.Rat).SetInt64(factor)).FloatString(places)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func count(v gjson.Result) int64 {
	if v.Type != gjson.Number || v.Num < 1 || v.Num > 1e9 {
		return 0
	}
	return v.Int()
}
