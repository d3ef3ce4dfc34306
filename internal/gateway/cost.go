package gateway

import (
	"math"

	"modelgate"
)

// cost is what the attempt under way is charged for a usage. What another
// model of the provider did within the call is charged at that model's price.
func (c *call) cost(u *modelgate.Usage) (modelgate.Nano, modelgate.Priced, string) {
	a, at := &c.attempts[c.tried], c.id.Time()
	cost, priced, label := a.price.Cost(u, at)
	advice, ok := u.Advisor()
	if !ok {
		return cost, priced, label
	}
	more, known, rates := c.snapshot.Catalog.ProxyPrice(a.name, u.AdvisorModel).Cost(&advice, at)
	if priced != known {
		priced = modelgate.PartPriced
	}
	if cost > math.MaxInt64-more {
		return math.MaxInt64, modelgate.PartPriced, label
	}
	return cost + more, priced, label + " advisor: " + rates
}
