package pricing

import (
	"slices"

	"modelgate"
)

// variant is a variant of a price that a call is charged by.
type variant modelgate.Variant

// variantOf is the variant that holds for a call: of those that match the one
// with the most fields, then the one with the highest threshold; nil for none.
func variantOf(p *modelgate.Price, u *modelgate.Usage, prompt int64) *variant {
	var best *modelgate.Variant
	for i := range p.Variants {
		v := &p.Variants[i]
		if prompt <= v.Above && v.Above > 0 || slices.ContainsFunc(v.When, func(c modelgate.Condition) bool { return u.Says(c.Field) != c.Value }) {
			continue
		}
		if best == nil || len(v.When) > len(best.When) || len(v.When) == len(best.When) && v.Above > best.Above {
			best = v
		}
	}
	return (*variant)(best)
}

// names reports whether the variant depends on a field. A nil variant names
// none.
func (v *variant) names(field string) bool {
	return v != nil && slices.ContainsFunc(v.When, func(c modelgate.Condition) bool { return c.Field == field })
}

// over lays the rates of the variant over others. Where a tier holds whose
// threshold the variant does not know, the dearer of the two counts.
func (v *variant) over(rates modelgate.Rates, tier *modelgate.TierPrice) modelgate.Rates {
	made := v.Rates.Over(rates)
	if tier == nil || v.Above >= tier.Above {
		return made
	}
	for u := range modelgate.UnitCount {
		if v.Rates.Has(u) && tier.Rates.Has(u) {
			made.SetPerMillion(u, max(v.Rates.PerMillion(u), rates.PerMillion(u)))
		}
	}
	return made
}
