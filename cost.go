package modelgate

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"
)

// Cost is the price of a usage for a call admitted at the instant at, rounded
// half to even once, together with the rates it was computed with, in the
// words of the configuration. A nil price is Unpriced.
func (p *Price) Cost(u *Usage, at time.Time) (Nano, Priced, string) {
	if p == nil {
		return 0, Unpriced, ""
	}
	rates := p.effective(u, at)
	label := p.label(rates)
	hi, lo, priced, ok := rates.total(u)
	if !ok {
		return math.MaxInt64, PartPriced, label
	}
	return scale(hi, lo, p.multiplier(u, &label)), priced.outcome(rates), label
}

// total is the sum of quantity × rate over all units, in millionths of a
// nano-USD and 128 bits, and which units had a price. It fails when the sum
// is larger than that.
func (r *Rates) total(u *Usage) (hi, lo uint64, priced pricing, ok bool) {
	for unit := range unitCount {
		quantity := u.quantity(unit)
		if quantity <= 0 {
			continue
		}
		rate, has := r.rate(unit)
		priced.note(unit, has)
		h, l := bits.Mul64(uint64(quantity), uint64(rate))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, carry = bits.Add64(hi, h, carry)
		if carry != 0 {
			return 0, 0, priced, false
		}
	}
	return hi, lo, priced, true
}

// scale is hi:lo millionths of a nano-USD times the factor, nil for 1.
func scale(hi, lo uint64, factor *big.Rat) Nano {
	if factor == nil {
		return divideHalfEven(hi, lo, 1_000_000)
	}
	sum := new(big.Int).SetUint64(hi)
	sum.Lsh(sum, 64).Or(sum, new(big.Int).SetUint64(lo))
	divisor := new(big.Int).Mul(factor.Denom(), big.NewInt(1_000_000))
	return divideBigHalfEven(sum.Mul(sum, factor.Num()), divisor)
}

// label is the rates in words.
func (p *Price) label(r Rates) string {
	p.once.Do(func() { p.baseLabel = p.Base.String() })
	if r == p.Base {
		return p.baseLabel
	}
	return r.String()
}

// At is what holds at an instant for a call of which nothing else is known.
func (p *Price) At(at time.Time) Rates { return p.effective(&Usage{}, at) }

// Varies reports whether a call can cost more or less than At says.
func (p *Price) Varies() bool {
	return len(p.Tiers)+len(p.Windows)+len(p.Multipliers) > 0 || len(p.Images) > 1
}

// effective overlays what applies to this call.
func (p *Price) effective(u *Usage, at time.Time) Rates {
	rates := p.dated(at)
	prompt, passed := u.PromptTokens(), int64(-1)
	base := rates
	for _, t := range p.Tiers {
		if prompt > t.Above && t.Above > passed {
			passed = t.Above
			rates = t.Rates.over(base)
		}
	}
	rates = p.windowed(at, rates)
	p.picture(u, &rates)
	return rates
}

// dated is the base as it is at the instant.
func (p *Price) dated(at time.Time) Rates {
	rates := p.Base
	var newest time.Time
	for _, d := range p.Dated {
		if !at.Before(d.From) && !d.From.Before(newest) {
			newest = d.From
			rates = d.Rates.over(p.Base)
		}
	}
	return rates
}

// windowed lays the windows that hold at the instant over rates.
func (p *Price) windowed(at time.Time, rates Rates) Rates {
	minute := at.UTC().Hour()*60 + at.UTC().Minute()
	for _, w := range p.Windows {
		if w.From <= w.To && minute >= w.From && minute < w.To || w.From > w.To && (minute >= w.From || minute < w.To) {
			rates = w.Rates.over(rates)
		}
	}
	return rates
}

// picture overlays the table of images.
func (p *Price) picture(u *Usage, rates *Rates) {
	for _, i := range p.Images {
		if (i.Size == "" || i.Size == u.Size) && (i.Quality == "" || i.Quality == u.Quality) {
			rates.nano[UnitImage] = int64(i.USD)
			rates.set |= 1 << UnitImage
			return
		}
	}
}

