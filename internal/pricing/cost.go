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
// half to even once, together with the rates it was computed with, in the
// words of the configuration. A nil price is Unpriced.
func Cost(p *modelgate.Price, u *modelgate.Usage, at time.Time) (modelgate.Nano, Coverage, string) {
	if p == nil {
		return 0, Unpriced, ""
	}
	rates := effective(p, u, at)
	label := p.BaseLabel()
	if rates != p.Base {
		label = rates.String()
	}
	sum, found := sumOf(&rates, u)
	_, matched := imagePrice(p, u)
	found.guessed = u.Images > 0 && !matched
	factor, words := multiplier(p, u)
	return sum.times(factor), found.coverage(&rates), label + words
}

// Estimate is Cost without the words, for a usage that is a guess: all output
// may be reasoning where that is dearer. A nil price costs 0.
func Estimate(p *modelgate.Price, u *modelgate.Usage, at time.Time) modelgate.Nano {
	if p == nil {
		return 0
	}
	rates := effective(p, u, at)
	guess := *u
	if output, _ := rateOf(&rates, modelgate.UnitOutput); rates.PerMillion(modelgate.UnitReasoning) > output {
		guess.Output, guess.Reasoning = 0, guess.Output+guess.Reasoning
	}
	sum, _ := sumOf(&rates, &guess)
	return sum.times(nil)
}

// isTool reports whether the unit is something that a tool of the provider's
// does, of which every kind needs a price of its own.
func isTool(u modelgate.Unit) bool {
	return u >= modelgate.UnitSearch && u <= modelgate.UnitGroundedRequest
}

// rateOf is the price of a million quanta of a unit in nano-USD. A unit without
// a price of its own costs what its dearer neighbour does, never nothing; false
// where that has none either.
func rateOf(r *modelgate.Rates, u modelgate.Unit) (int64, bool) {
	for !r.Has(u) {
		next, ok := dearer(u)
		if !ok {
			return 0, false
		}
		u = next
	}
	return r.PerMillion(u), true
}

// dearer is the neighbour whose price a unit without one has. It always has
// a lower number.
func dearer(u modelgate.Unit) (modelgate.Unit, bool) {
	switch u {
	case modelgate.UnitCachedInput, modelgate.UnitCacheWrite, modelgate.UnitAudioInput:
		return modelgate.UnitInput, true
	case modelgate.UnitCacheWrite1h:
		return modelgate.UnitCacheWrite, true
	case modelgate.UnitReasoning, modelgate.UnitAudioOutput:
		return modelgate.UnitOutput, true
	}
	return 0, false
}

// quantities are the counts of a usage in the quanta of each unit.
func quantities(u *modelgate.Usage) [modelgate.UnitCount]int64 {
	return [...]int64{
		modelgate.UnitInput:           u.Input,
		modelgate.UnitCachedInput:     u.CachedInput,
		modelgate.UnitCacheWrite:      u.CacheWrite,
		modelgate.UnitCacheWrite1h:    u.CacheWrite1h,
		modelgate.UnitOutput:          u.Output,
		modelgate.UnitReasoning:       u.Reasoning,
		modelgate.UnitAudioInput:      u.AudioInput,
		modelgate.UnitAudioOutput:     u.AudioOutput,
		modelgate.UnitImage:           u.Images * 1_000_000,
		modelgate.UnitSecond:          u.Seconds,
		modelgate.UnitCharacters:      u.Characters,
		modelgate.UnitSearch:          u.Searches,
		modelgate.UnitFileSearch:      u.FileSearches,
		modelgate.UnitCodeSession:     u.CodeSessions * 1_000_000,
		modelgate.UnitGroundedRequest: u.GroundedRequests,
		modelgate.UnitMegapixel:       u.Megapixels,
		modelgate.UnitRequest:         1_000_000,
	}
}

// sumOf is the sum of quantity × rate over all units, and which units had a
// price. Grounded requests and the searches in them are two measures of the
// same thing: searches count where they have a price, else the requests.
func sumOf(r *modelgate.Rates, u *modelgate.Usage) (sum amount, found tally) {
	for i, quantity := range quantities(u) {
		unit := modelgate.Unit(i)
		switch {
		case quantity <= 0,
			unit == modelgate.UnitGroundedRequest && r.Has(modelgate.UnitSearch),
			unit == modelgate.UnitSearch && u.GroundedRequests > 0 && !r.Has(modelgate.UnitSearch):
			continue
		}
		rate, has := rateOf(r, unit)
		found.note(unit, has)
		sum.add(unit, uint64(quantity), uint64(rate))
	}
	return sum, found
}

// multiplier is the product of the multipliers that match, nil when there is
// none, and how they are spelled in the label of a cost.
func multiplier(p *modelgate.Price, u *modelgate.Usage) (factor *big.Rat, words string) {
	if len(p.Multipliers) == 0 {
		return nil, ""
	}
	said := map[string]string{"service_tier": u.ServiceTier, "speed": u.Speed, "inference_geo": u.InferenceGeo}
	for _, m := range p.Multipliers {
		if said[m.Field] != m.Value || m.Value == "" {
			continue
		}
		if factor == nil {
			factor = big.NewRat(1, 1)
		}
		factor.Mul(factor, ratio(m))
		words += fmt.Sprintf(" %s=%s×%s", m.Field, m.Value, modelgate.Nano(m.Millionths*1000))
	}
	return factor, words
}

func ratio(m modelgate.Multiplier) *big.Rat { return big.NewRat(m.Millionths, 1_000_000) }

// tally keeps account of which units of a call had a price. Tokens and the
// media units are two measures of the same thing, so one of them suffices;
// tools come on top. A price by the request stands in for the tokens or the
// media, but not for part of them.
type tally struct {
	some, tokens, tokensMissing, media, mediaMissing, toolMissing bool
	guessed                                                       bool // no entry of the table of images matches the pictures
}

func (t *tally) note(u modelgate.Unit, ok bool) {
	if u == modelgate.UnitRequest {
		return
	}
	t.some = t.some || ok
	switch {
	case u <= modelgate.UnitAudioOutput:
		t.tokens, t.tokensMissing = t.tokens || ok, t.tokensMissing || !ok
	case isTool(u):
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
