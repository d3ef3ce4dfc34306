package config

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
)

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
		if m, table := v.Field(i).Interface().(media); table {
			usd, ok = m.each, true
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
	d.faultIf(p.rates.empty(), path, "names no unit; give one, such as input, or leave the price out if it is not known")
	made := p.terms.resolve(d, path)
	made.Origin = modelgate.PriceOrigin(p.Origin)
	now := *made
	for i := range p.Dated {
		made.Dated = append(made.Dated, p.Dated[i].resolve(d, element(path+".dated", i), now, p.Dated[:i]))
	}
	warnLong(d, path, &now)
	for _, later := range made.Dated {
		warnLong(d, path, later.Price)
	}
	return made
}

func warnLong(d *document, path string, p *modelgate.Price) {
	if _, whole := pricing.Snapshot(p, time.Time{}); !whole {
		d.warn(path, "is too long to be kept with an asynchronous job, which would be charged by the prices of its units alone")
	}
}

// resolve makes a price without dates.
func (t *terms) resolve(d *document, path string) *modelgate.Price {
	made := &modelgate.Price{
		Base: resolveRates(d, path, &t.rates), Multipliers: t.Multipliers.resolve(d, path+".multipliers"),
		Images: t.Image.resolve(d, path+".image"), Seconds: t.Second.resolve(d, path+".second"),
	}
	for i := range t.Tiers {
		made.Tiers = append(made.Tiers, t.Tiers[i].resolve(d, element(path+".tiers", i), t.Tiers[:i]))
	}
	for i := range t.Windows {
		made.Windows = append(made.Windows, t.Windows[i].resolve(d, element(path+".windows", i)))
	}
	for i := range t.Variants {
		made.Variants = append(made.Variants, t.Variants[i].resolve(d, element(path+".variants", i), made.Variants))
	}
	warnVariants(d, path+".variants", made)
	seconds, minutes := len(made.Seconds) > 0, false
	for r := range pricing.Layers(made) {
		seconds, minutes = seconds || r.Has(modelgate.UnitSecond), minutes || r.Has(modelgate.UnitMinute)
	}
	d.faultIf(seconds && minutes, path, "second and minute are one quantity; give one")
	made.Prepare()
	return made
}

// empty reports whether no unit is named.
func (r *rates) empty() bool { return reflect.ValueOf(r).Elem().IsZero() }

// resolve makes the lines of a table; none where there is one price for all.
func (m *media) resolve(d *document, path string) []modelgate.MediaPrice {
	var made []modelgate.MediaPrice
	for i, line := range m.table {
		key := element(path, i)
		switch {
		case line.USD == nil:
			d.fault(key+".usd", "is missing")
		case *line.USD < 0 || *line.USD > maxPrice:
			d.fault(key+".usd", "must be from 0 to 1,000,000 USD")
		default:
			one := modelgate.MediaPrice{Size: line.Size, Quality: line.Quality, USD: *line.USD}
			if line.Audio != nil {
				one.Audio = strconv.FormatBool(*line.Audio)
			}
			made = append(made, one)
		}
	}
	return made
}

// layer makes the rates of what overlays a price.
func (r *rates) layer(d *document, path string) modelgate.Rates {
	made := resolveRates(d, path, r)
	for name, table := range map[string][]mediaLine{"image": r.Image.table, "second": r.Second.table} {
		d.faultIf(table != nil, member(path, name), "a list by size and quality belongs to the price itself; give one number here")
	}
	d.faultIf(r.empty(), path, "names no unit; give one, such as input, or remove the entry")
	return made
}

func (t *tier) resolve(d *document, path string, earlier []tier) modelgate.TierPrice {
	key := path + ".above"
	d.faultIf(!d.has(key), key, "is missing")
	d.faultIf(t.Above < 1, key, "must be at least 1")
	d.faultIf(slices.ContainsFunc(earlier, func(e tier) bool { return e.Above == t.Above }), key, "is the same as in an earlier entry")
	return modelgate.TierPrice{Above: t.Above, Rates: t.layer(d, path)}
}

// resolve makes the price that holds while the entry does: the one outside of
// dates, with what the entry names in place of its own.
func (t *dated) resolve(d *document, path string, now modelgate.Price, earlier []dated) modelgate.DatedPrice {
	from, until := path+".from", path+".until"
	d.faultIf(!d.has(from), from, "is missing")
	d.faultIf(slices.ContainsFunc(earlier, func(e dated) bool { return e.From.Equal(t.From) }), from, "is the same as in an earlier entry")
	d.faultIf(d.has(until) && !t.Until.After(t.From), until, "must be after from")
	own := t.terms.resolve(d, path)
	ended := endedUnits(d, path, own)
	lists := []string{"tiers", "windows", "variants", "multipliers"}
	named := slices.ContainsFunc(lists, func(name string) bool { return d.has(member(path, name)) })
	d.faultIf(t.rates.empty() && len(ended) == 0 && !named, path, "names no unit; give one, such as input, or remove the entry")
	made := now
	for _, unit := range ended {
		made.Base.Unset(unit)
	}
	made.Base = own.Base.Over(made.Base)
	for name, replace := range map[string]func(){
		"image":       func() { made.Images = own.Images },
		"second":      func() { made.Seconds = own.Seconds },
		"minute":      func() { made.Seconds = nil },
		"tiers":       func() { made.Tiers = own.Tiers },
		"windows":     func() { made.Windows = own.Windows },
		"variants":    func() { made.Variants = own.Variants },
		"multipliers": func() { made.Multipliers = own.Multipliers },
	} {
		if key := member(path, name); d.has(key) || d.null(key) && slices.Contains([]string{"image", "second"}, name) {
			replace()
		}
	}
	made.Prepare()
	return modelgate.DatedPrice{From: t.From, Until: t.Until, Price: &made}
}

