package pricing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelgate"
)

// At is the rates that hold at an instant for a call of which nothing else is
// known, with the factor of the account.
func At(p *modelgate.Price, at time.Time) modelgate.Rates {
	var made modelgate.Rates
	f := inForce(p, &modelgate.Usage{}, at, &made)
	made = *f.rates
	factor := account(f.price)
	if factor == nil {
		return made
	}
	for u := range modelgate.UnitCount {
		if made.Has(u) && u.Scaled() {
			var one amount
			one.add(modelgate.UnitInput, 1_000_000, uint64(made.PerMillion(u)))
			made.SetPerMillion(u, int64(one.times(factor)))
		}
	}
	return made
}

// Change is the price of a unit from an instant on.
type Change struct {
	From time.Time
	modelgate.Rate
}

// Changes are the prices that At will say after an instant and that are not
// those before, in order of time, at most so many. What loses its price is left
// out.
func Changes(p *modelgate.Price, after time.Time, most int) []Change {
	var instants []time.Time
	for _, d := range p.Dated {
		for _, t := range [...]time.Time{d.From, d.Until} {
			if t.After(after) {
				instants = append(instants, t)
			}
		}
	}
	slices.SortFunc(instants, time.Time.Compare)
	var made []Change
	before := At(p, after)
	for _, t := range slices.CompactFunc(instants, time.Time.Equal) {
		now := At(p, t)
		for _, r := range now.List() {
			if len(made) < most && (!before.Has(r.Unit) || before.PerMillion(r.Unit) != now.PerMillion(r.Unit)) {
				made = append(made, Change{t, r})
			}
		}
		before = now
	}
	return made
}

// Varies reports whether a call can cost more or less than At says.
func Varies(p *modelgate.Price) bool {
	return len(p.Tiers)+len(p.Windows)+len(p.Variants)+len(p.Multipliers) > 0 || len(p.Images) > 1 || len(p.Seconds) > 1
}

// Known reports whether any unit has a price, at any time. It is false for a
// nil price.
func Known(p *modelgate.Price) bool {
	if p == nil {
		return false
	}
	known := len(p.Images)+len(p.Seconds) > 0
	for r := range Layers(p) {
		known = known || !r.Empty()
	}
	return known || slices.ContainsFunc(p.Dated, func(d modelgate.DatedPrice) bool { return Known(d.Price) })
}

// PerToken reports whether output tokens have a price, as those of a language
// model do. It is false for a nil price.
func PerToken(p *modelgate.Price) bool { return p != nil && p.Base.Has(modelgate.UnitOutput) }

// WithTools is the price with the rates of tools where it has none of its own;
// nil for nil. Searches and grounded requests stand for one another: a price
// that has one of them is not given the other.
func WithTools(p *modelgate.Price, tools modelgate.Rates) *modelgate.Price {
	return changed(p, func(p *modelgate.Price) {
		own := tools
		if p.Base.Has(modelgate.UnitSearch) || p.Base.Has(modelgate.UnitGroundedRequest) {
			own.Unset(modelgate.UnitSearch)
			own.Unset(modelgate.UnitGroundedRequest)
		}
		p.Base = p.Base.Over(own)
	})
}

// WithFactor is the price at an account whose prices differ by a factor in
// millionths; nil for nil.
func WithFactor(p *modelgate.Price, factor int64) *modelgate.Price {
	return changed(p, func(p *modelgate.Price) { p.Factor = factor })
}

// changed is a copy of a price that is changed, and so is each of its dated
// prices.
func changed(p *modelgate.Price, change func(*modelgate.Price)) *modelgate.Price {
	if p == nil {
		return nil
	}
	made := *p
	change(&made)
	made.Prepare()
	made.Dated = slices.Clone(p.Dated)
	for i := range made.Dated {
		made.Dated[i].Price = changed(made.Dated[i].Price, change)
	}
	return &made
}

// Layers are the base and all rates that can overlay it, dated prices aside.
func Layers(p *modelgate.Price) func(yield func(*modelgate.Rates) bool) {
	return func(yield func(*modelgate.Rates) bool) {
		more := yield(&p.Base)
		for i := 0; more && i < len(p.Tiers); i++ {
			more = yield(&p.Tiers[i].Rates)
		}
		for i := 0; more && i < len(p.Windows); i++ {
			more = yield(&p.Windows[i].Rates)
		}
		for i := 0; more && i < len(p.Variants); i++ {
			more = yield(&p.Variants[i].Rates)
		}
	}
}

