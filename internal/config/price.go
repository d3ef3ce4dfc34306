package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"modelgate/internal/pricing"

	"github.com/goccy/go-yaml/ast"

	"modelgate"
)

// rates are prices by unit, in USD.
type rates struct {
	// USD per million input tokens, those from a prompt cache not included.
	Input *modelgate.Nano `yaml:"input"`

	// USD per million input tokens read from a prompt cache. Default: as
	// input.
	CachedInput *modelgate.Nano `yaml:"cached_input"`

	// USD per million input tokens written to a prompt cache, for five
	// minutes where the provider makes a difference. Default: as input.
	CacheWrite *modelgate.Nano `yaml:"cache_write"`

	// USD per million input tokens written to a prompt cache for an hour.
	// Default: as cache_write.
	CacheWrite1h *modelgate.Nano `yaml:"cache_write_1h"`

	// USD per million output tokens.
	Output *modelgate.Nano `yaml:"output"`

	// USD per million output tokens that a model reasons with and does not show.
	// Default: as output.
	Reasoning *modelgate.Nano `yaml:"reasoning"`

	// USD per million audio tokens in. Default: as input.
	AudioInput *modelgate.Nano `yaml:"audio_input"`

	// USD per million audio tokens out. Default: as output.
	AudioOutput *modelgate.Nano `yaml:"audio_output"`

	// USD per picture made. In a price itself, also a list by size and quality:
	// the first entry that matches applies, and where none does the dearest.
	Image pictures `yaml:"image"`

	// USD per second of video or sound.
	Second *modelgate.Nano `yaml:"second"`

	// USD per million characters (Unicode code points) of text.
	Characters *modelgate.Nano `yaml:"characters"`

	// USD per thousand searches, or search units of a reranker.
	Search *modelgate.Nano `yaml:"search"`

	// USD per thousand searches in files that the provider keeps.
	FileSearch *modelgate.Nano `yaml:"file_search"`

	// USD per container in which the provider runs code.
	CodeSession *modelgate.Nano `yaml:"code_session"`

	// USD per thousand calls that were answered from searches, for models that
	// are not charged by the search. It counts where search has no price.
	GroundedRequest *modelgate.Nano `yaml:"grounded_request"`

	// USD per million pixels made.
	Megapixel *modelgate.Nano `yaml:"megapixel"`

	// USD per call, on top of the other units.
	Request *modelgate.Nano `yaml:"request"`
}

// price is what a model costs.
type price struct {
	rates `yaml:",inline"`

	// Prices for long prompts. An entry applies to the whole call when its
	// prompt, cached tokens included, has more than `above` tokens; the highest
	// such entry counts, and units it does not name keep their price.
	Tiers []tier `yaml:"tiers"`

	// Prices from a day on, for announced changes. The newest entry that has
	// begun counts, and units it does not name keep their price. The instant a
	// call was admitted decides.
	Dated []dated `yaml:"dated"`

	// Prices at certain times of the day, UTC. Units an entry does not name
	// keep their price. The instant a call was admitted decides.
	Windows []window `yaml:"windows"`

	// Factors on the cost, by what the answer says the call was. Several that
	// match are multiplied. They do not touch search, file_search, code_session,
	// grounded_request and request.
	Multipliers multipliers `yaml:"multipliers"`
}

// tier is a price for long prompts.
type tier struct {
	// Tokens of the prompt above which the entry applies, at least 1.
	// Required.
	Above int64 `yaml:"above"`
	rates `yaml:",inline"`
}

// dated is a price from a day on.
type dated struct {
	// When the entry begins: a date, at midnight UTC, or a time such as
	// 2026-12-01T08:00:00Z. Required.
	From  time.Time `yaml:"from"`
	rates `yaml:",inline"`
}

// window is a price at a time of the day.
type window struct {
	// Beginning of the window, UTC, such as "01:00"; included. Required.
	From clock `yaml:"from"`

	// End of the window, UTC, up to "24:00"; not included. Before `from`, it
	// is on the next day. Required.
	To    clock `yaml:"to"`
	rates `yaml:",inline"`
}

