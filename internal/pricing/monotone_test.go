package pricing_test

import (
	"testing"

	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/pricing"
)

// Using more of one unit never costs less, as long as the same layers and lines
// apply: a tier may be cheaper than what it takes the place of, and so may a
// variant or the price of a search against that of a grounded request.
func TestCostGrowsWithEachUnit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pl, u, at := drawPlan(t), drawUsage(t), drawInstant(t)
		unit := modelgate.Unit(rapid.IntRange(0, int(modelgate.UnitCount)-1).Draw(t, "unit"))
		more := *u
		count := more.Counters()[unit]
		if count == nil || unit == modelgate.UnitGroundedRequest {
			return // no quantity of its own, or one that decides whether searches count
		}
		*count += rapid.Int64Range(0, modelgate.MaxQuantity-*count).Draw(t, "more")
		held := pl.at(at)
		if held.passed(u) != held.passed(&more) {
			return
		}
		p := pl.price(t)
		less, _, _ := pricing.Cost(p, u, at)
		if got, _, label := pricing.Cost(p, &more, at); got < less {
			t.Fatalf("more of %s costs %d instead of %d by %q", unit, got, less, label)
		}
	})
}

// passed is how many thresholds of tiers and variants a prompt has passed.
func (pl *plan) passed(u *modelgate.Usage) (n int) {
	for _, tier := range pl.tiers {
		if u.PromptTokens() > tier.above {
			n++
		}
	}
	for _, v := range pl.variants {
		if u.PromptTokens() > v.above {
			n++
		}
	}
	return n
}
