package pricefile

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
)

// modelsDev reads a model of models.dev: USD per million tokens. Errors: its
// price has a member that is not understood, and could be what the model really
// costs.
func modelsDev(provider, id string, m gjson.Result) (Entry, error) {
	e := Entry{
		Source: provider, Model: id, Name: m.Get("name").String(), Kind: modelsDevKind(m),
		ContextLength: count(m.Get("limit.context")), MaxOutput: count(m.Get("limit.output")), Created: m.Get("release_date").String(),
	}
	cost := m.Get("cost")
	if !cost.Exists() {
		return e, nil
	}
	if !cost.IsObject() {
		return e, fmt.Errorf("cost is no object")
	}
	var err error
	if e.Prices, err = modelsDevPrices("cost", cost, "tiers", "context_over_200k"); err != nil {
		return e, err
	}
	if tiers := cost.Get("tiers"); tiers.Exists() {
		e.Tiers, err = modelsDevTiers(tiers)
		return e, err
	}
	// Older lists have this one only. Beside tiers it is derived from them, for
	// higher thresholds too.
	if over := cost.Get("context_over_200k"); over.Exists() {
		prices, err := modelsDevPrices("cost.context_over_200k", over)
		if err != nil {
			return e, err
		}
		if len(prices) > 0 {
			e.Tiers = []Tier{{200_000, prices}}
		}
	}
	return e, nil
}

// modelsDevUnits are the catalog's names of the members of a price, in the
// catalog's order.
var modelsDevUnits = [...]Price{
	{"input", "input"}, {"cached_input", "cache_read"}, {"cache_write", "cache_write"}, {"output", "output"}, {"reasoning", "reasoning"},
	{"audio_input", "input_audio"}, {"audio_output", "output_audio"},
}

// modelsDevPrices reads an object of prices; others are members that it may
// have besides.
func modelsDevPrices(path string, cost gjson.Result, others ...string) (found []Price, err error) {
	known := make(map[string]string)
	if !cost.IsObject() {
		return nil, fmt.Errorf("%s is no object", path)
	}
	cost.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		at := slices.IndexFunc(modelsDevUnits[:], func(p Price) bool { return p.USD == name })
		usd := ""
		if at >= 0 && value.Type == gjson.Number {
			usd = exact(value, 1)
		}
		_, twice := known[name]
		switch {
		case slices.Contains(others, name), at >= 0 && value.Type == gjson.Null:
		case at < 0:
			err = fmt.Errorf("%s.%s is not understood", path, name)
		case twice:
			err = fmt.Errorf("%s.%s stands there twice", path, name)
		case usd == "":
			err = fmt.Errorf("%s.%s is no price: %.40s", path, name, value.Raw)
		default:
			known[name] = usd
		}
		return err == nil
	})
	for _, unit := range modelsDevUnits {
		if usd, ok := known[unit.USD]; ok {
			found = append(found, Price{unit.Unit, usd})
		}
	}
	return found, err
}

// modelsDevTiers reads the prices of long prompts, the lowest threshold first.
func modelsDevTiers(list gjson.Result) ([]Tier, error) {
	if !list.IsArray() {
		return nil, fmt.Errorf("cost.tiers is no list")
	}
	var tiers []Tier
	for i, entry := range list.Array() {
		path := fmt.Sprintf("cost.tiers[%d]", i)
		prices, err := modelsDevPrices(path, entry, "tier")
		if err != nil {
			return nil, err
		}
		above, err := modelsDevThreshold(path+".tier", entry.Get("tier"))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tiers, func(t Tier) bool { return t.Above == above }) {
			return nil, fmt.Errorf("%s.tier.size stands there twice", path)
		}
		if len(prices) > 0 {
			tiers = append(tiers, Tier{above, prices})
		}
	}
	slices.SortFunc(tiers, func(a, b Tier) int { return int(a.Above - b.Above) })
	return tiers, nil
}

// modelsDevThreshold reads what a tier is for: prompts of more tokens.
func modelsDevThreshold(path string, tier gjson.Result) (above int64, err error) {
	kind := tier.Get("type")
	if above = count(tier.Get("size")); above == 0 {
		return 0, fmt.Errorf("%s.size is no number of tokens", path)
	}
	if kind.Str != "context" {
		return 0, fmt.Errorf("%s.type is not understood: %.40s", path, kind.Raw)
	}
	tier.ForEach(func(key, _ gjson.Result) bool {
		if name := key.String(); name != "type" && name != "size" {
			err = fmt.Errorf("%s.%s is not understood", path, name)
		}
		return err == nil
	})
	return above, err
}
