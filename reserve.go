package modelgate

import (
	"math/bits"
	"time"
)

// Known reports whether any unit has a price, at any time. It is false for a
// nil price.
func (p *Price) Known() bool {
	if p == nil {
		return false
	}
	known := !p.Base.Empty() || len(p.Images) > 0
	for i := range p.Dated {
		known = known || !p.Dated[i].Rates.Empty()
	}
	for i := range p.Tiers {
		known = known || !p.Tiers[i].Rates.Empty()
	}
	for i := range p.Windows {
		known = known || !p.Windows[i].Rates.Empty()
	}
	return known
}

// Estimate is Cost without the words, for a usage that is a guess: all output
// may be reasoning where that is dearer.
func (p *Price) Estimate(u *Usage, at time.Time) Nano {
	if p == nil {
		return 0
	}
	rates := p.effective(u, at)
	guess := *u
	if output, _ := rates.rate(UnitOutput); rates.has(UnitReasoning) && rates.nano[UnitReasoning] > output {
		guess.Output, guess.Reasoning = 0, guess.Output+guess.Reasoning
	}
	sum, _ := rates.total(&guess)
	return sum.times(nil)
}

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
// bound: then no amount can be reserved that is surely enough.
func (p *Price) Bound(d Demand) (Nano, bool) {
	rates := p.dearest()
	for _, i := range p.Images {
		rates.nano[UnitImage] = max(rates.nano[UnitImage], int64(i.USD))
		rates.set |= 1 << UnitImage
	}
	var sum bounded
	choices := max(d.Choices, 1)
	sum.family(&rates, d.Input, choices, UnitInput, UnitCachedInput, UnitCacheWrite, UnitCacheWrite1h, UnitAudioInput)
	sum.family(&rates, d.Output, choices, UnitOutput, UnitReasoning, UnitAudioOutput)
	sum.family(&rates, d.Images, 1_000_000, UnitImage)
	sum.family(&rates, d.Characters, 1, UnitCharacters)
	sum.family(&rates, d.Seconds, 1, UnitSecond)
	sum.family(&rates, 1, 1_000_000, UnitRequest)
	sum.family(&rates, 0, 1, UnitMegapixel)
	if d.Searches {
		for unit := UnitSearch; unit.tool(); unit++ {
			sum.family(&rates, 0, 1, unit)
		}
	}
	if sum.boundless {
		return 0, false
	}
	return sum.times(p.dearestMultiplier()), true
}

// bounded is a total of which some part may be without bound.
type bounded struct {
	total
	boundless bool
}

// family adds the dearest of units that stand for one another, times n·times.
// An n that is not known is without bound where any of them has a price.
func (w *bounded) family(r *Rates, n, times int64, units ...Unit) {
	var dearest int64
	priced := false
	for _, u := range units {
		if rate, ok := r.rate(u); ok {
			dearest, priced = max(dearest, rate), true
		}
	}
	if !priced || dearest == 0 {
		return
	}
	if n <= 0 {
		w.boundless = true
		return
	}
	high, quantity := bits.Mul64(uint64(n), uint64(times))
	w.over = w.over || high != 0
	w.add(units[0], quantity, uint64(dearest))
}
