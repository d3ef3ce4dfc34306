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
	rates := dearest(p)
	for _, i := range p.Images {
		rates.SetPerMillion(modelgate.UnitImage, max(rates.PerMillion(modelgate.UnitImage), int64(i.USD)))
	}
	var sum bounded
	choices := max(d.Choices, 1)
	sum.add(&rates, d.Input, choices, modelgate.UnitInput, modelgate.UnitCachedInput, modelgate.UnitCacheWrite,
		modelgate.UnitCacheWrite1h, modelgate.UnitAudioInput)
	sum.add(&rates, d.Output, choices, modelgate.UnitOutput, modelgate.UnitReasoning, modelgate.UnitAudioOutput)
	sum.add(&rates, d.Images, 1_000_000, modelgate.UnitImage)
	sum.add(&rates, d.Characters, 1, modelgate.UnitCharacters)
	sum.add(&rates, d.Seconds, 1, modelgate.UnitSecond)
	sum.add(&rates, 1, 1_000_000, modelgate.UnitRequest)
	sum.add(&rates, 0, 1, modelgate.UnitMegapixel)
	if d.Searches {
		for unit := modelgate.UnitSearch; isTool(unit); unit++ {
			sum.add(&rates, 0, 1, unit)
		}
	}
	if sum.boundless {
		return 0, false
	}
	return sum.times(dearestMultiplier(p)), true
}

// bounded is an amount of which some part may be without bound.
type bounded struct {
	amount
	boundless bool
}

// add adds the dearest of units that stand for one another, times n·times.
// An n that is not known is without bound where any of them has a price.
func (b *bounded) add(r *modelgate.Rates, n, times int64, units ...modelgate.Unit) {
	var dearest int64
	for _, u := range units {
		rate, _ := rateOf(r, u)
		dearest = max(dearest, rate)
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

// dearest holds for each unit the highest price that any layer can lead to.
func dearest(p *modelgate.Price) modelgate.Rates {
	worst := p.Base
	for r := range layers(p) {
		for u := range modelgate.UnitCount {
			if r.Has(u) {
				worst.SetPerMillion(u, max(worst.PerMillion(u), r.PerMillion(u)))
			}
		}
	}
	// What the base leaves open costs as much as its neighbour where the
	// layer that prices it does not apply.
	for u := range modelgate.UnitCount {
		if next, ok := dearer(u); ok && worst.Has(u) && !p.Base.Has(u) {
			rate, _ := rateOf(&worst, next)
			worst.SetPerMillion(u, max(worst.PerMillion(u), rate))
		}
	}
	return worst
}

// dearestMultiplier is the product, over the fields, of the highest factor
// that a value of the field stands for, at least 1; nil when there is none.
func dearestMultiplier(p *modelgate.Price) *big.Rat {
	if len(p.Multipliers) == 0 {
		return nil
	}
	byValue := make(map[[2]string]*big.Rat) // by field and value
	highest := make(map[string]*big.Rat)
	for _, m := range p.Multipliers {
		key := [2]string{m.Field, m.Value}
		if byValue[key] == nil {
			byValue[key] = big.NewRat(1, 1)
		}
		byValue[key].Mul(byValue[key], ratio(m))
		highest[m.Field] = big.NewRat(1, 1)
	}
	for key, factor := range byValue {
		if factor.Cmp(highest[key[0]]) > 0 {
			highest[key[0]] = factor
		}
	}
	product := big.NewRat(1, 1)
	for _, factor := range highest {
		product.Mul(product, factor)
	}
	return product
}