// multiplier is the product of the multipliers that match, nil when there is
// none.
func (p *Price) multiplier(u *Usage, label *string) *big.Rat {
	var factor *big.Rat
	for _, m := range p.Multipliers {
		if u.modifier(m.Field) != m.Value || m.Value == "" {
			continue
		}
		if factor == nil {
			factor = big.NewRat(1, 1)
		}
		factor.Mul(factor, m.factor())
		*label += fmt.Sprintf(" %s=%s×%s", m.Field, m.Value, appendFixed(nil, m.Millionths, 6))
	}
	return factor
}

func (m Multiplier) factor() *big.Rat { return big.NewRat(m.Millionths, 1_000_000) }

// pricing keeps account of which units of a call had a price. Tokens and the
// media units are two measures of the same thing, so one of them suffices;
// searches come on top. A price by the request stands in for the tokens or
// the media, but not for part of them.
type pricing struct{ some, tokens, tokensMissing, media, mediaMissing, searchMissing bool }

func (p *pricing) note(u Unit, ok bool) {
	if u == UnitRequest {
		return
	}
	p.some = p.some || ok
	switch {
	case u <= UnitAudioOutput:
		p.tokens, p.tokensMissing = p.tokens || ok, p.tokensMissing || !ok
	case u == UnitSearch:
		p.searchMissing = !ok
	default:
		p.media, p.mediaMissing = p.media || ok, p.mediaMissing || !ok
	}
}

func (p *pricing) outcome(r Rates) Priced {
	request := r.has(UnitRequest)
	missing := p.tokensMissing || p.mediaMissing || p.searchMissing
	switch {
	case r.Empty(), missing && !p.some && !request:
		return Unpriced
	case p.searchMissing:
		return PartPriced
	case p.media:
		return FullyPriced
	case p.tokensMissing && (p.tokens || !request), p.mediaMissing && !p.tokens && !request:
		return PartPriced
	}
	return FullyPriced
}

// Worst is what the dearest of all tiers, dates, windows and multipliers
// would make of a usage, which is what a strict reservation must hold: the
// cost of a usage never exceeds it, whatever the instant and whatever the
// reply says it was. Units that are dear in different layers are taken
// together, so it may lie above any cost that is possible.
func (p *Price) Worst(u *Usage) Nano {
	rates := p.dearest()
	p.picture(u, &rates)
	hi, lo, _, ok := rates.total(u)
	if !ok {
		return math.MaxInt64
	}
	return scale(hi, lo, p.dearestMultiplier())
}

// dearest holds for each unit the highest price that any layer can lead to.
func (p *Price) dearest() Rates {
	worst := p.Base
	raise := func(r *Rates) {
		for u := range unitCount {
			if r.has(u) {
				worst.nano[u] = max(worst.nano[u], r.nano[u])
			}
		}
		worst.set |= r.set
	}
	for i := range p.Dated {
		raise(&p.Dated[i].Rates)
	}
	for i := range p.Tiers {
		raise(&p.Tiers[i].Rates)
	}
	for i := range p.Windows {
		raise(&p.Windows[i].Rates)
	}
	// What the base leaves open costs as much as its neighbour where the
	// layer that prices it does not apply.
	for u := range unitCount {
		if next, ok := dearer(u); ok && worst.has(u) && !p.Base.has(u) {
			rate, _ := worst.rate(next)
			worst.nano[u] = max(worst.nano[u], rate)
		}
	}
	return worst
}

// dearestMultiplier is the product, over the fields, of the highest factor
// that a value of the field stands for, at least 1; nil when there is none.
func (p *Price) dearestMultiplier() *big.Rat {
	if len(p.Multipliers) == 0 {
		return nil
	}
	byField := make(map[string]map[string]*big.Rat)
	for _, m := range p.Multipliers {
		values := byField[m.Field]
		if values == nil {
			values = make(map[string]*big.Rat)
			byField[m.Field] = values
		}
		if values[m.Value] == nil {
			values[m.Value] = big.NewRat(1, 1)
		}
		values[m.Value].Mul(values[m.Value], m.factor())
	}
	product := big.NewRat(1, 1)
	for _, values := range byField {
		highest := big.NewRat(1, 1)
		for _, factor := range values {
			if factor.Cmp(highest) > 0 {
				highest = factor
			}
		}
		product.Mul(product, highest)
	}
	return product
}