// multipliers are factors by a field of the answer and its value, more than 0
// and at most 1000, with at most six decimals.
type multipliers struct {
	// By the service tier, such as `{flex: 0.5, priority: 2}`.
	ServiceTier map[string]modelgate.Nano `yaml:"service_tier"`

	// By the speed, such as `{fast: 2}`.
	Speed map[string]modelgate.Nano `yaml:"speed"`

	// By where the model ran, such as `{us: 1.1}`.
	InferenceGeo map[string]modelgate.Nano `yaml:"inference_geo"`
}

// pictures is a price per picture, or a table of them.
type pictures struct {
	each  *modelgate.Nano
	table []picture
}

// picture is one line of the table.
type picture struct {
	// Size as requested or answered, such as 1024x1024. Empty matches any.
	Size string `yaml:"size"`

	// Quality as requested or answered, such as high. Empty matches any.
	Quality string `yaml:"quality"`

	// USD per picture. Required.
	USD *modelgate.Nano `yaml:"usd"`
}

func (i *pictures) decodeNode(d *document, path string, n ast.Node) {
	if _, list := n.(*ast.SequenceNode); list {
		d.value(path, n, &i.table)
		d.faultIf(len(i.table) == 0, path, "is an empty list; give one number or a price by size and quality")
		return
	}
	d.value(path, n, &i.each)
}

// maxPrice bounds the price of any unit; more is a slip.
const maxPrice = 1_000_000 * modelgate.USD

// resolveRates makes rates of a struct with a price in USD for each unit that
// it can price.
func resolveRates(d *document, path string, p any) modelgate.Rates {
	var made modelgate.Rates
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		usd, ok := v.Field(i).Interface().(*modelgate.Nano)
		if table, image := v.Field(i).Interface().(pictures); image {
			usd, ok = table.each, true
		}
		unit, known := modelgate.UnitByName(name)
		if !ok || !known || usd == nil {
			continue
		}
		d.faultIf(*usd < 0 || *usd > maxPrice || made.Set(unit, *usd) != nil, member(path, name), "must be from 0 to 1,000,000 USD")
	}
	return made
}

// resolve makes the price; nil is no price.
func (p *price) resolve(d *document, path string) *modelgate.Price {
	if p == nil {
		return nil
	}
	made := &modelgate.Price{Base: resolveRates(d, path, &p.rates), Multipliers: p.Multipliers.resolve(d, path+".multipliers")}
	for i, line := range p.Image.table {
		key := element(path+".image", i)
		switch {
		case line.USD == nil:
			d.fault(key+".usd", "is missing")
		case *line.USD < 0 || *line.USD > maxPrice:
			d.fault(key+".usd", "must be from 0 to 1,000,000 USD")
		default:
			made.Images = append(made.Images, modelgate.ImagePrice{Size: line.Size, Quality: line.Quality, USD: *line.USD})
		}
	}
	d.faultIf(p.rates.empty(), path, "names no unit; give one, such as input, or leave the price out if it is not known")
	for i := range p.Tiers {
		made.Tiers = append(made.Tiers, p.Tiers[i].resolve(d, element(path+".tiers", i), p.Tiers[:i]))
	}
	for i := range p.Dated {
		made.Dated = append(made.Dated, p.Dated[i].resolve(d, element(path+".dated", i), p.Dated[:i]))
	}
	for i := range p.Windows {
		made.Windows = append(made.Windows, p.Windows[i].resolve(d, element(path+".windows", i)))
	}
	if _, whole := pricing.Snapshot(made, time.Time{}); !whole {
		d.warn(path, "is too long to be kept with an asynchronous job, which would be charged without its pictures and multipliers")
	}
	return made
}

// empty reports whether no unit is named.
func (r *rates) empty() bool { return reflect.ValueOf(r).Elem().IsZero() }