// endedUnits are the units of the former price that a dated entry takes away:
// those that are null, and those that a table or a price of the same quantity
// takes the place of.
func endedUnits(d *document, path string, own *modelgate.Price) (ended []modelgate.Unit) {
	for u := range modelgate.UnitCount {
		replaced := u == modelgate.UnitImage && own.Images != nil ||
			u == modelgate.UnitSecond && (own.Seconds != nil || own.Base.Has(modelgate.UnitMinute)) ||
			u == modelgate.UnitMinute && (own.Seconds != nil || own.Base.Has(modelgate.UnitSecond))
		if replaced || d.null(member(path, u.String())) {
			ended = append(ended, u)
		}
	}
	return ended
}

func (w *window) resolve(d *document, path string) modelgate.WindowPrice {
	from, to := path+".from", path+".to"
	d.faultIf(!d.has(from), from, "is missing")
	d.faultIf(!d.has(to), to, "is missing")
	d.faultIf(d.has(from) && w.From == w.To, to, "is the same as from; use 00:00 and 24:00 for the whole day")
	d.faultIf(w.From == 24*60, from, "must be before 24:00")
	made := modelgate.WindowPrice{From: int(w.From), To: int(w.To), Rates: w.layer(d, path)}
	for i, name := range w.Days {
		at := slices.Index(days(), name)
		d.faultIf(at < 0, element(path+".days", i), "want one of %s", joined(days()))
		made.Days |= 1 << max(at, 0)
	}
	return made
}

func (v *variant) resolve(d *document, path string, earlier []modelgate.Variant) modelgate.Variant {
	made := modelgate.Variant{Above: v.Above, Rates: v.layer(d, path)}
	for _, c := range []modelgate.Condition{{Field: "service_tier", Value: v.ServiceTier}, {Field: "speed", Value: v.Speed}, {Field: "inference_geo", Value: v.InferenceGeo}} {
		if c.Value != "" {
			made.When = append(made.When, c)
		}
	}
	notNegative(d, path+".above", v.Above)
	d.faultIf(len(made.When) == 0, path, "names no field of the answer; give service_tier, speed or inference_geo")
	d.faultIf(slices.ContainsFunc(earlier, func(e modelgate.Variant) bool { return e.Above == made.Above && slices.Equal(e.When, made.When) }),
		path, "has the same fields and above as an earlier entry")
	return made
}

// warnVariants names the tiers for which a variant has no entry of its own.
func warnVariants(d *document, path string, p *modelgate.Price) {
	for i, v := range p.Variants {
		first := slices.IndexFunc(p.Variants, func(e modelgate.Variant) bool { return slices.Equal(e.When, v.When) })
		for _, t := range p.Tiers {
			own := func(e modelgate.Variant) bool { return e.Above == t.Above && slices.Equal(e.When, v.When) }
			if first == i && !slices.ContainsFunc(p.Variants, own) {
				d.warn(element(path, i), "has no entry for prompts above %d, a tier; the dearer of both counts there", t.Above)
			}
		}
	}
}

// maxFactor bounds a multiplier and maxPriceFactor that of a provider;
// factorStep is their finest step.
const (
	maxFactor      = 1000 * modelgate.USD
	maxPriceFactor = 100 * modelgate.USD
	factorStep     = modelgate.USD / 1_000_000
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
			d.faultIf(factor < 0 || factor > maxFactor || factor%factorStep != 0, key, "must be from 0 to 1000, with at most 6 decimals")
			made = append(made, modelgate.Multiplier{Field: field, Value: value, Millionths: int64(factor / factorStep)})
		}
	}
	return made
}

// account is how the prices of a provider's account differ from those of its
// models.
type account struct {
	tools  modelgate.Rates // for language models that do not price them
	factor int64           // in millionths, 0 for none
}

// price is a price at the account.
func (a account) price(p *modelgate.Price, languageModel bool) *modelgate.Price {
	if languageModel && !a.tools.Empty() {
		p = pricing.WithTools(p, a.tools)
	}
	if a.factor != 0 {
		p = pricing.WithFactor(p, a.factor)
	}
	return p
}

// accounts are those of the providers, by name.
func accounts(d *document, providers []Provider) map[string]account {
	all := make(map[string]account, len(providers))
	for i := range providers {
		p, path := &providers[i], element("providers", i)
		key, one := path+".price_factor", account{tools: resolveRates(d, path+".tool_prices", &p.ToolPrices)}
		d.faultIf(p.PriceFactor <= 0 || p.PriceFactor > maxPriceFactor || p.PriceFactor%factorStep != 0, key, "must be more than 0 and at most 100, with at most 6 decimals")
		if p.PriceFactor != modelgate.USD {
			one.factor = int64(p.PriceFactor / factorStep)
		}
		all[p.Name] = one
	}
	return all
}

// priceAt prices every route and every entry of the price list at the account
// of its provider.
func (c *Config) priceAt(accounts map[string]account) {
	for _, m := range c.Catalog {
		for i := range m.Routes {
			if a := accounts[m.Routes[i].Provider]; a != (account{}) {
				m.Routes[i].Price = a.price(m.PriceOn(i), m.Kind == modelgate.LLM)
			}
		}
	}
	for i := range c.Prices {
		p := &c.Prices[i]
		p.Price = accounts[p.Provider].price(p.Price, pricing.PerToken(p.Price))
	}
}
