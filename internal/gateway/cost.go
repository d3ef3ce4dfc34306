package gateway

import (
	"math"

	"modelgate/internal/pricing"

	"modelgate"
)

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
