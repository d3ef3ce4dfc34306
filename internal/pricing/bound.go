package pricing

import (
	"math/big"
	"math/bits"

	"modelgate"
)

// Demand is the most that a call can use of everything; 0 is unknown, but for
// Searches.
type Demand struct {
	// Input and Output are tokens, for each of Choices answers (0 counts as
	// one).
	Input, Output, Choices int64
	Images, Characters     int64
	Seconds                int64 // millionths
	// Searches: the provider may search or run tools at its own discretion,
	// as often as it likes.
	Searches bool
}

// Bound is the most that a call can cost, whatever the instant and whatever
// the reply says it was. It fails where a unit that has a price is without
// bound: then no amount can be reserved that is surely enough. A unit costs the
// highest price that any layer has for it, so the bound may lie above every
// cost that is possible.
func Bound(p *modelgate.Price, d Demand) (modelgate.Nano, bool) {
	most, ok := boundOf(p, d)
	for _, later := range p.Dated {
		more, bounded := boundOf(later.Price, d)
		most, ok = max(most, more), ok && bounded
	}
	if !ok {
		return 0, false
	}
	return most, true
}

// boundOf is Bound without the dated prices.
func boundOf(p *modelgate.Price, d Demand) (modelgate.Nano, bool) {
	sum := bounded{rates: dearest(p), base: &p.Base}
	choices := max(d.Choices, 1)
	sum.add(d.Input, choices, unitsOf(modelgate.InputTokens)...)
	sum.add(d.Output, choices, unitsOf(modelgate.OutputTokens)...)
	sum.add(d.Images, 1_000_000, modelgate.UnitImage)
	sum.add(d.Characters, 1, modelgate.UnitCharacters)
	sum.add(d.Seconds, 1, modelgate.UnitSecond)
	sum.add(1, 1_000_000, modelgate.UnitRequest)
	sum.add(0, 1, modelgate.UnitMegapixel)
	sum.add(0, 1, modelgate.UnitPage)
	if d.Searches {
		sum.add(0, 1, unitsOf(modelgate.ProviderTool)...)
	}
	if sum.boundless {
		return 0, false
	}
	return sum.times(dearestFactor(p)), true
}

// unitsOf are the units of a kind.
func unitsOf(kind modelgate.UnitKind) (all []modelgate.Unit) {
	for u := range modelgate.UnitCount {
		if u.Kind() == kind {
			all = append(all, u)
		}
	}
	return all
}

// bounded is an amount of which some part may be without bound.
type bounded struct {
	amount
	rates     modelgate.Rates  // the highest of any layer
	base      *modelgate.Rates // those that hold where no layer does
	boundless bool
}

// add adds the dearest of units that stand for one another, times n·times.
// An n that is not known is without bound where any of them has a price.
func (b *bounded) add(n, times int64, units ...modelgate.Unit) {
	var dearest int64
	for _, u := range units {
		dearest = max(dearest, b.rate(u))
	}
	if dearest == 0 {
		return
	}
	if n <= 0 {
		b.boundless = true
		return
	}
	high, quantity := bits.Mul64(uint64(n), uint64(times))
	b.over = b.over || high != 0
	b.amount.add(units[0], quantity, uint64(dearest))
}

// rate is the most that a million quanta of a unit cost. What the base leaves
// open costs as much as its fallback where the layer that prices it does not
// apply.
func (b *bounded) rate(u modelgate.Unit) int64 {
	most := b.rates.PerMillion(u)
	next, ok := u.Fallback()
	if !ok || b.base.Has(u) {
		return most
	}
	rate := b.rate(next)
	if next == modelgate.UnitMinute {
		rate = rate/60 + min(rate%60, 1)
	}
	return max(most, rate)
}

// dearest holds for each unit the highest price that any layer or line of a
// table has.
func dearest(p *modelgate.Price) modelgate.Rates {
	worst := p.Base
	raise := func(u modelgate.Unit, rate int64) { worst.SetPerMillion(u, max(worst.PerMillion(u), rate)) }
	for r := range Layers(p) {
		for u := range modelgate.UnitCount {
			if r.Has(u) {
				raise(u, r.PerMillion(u))
			}
		}
	}
	for _, line := range p.Images {
		raise(modelgate.UnitImage, int64(line.USD))
	}
	for _, line := range p.Seconds {
		raise(modelgate.UnitSecond, int64(line.USD))
	}
	return worst
}

// dearestFactor is the product, over the fields, of the highest factor that a
// value of the field stands for, at least 1, and of the factor of the account;
// nil when there is none.
func dearestFactor(p *modelgate.Price) *big.Rat {
	if len(p.Multipliers) == 0 {
		return account(p)
	}
	byValue := make(map[modelgate.Condition]*big.Rat)
	highest := make(map[string]*big.Rat)
	for _, m := range p.Multipliers {
		key := modelgate.Condition{Field: m.Field, Value: m.Value}
		if byValue[key] == nil {
			byValue[key] = big.NewRat(1, 1)
		}
		byValue[key].Mul(byValue[key], ratio(m.Millionths))
		highest[m.Field] = big.NewRat(1, 1)
	}
	for key, factor := range byValue {
		if factor.Cmp(highest[key.Field]) > 0 {
			highest[key.Field] = factor
		}
	}
	product := big.NewRat(1, 1)
	if own := account(p); own != nil {
		product = own
	}
	for _, factor := range highest {
		product.Mul(product, factor)
	}
	return product
}
