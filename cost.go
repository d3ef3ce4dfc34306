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
	sum, priced := rates.total(u)
	_, matched := p.pictured(u)
	priced.guessed = u.Images > 0 && !matched
	return sum.times(p.multiplier(u, &label)), priced.outcome(rates), label
}

// total is the sum of quantity × rate over all units, and which units had a
// price. Grounded requests and the searches in them are two measures of the
// same thing: searches count where they have a price, else the requests.
func (r *Rates) total(u *Usage) (sum total, priced pricing) {
	for unit := range unitCount {
		quantity := u.quantity(unit)
		switch {
		case quantity <= 0,
			unit == UnitGroundedRequest && r.has(UnitSearch),
			unit == UnitSearch && u.GroundedRequests > 0 && !r.has(UnitSearch):
			continue
		}
		rate, has := r.rate(unit)
		priced.note(unit, has)
		sum.add(unit, uint64(quantity), uint64(rate))
	}
	return sum, priced
}

// total is an amount before it is rounded: what multipliers touch and what they
// do not.
type total struct {
	scaled, plain wide
	over          bool // larger than any amount
}

func (t *total) add(u Unit, quantity, rate uint64) {
	part := &t.plain
	if u.scaled() {
		part = &t.scaled
	}
	if !part.add(bits.Mul64(quantity, rate)) {
		t.over = true
	}
}

// times is the amount with the factor, nil for 1, on what it touches.
func (t *total) times(factor *big.Rat) Nano {
	if factor == nil {
		sum := t.scaled
		if !sum.add(t.plain.hi, t.plain.lo) || t.over {
			return math.MaxInt64
		}
		return divideHalfEven(sum.hi, sum.lo, 1_000_000)
	}
	if t.over {
		return math.MaxInt64
	}
	scaled, plain := t.scaled.big(), t.plain.big()
	scaled.Mul(scaled, factor.Num())
	plain.Mul(plain, factor.Denom())
	divisor := new(big.Int).Mul(factor.Denom(), big.NewInt(1_000_000))
	return divideBigHalfEven(scaled.Add(scaled, plain), divisor)
}

// wide is a sum of 128 bits, in millionths of a nano-USD.
type wide struct{ hi, lo uint64 }

// add adds hi:lo and reports whether the sum still fits.
func (w *wide) add(hi, lo uint64) bool {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, carry = bits.Add64(w.hi, hi, carry)
	return carry == 0
}

func (w *wide) big() *big.Int {
	n := new(big.Int).SetUint64(w.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(w.lo))
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

// picture overlays the table of images. A picture of which no line speaks costs
// what the dearest does, unless there is a price for any.
func (p *Price) picture(u *Usage, rates *Rates) {
	if usd, matched := p.pictured(u); len(p.Images) > 0 && (matched || !rates.has(UnitImage)) {
		rates.nano[UnitImage] = int64(usd)
		rates.set |= 1 << UnitImage
	}
}

// pictured is the price of the first line of the table of images that speaks of
// the usage's, else that of the dearest line; matched is true without a table.
func (p *Price) pictured(u *Usage) (usd Nano, matched bool) {
	for i := range p.Images {
		if line := &p.Images[i]; line.matches(u) {
			return line.USD, true
		}
		usd = max(usd, p.Images[i].USD)
	}
	return usd, len(p.Images) == 0
}

func (i *ImagePrice) matches(u *Usage) bool {
	return (i.Size == "" || i.Size == u.Size) && (i.Quality == "" || i.Quality == u.Quality)
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
// tools come on top. A price by the request stands in for the tokens or the
// media, but not for part of them.
type pricing struct {
	some, tokens, tokensMissing, media, mediaMissing, toolMissing bool
	guessed                                                       bool // no line of the table of images speaks of the pictures
}

func (p *pricing) note(u Unit, ok bool) {
	if u == UnitRequest {
		return
	}
	p.some = p.some || ok
	switch {
	case u <= UnitAudioOutput:
		p.tokens, p.tokensMissing = p.tokens || ok, p.tokensMissing || !ok
	case u.tool():
		p.toolMissing = p.toolMissing || !ok
	default:
		p.media, p.mediaMissing = p.media || ok, p.mediaMissing || !ok
	}
}

func (p *pricing) outcome(r Rates) Priced {
	request := r.has(UnitRequest)
	missing := p.tokensMissing || p.mediaMissing || p.toolMissing
	switch {
	case r.Empty(), missing && !p.some && !request:
		return Unpriced
	case p.toolMissing, p.guessed && p.media:
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
	if usd, matched := p.pictured(u); !matched {
		rates.nano[UnitImage] = max(rates.nano[UnitImage], int64(usd))
		rates.set |= 1 << UnitImage
	}
	p.picture(u, &rates)
	factor := p.dearestMultiplier()
	sum, _ := rates.total(u)
	worst := sum.times(factor)
	if u.GroundedRequests > 0 && !p.Base.has(UnitSearch) { // charged by while no layer has a price for searches
		rates.set &^= 1 << UnitSearch
		sum, _ = rates.total(u)
		worst = max(worst, sum.times(factor))
	}
	return worst
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

// WithTools is the price with those of tools where it has none of its own; nil
// for nil. Searches and grounded requests stand for one another: a price that
// has one of them is not given the other.
func (p *Price) WithTools(tools Rates) *Price {
	if p == nil {
		return nil
	}
	if p.Base.has(UnitSearch) || p.Base.has(UnitGroundedRequest) {
		tools.set &^= 1<<UnitSearch | 1<<UnitGroundedRequest
	}
	return &Price{Base: p.Base.over(tools), Images: p.Images, Dated: p.Dated, Tiers: p.Tiers, Windows: p.Windows, Multipliers: p.Multipliers}
}

// OfTokens reports whether output tokens have a price, as those of a language
// model do. It is false for a nil price.
func (p *Price) OfTokens() bool { return p != nil && p.Base.has(UnitOutput) }
