// Package pricefile reads the public lists of model prices (models.dev, LiteLLM,
// genai-prices and OpenRouter), says where they agree, and writes what they say
// as a catalog file. Nothing here runs while the service does: a public list is no
// authority on what is billed.
//
// Numbers are decimals and are never rounded: a model of which a list states a
// price that the catalog cannot hold is refused by name.
package pricefile

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"modelgate"
)

// Entry is a model of a list.
type Entry struct {
	List          string // the list's name, such as models.dev
	Source        string // the list's name of the provider
	Model         string // the provider's own id
	Name          string // what people call it, "" where the list does not say
	Kind          modelgate.ModelKind
	ContextLength int64  // tokens; 0 unknown
	MaxOutput     int64  // tokens; 0 unknown
	Created       string // a day, 2026-01-31; anything else is unknown
	Prices        []Price
	Tiers         []Tier
	Variants      []Variant
}

// Price is what a unit costs, as the catalog spells both.
type Price struct{ Unit, USD string }

// Refused is a model of a list whose price is not understood.
type Refused struct {
	List   string `json:"list"`
	Source string `json:"source"`
	Model  string `json:"model"`
	Reason string `json:"reason"` // names the member
}

// Tier is a price for prompts of more than so many tokens.
type Tier struct {
	Above  int64
	Prices []Price
}

// Variant is a price of a service tier, for prompts of more than so many tokens.
type Variant struct {
	ServiceTier string
	Above       int64
	Prices      []Price
}

const (
	// mostRefused is the part of a list's models, in percent, beyond which the list
	// as a whole is not what it seems.
	mostRefused = 5
	// fewRefused are refused of any list without that.
	fewRefused = 100
)

// Read reads a list of any of the four shapes, which it recognizes by its content.
// Models without a price are left out, and so are those whose price is not
// understood: these are listed. today decides which of dated prices hold.
func Read(text []byte, today time.Time) (entries []Entry, refused []Refused, err error) {
	if tooDeep(text) || !gjson.ValidBytes(text) {
		return nil, nil, errors.New("the price list is no JSON")
	}
	name := ""
	add := func(list, source, model string, e Entry, err error) {
		name = list
		e.List = list
		switch {
		case err != nil:
			refused = append(refused, Refused{list, source, model, err.Error()})
		case len(e.Prices) > 0 && e.Kind != "" && e.Model != "":
			entries = append(entries, e)
		}
	}
	root := gjson.ParseBytes(text)
	switch data := root.Get("data"); {
	case root.IsArray():
		genaiPrices(root, today, add)
	case data.IsArray() && data.Get("0.pricing").IsObject():
		openRouter(data, add)
	default:
		byName(root, add)
	}
	if name == "" {
		return nil, nil, errors.New("not a known price list: expected models.dev, LiteLLM, OpenRouter or genai-prices")
	}
	if n := len(refused); n > fewRefused && n*100 > mostRefused*(n+len(entries)) {
		return nil, nil, fmt.Errorf("%d of %d models of %s are not understood, such as %s: %s", n, n+len(entries), name, refused[0].Model, refused[0].Reason)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Model, b.Model))
	})
	slices.SortStableFunc(refused, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Model, b.Model))
	})
	return entries, refused, nil
}

// adder takes a model of a list, or why it is not understood.
type adder func(list, source, model string, e Entry, err error)

// byName reads the lists that are objects: models.dev's by provider, LiteLLM's by
// model.
func byName(root gjson.Result, add adder) {
	if wrapped := root.Get("providers"); wrapped.IsObject() {
		root = wrapped
	}
	root.ForEach(func(key, value gjson.Result) bool {
		switch {
		case value.Get("models").IsObject():
			value.Get("models").ForEach(func(id, m gjson.Result) bool {
				e, err := modelsDev(key.String(), id.String(), m)
				add("models.dev", key.String(), id.String(), e, err)
				return true
			})
		case value.Get("litellm_provider").Type == gjson.String && key.String() != "sample_spec":
			e, err := liteLLM(key.String(), value)
			add("LiteLLM", value.Get("litellm_provider").String(), key.String(), e, err)
		}
		return true
	})
}

// maxDepth bounds the nesting of a list, which its parser follows by recursion.
const maxDepth = 32

func tooDeep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
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

// member is a member of a list, and the unit whose price it states.
type member struct {
	unit, name string
	factor     int64 // what the price is for, over what the unit's is for
}

// prices reads members, by the path where they stand. Members that are missing or
// null have no price.
func prices(path string, m gjson.Result, members []member) (found []Price, err error) {
	for _, n := range members {
		value := m.Get(gjson.Escape(n.name))
		if !value.Exists() || value.Type == gjson.Null {
			continue
		}
		usd := exact(value, n.factor)
		if usd == "" {
			return nil, fmt.Errorf("%s%s is no price: %.40s", path, n.name, value.Raw)
		}
		found = append(found, Price{n.unit, usd})
	}
	return found, nil
}

// exact is a number, or a text that is one, times a factor as the catalog spells
// it: at most nine decimals. It is "" for what is none, is below zero, or cannot be
// held without rounding.
func exact(v gjson.Result, factor int64) string {
	const most = 40 // characters; a price has fewer, and an exponent must not grow
	text := v.Raw
	if v.Type == gjson.String {
		text = v.Str
	}
	_, e, _ := strings.Cut(strings.ToLower(text), "e")
	exponent, _ := strconv.Atoi(e) // 0 without one, and held at the ends of the range
	if v.Type != gjson.Number && v.Type != gjson.String || len(text) > most || exponent > 6 || exponent < -18 || strings.ContainsAny(text, "/_xXpP") {
		return ""
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || r.Sign() < 0 {
		return ""
	}
	spelled := r.Mul(r, new(big.Rat).SetInt64(factor)).FloatString(9)
	if kept, ok := new(big.Rat).SetString(spelled); !ok || kept.Cmp(r) != 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimRight(spelled, "0"), ".")
}

func count(v gjson.Result) int64 {
	if v.Type != gjson.Number || v.Num < 1 || v.Num > 1e9 {
		return 0
	}
	return v.Int()
}
