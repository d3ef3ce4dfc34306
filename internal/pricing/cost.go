// Package pricing computes what calls and jobs cost. The prices themselves are
// nouns of the root package; a nil *modelgate.Price means that no price is
// known, and every function here takes one.
//
// All amounts are exact until they are rounded, half to even, once.
package pricing

import (
	"fmt"
	"math/big"
	"time"

	"modelgate"
)

// Coverage says how far a cost could be computed.
type Coverage uint8

// The outcomes.
const (
	Unpriced   Coverage = iota // no unit of the call has a price: cost 0
	PartPriced                 // some unit that was used has none
	FullyPriced
)

// Cost is the price of a usage for a call admitted at the instant at, rounded
// half to even once, together with the label of the price it was computed with,
// in the words of the configuration. A nil price is Unpriced.
func Cost(p *modelgate.Price, u *modelgate.Usage, at time.Time) (modelgate.Nano, Coverage, string) {
	if p == nil {
		return 0, Unpriced, ""
	}
	var room modelgate.Rates
	f := inForce(p, u, at, &room)
	sum, found := sumOf(f.rates, u)
	found.guessed = f.guessed
	factor, words := f.factor(u)
	return sum.times(factor), found.coverage(f.rates), f.label() + words
}

// Estimate is Cost without the words, for a usage that is a guess: all output
// may be reasoning where that is dearer. A nil price costs 0.
func Estimate(p *modelgate.Price, u *modelgate.Usage, at time.Time) modelgate.Nano {
	if p == nil {
		return 0
	}
	var room modelgate.Rates
	f := inForce(p, u, at, &room)
	guess := *u
	if output, _, _ := rateOf(f.rates, modelgate.UnitOutput); f.rates.PerMillion(modelgate.UnitReasoning) > output {
		guess.Output, guess.Reasoning = 0, guess.Output+guess.Reasoning
	}
	sum, _ := sumOf(f.rates, &guess)
	return sum.times(account(f.price))
}

// rateOf is the price of a million quanta of a unit in nano-USD, and the unit
// that it is of: a unit without a price has that of its fallback, never
// nothing. It is false where no fallback has one either.
func rateOf(r *modelgate.Rates, u modelgate.Unit) (rate int64, of modelgate.Unit, ok bool) {
	for !r.Has(u) {
		next, ok := u.Fallback()
		if !ok {
			return 0, u, false
		}
		u = next
	}
	return r.PerMillion(u), u, true
}

// eclipsed reports whether another unit is charged in place of one. Grounded
// requests and the searches in them are two measures of the same thing: searches
// count where they have a price, else the requests.
func eclipsed(unit modelgate.Unit, r *modelgate.Rates, u *modelgate.Usage) bool {
	switch unit {
	case modelgate.UnitGroundedRequest:
		return r.Has(modelgate.UnitSearch)
	case modelgate.UnitSearch:
		return u.GroundedRequests > 0 && !r.Has(modelgate.UnitSearch)
	}
	return false
}

// sumOf is the sum of quantity × rate over all units, and which units had a
// price.
func sumOf(r *modelgate.Rates, u *modelgate.Usage) (sum amount, found tally) {
	for i, quantity := range u.Quantities() {
		if quantity <= 0 {
			continue
		}
		unit := modelgate.Unit(i)
		if eclipsed(unit, r, u) {
			continue
		}
		rate, of, has := rateOf(r, unit)
		found.note(unit.Kind(), has)
		sum.add(of, uint64(quantity), uint64(rate))
	}
	return sum, found
}

// factor is the product of the multipliers that match and the factor of the
// account, nil when there is none, and how they are spelled in a label.
func (f *force) factor(u *modelgate.Usage) (factor *big.Rat, words string) {
	factor = account(f.price)
	for _, m := range f.price.Multipliers {
		if m.Value == "" || u.Says(m.Field) != m.Value || f.variant.names(m.Field) {
			continue
		}
		if factor == nil {
			factor = big.NewRat(1, 1)
		}
		factor.Mul(factor, ratio(m.Millionths))
		words += fmt.Sprintf(" %s=%s×%s", m.Field, m.Value, modelgate.Nano(m.Millionths*1000))
	}
	if f.price.Factor != 0 {
		words += " price_factor=" + modelgate.Nano(f.price.Factor*1000).String()
	}
	return factor, words
}

// account is the factor of the provider's account, nil for none.
func account(p *modelgate.Price) *big.Rat {
	if p.Factor == 0 {
		return nil
	}
	return ratio(p.Factor)
}

func ratio(millionths int64) *big.Rat { return big.NewRat(millionths, 1_000_000) }

// tally keeps account of which units of a call had a price. Tokens and the
// media units are two measures of the same thing, so one of them suffices;
// tools come on top. A price by the request stands in for the tokens or the
// media, but not for part of them.
type tally struct {
	some, tokens, tokensMissing, media, mediaMissing, toolMissing bool
	guessed                                                       bool // no line of a table matches what was made
}

func (t *tally) note(kind modelgate.UnitKind, ok bool) {
	if kind == modelgate.WholeCall {
		return
	}
	t.some = t.some || ok
	switch kind {
	case modelgate.InputTokens, modelgate.OutputTokens:
		t.tokens, t.tokensMissing = t.tokens || ok, t.tokensMissing || !ok
	case modelgate.ProviderTool:
		t.toolMissing = t.toolMissing || !ok
	default:
		t.media, t.mediaMissing = t.media || ok, t.mediaMissing || !ok
	}
}

func (t *tally) coverage(r *modelgate.Rates) Coverage {
	request := r.Has(modelgate.UnitRequest)
	missing := t.tokensMissing || t.mediaMissing || t.toolMissing
	switch {
	case r.Empty(), missing && !t.some && !request:
		return Unpriced
	case t.toolMissing, t.guessed && t.media:
		return PartPriced
	case t.media:
		return FullyPriced
	case t.tokensMissing && (t.tokens || !request), t.mediaMissing && !t.tokens && !request:
		return PartPriced
	}
	return FullyPriced
}