// force is what of a price is in force for a call.
type force struct {
	price   *modelgate.Price // the dated one, else the price itself
	rates   *modelgate.Rates // the base of price where no layer can hold
	above   int64            // the threshold that the prompt has passed, 0 for none
	variant *variant         // nil for none
	guessed bool             // something was made that no line of a table is for
}

// inForce lays the layers of a price over its base, in room: the tier, the
// windows, the variant, and the lines of tables.
func inForce(p *modelgate.Price, u *modelgate.Usage, at time.Time, room *modelgate.Rates) force {
	if len(p.Dated) > 0 {
		p = dated(p, at)
	}
	f := force{price: p, rates: &p.Base}
	if len(p.Tiers)+len(p.Windows)+len(p.Variants)+len(p.Images)+len(p.Seconds) == 0 { // as for most models
		return f
	}
	*room = p.Base
	f.rates = room
	prompt := u.PromptTokens()
	tier := tierOf(p, prompt)
	f.variant = variantOf(p, u, prompt)
	if tier != nil {
		f.above = tier.Above
		*room = tier.Rates.Over(*room)
	}
	*room = windowed(p, at, *room)
	if f.variant != nil {
		*room = f.variant.over(*room, tier)
		f.above = max(f.above, f.variant.Above)
	}
	f.table(p.Images, u, modelgate.UnitImage, u.Images)
	f.table(p.Seconds, u, modelgate.UnitSecond, u.Seconds)
	return f
}

// table sets the rate of what was made by a table of prices. What no line
// matches costs what the dearest does, unless there is a price for any.
func (f *force) table(lines []modelgate.MediaPrice, u *modelgate.Usage, unit modelgate.Unit, made int64) {
	if len(lines) == 0 {
		return
	}
	usd, matched := mediaPrice(lines, u)
	f.guessed = f.guessed || made > 0 && !matched
	if matched || !f.rates.Has(unit) {
		f.rates.SetPerMillion(unit, int64(usd))
	}
}

// label is the price in force in words.
func (f *force) label() string {
	if *f.rates == f.price.Base {
		return f.price.BaseLabel() + f.words()
	}
	return f.rates.String() + f.words()
}

// words are the threshold and the variant, as a label spells them.
func (f *force) words() string {
	if f.above == 0 && f.variant == nil { // as in most calls
		return ""
	}
	var b strings.Builder
	if f.above > 0 {
		b.WriteString(" above=" + strconv.FormatInt(f.above, 10))
	}
	if f.variant != nil {
		for _, c := range f.variant.When {
			fmt.Fprintf(&b, " %s=%s", c.Field, c.Value)
		}
	}
	return b.String()
}

// dated is the price that holds at the instant: of those that have begun and
// not ended the one that began last, else p itself.
func dated(p *modelgate.Price, at time.Time) *modelgate.Price {
	held, newest := p, time.Time{}
	for _, d := range p.Dated {
		if !at.Before(d.From) && !d.From.Before(newest) && (d.Until.IsZero() || at.Before(d.Until)) {
			held, newest = d.Price, d.From
		}
	}
	return held
}

// tierOf is the highest tier that a prompt has passed, nil for none.
func tierOf(p *modelgate.Price, prompt int64) (passed *modelgate.TierPrice) {
	for i := range p.Tiers {
		if t := &p.Tiers[i]; prompt > t.Above && (passed == nil || t.Above > passed.Above) {
			passed = t
		}
	}
	return passed
}

// windowed lays the windows that hold at the instant over rates.
func windowed(p *modelgate.Price, at time.Time, rates modelgate.Rates) modelgate.Rates {
	at = at.UTC()
	minute, today := at.Hour()*60+at.Minute(), at.Weekday()
	for _, w := range p.Windows {
		began := today
		late := w.From <= w.To || minute >= w.From
		if !late { // past midnight, of the day before
			began = (today + 6) % 7
		}
		holds := minute >= w.From && minute < w.To
		if w.From > w.To {
			holds = minute >= w.From || minute < w.To
		}
		if holds && (w.Days == 0 || w.Days&(1<<began) != 0) {
			rates = w.Rates.Over(rates)
		}
	}
	return rates
}

// mediaPrice is the price of the first line that matches a usage, else of the
// dearest.
func mediaPrice(lines []modelgate.MediaPrice, u *modelgate.Usage) (usd modelgate.Nano, matched bool) {
	for i := range lines {
		if lines[i].Matches(u) {
			return lines[i].USD, true
		}
		usd = max(usd, lines[i].USD)
	}
	return usd, false
}