// layer makes the rates of what overlays a price.
func (r *rates) layer(d *document, path string) modelgate.Rates {
	made := resolveRates(d, path, r)
	if r.Image.table != nil {
		d.fault(path+".image", "a list by size and quality belongs to the price itself; give one number here")
	} else if r.empty() {
		d.fault(path, "names no unit; give one, such as input, or remove the entry")
	}
	return made
}

func (t *tier) resolve(d *document, path string, earlier []tier) modelgate.TierPrice {
	key := path + ".above"
	d.faultIf(!d.has(key), key, "is missing")
	d.faultIf(t.Above < 1, key, "must be at least 1")
	d.faultIf(slices.ContainsFunc(earlier, func(e tier) bool { return e.Above == t.Above }), key, "is the same as in an earlier entry")
	return modelgate.TierPrice{Above: t.Above, Rates: t.layer(d, path)}
}

func (t *dated) resolve(d *document, path string, earlier []dated) modelgate.DatedPrice {
	key := path + ".from"
	d.faultIf(!d.has(key), key, "is missing")
	d.faultIf(slices.ContainsFunc(earlier, func(e dated) bool { return e.From.Equal(t.From) }), key, "is the same as in an earlier entry")
	return modelgate.DatedPrice{From: t.From, Rates: t.layer(d, path)}
}

func (w *window) resolve(d *document, path string) modelgate.WindowPrice {
	from, to := path+".from", path+".to"
	d.faultIf(!d.has(from), from, "is missing")
	d.faultIf(!d.has(to), to, "is missing")
	d.faultIf(d.has(from) && w.From == w.To, to, "is the same as from; use 00:00 and 24:00 for the whole day")
	d.faultIf(w.From == 24*60, from, "must be before 24:00")
	return modelgate.WindowPrice{From: int(w.From), To: int(w.To), Rates: w.layer(d, path)}
}

// maxFactor bounds a multiplier, and factorStep is its finest step.
const (
	maxFactor  = 1000 * modelgate.USD
	factorStep = modelgate.USD / 1_000_000
)

func (m *multipliers) resolve(d *document, path string) []modelgate.Multiplier {
	var made []modelgate.Multiplier
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		field, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		factors, _ := v.Field(i).Interface().(map[string]modelgate.Nano)
		for _, value := range slices.Sorted(maps.Keys(factors)) {
			factor, key := factors[value], member(member(path, field), value)
			d.faultIf(value == "", key, "needs a value of the answer as its key")
			d.faultIf(factor <= 0 || factor > maxFactor || factor%factorStep != 0, key, "must be more than 0 and at most 1000, with at most 6 decimals")
			made = append(made, modelgate.Multiplier{Field: field, Value: value, Millionths: int64(factor / factorStep)})
		}
	}
	return made
}

// ToolPrices are prices of what a provider's own tools do, in USD; nil is none.
type ToolPrices struct {
	// USD per thousand searches of the web.
	Search *modelgate.Nano `yaml:"search"`

	// USD per thousand searches in files that the provider keeps.
	FileSearch *modelgate.Nano `yaml:"file_search"`

	// USD per container in which the provider runs code.
	CodeSession *modelgate.Nano `yaml:"code_session"`

	// USD per thousand calls that were answered from searches. It counts where
	// search has no price.
	GroundedRequest *modelgate.Nano `yaml:"grounded_request"`
}

// priceTools completes the prices of language models by those of the tools of
// their providers.
func (c *Config) priceTools(tools map[string]modelgate.Rates) {
	for _, m := range c.Catalog {
		if m.Kind != modelgate.LLM {
			continue
		}
		for i := range m.Routes {
			if rates := tools[m.Routes[i].Provider]; !rates.Empty() {
				m.Routes[i].Price = pricing.WithTools(m.PriceOn(i), rates)
			}
		}
	}
	for i := range c.Prices {
		p := &c.Prices[i]
		if rates := tools[p.Provider]; !rates.Empty() && pricing.PerToken(p.Price) {
			p.Price = pricing.WithTools(p.Price, rates)
		}
	}
}
