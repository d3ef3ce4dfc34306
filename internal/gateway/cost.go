package gateway

import (
	"math"

	"modelgate/internal/pricing"
	"modelgate/internal/provider"

	"modelgate"
)

// takeStated notes the cost that a complete reply states, and charges it where
// that is the operator's choice. What cannot be a cost makes the row partial.
func (c *call) takeStated(end *modelgate.CallEnd, priced pricing.Coverage) pricing.Coverage {
	use := c.attempts[c.tried].provider.StatedCost()
	if use == provider.IgnoreStatedCost {
		return priced
	}
	said := c.meter.StatedCost()
	switch {
	case said.Odd:
		return min(priced, pricing.PartPriced)
	case !said.Known:
		return priced
	}
	end.StatedCost = &said.Cost
	if priced == pricing.FullyPriced {
		computed := end.Cost
		c.computed = &computed
	}
	if use == provider.UseStatedCost {
		end.Cost, end.PriceLabel, priced = said.Cost, modelgate.StatedLabel, pricing.FullyPriced
	}
	return priced
}

// cost is what the attempt under way is charged for a usage. What another
// model of the provider did within the call is charged at that model's price.
func (c *call) cost(u *modelgate.Usage) (modelgate.Nano, pricing.Coverage, string) {
	a, at := &c.attempts[c.tried], c.id.Time()
	cost, priced, label := pricing.Cost(a.price, u, at)
	advice, ok := u.Advisor()
	if !ok {
		return cost, priced, label
	}
	more, known, rates := pricing.Cost(c.snapshot.Catalog.ProxyPrice(a.name, u.AdvisorModel), &advice, at)
	if priced != known {
		priced = pricing.PartPriced
	}
	if cost > math.MaxInt64-more {
		return math.MaxInt64, pricing.PartPriced, label
	}
	return cost + more, priced, label + " advisor: " + rates
}
