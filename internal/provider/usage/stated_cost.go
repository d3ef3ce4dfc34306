package usage

import (
	"github.com/tidwall/gjson"

	"modelgate"
)

// StatedCost is what a reply says that its call costs. The zero value says
// nothing.
type StatedCost struct {
	Cost  modelgate.Nano
	Known bool
	Odd   bool // what the reply says cannot be a cost
}

// mostStated bounds what a reply may say, so that one that is wrong does not
// exhaust a budget.
const mostStated = 10_000 * modelgate.USD

// stateCost takes a member of a usage object that states the cost of the call:
// OpenRouter's cost in USD, Perplexity's cost.total_cost, and xAI's ticks, of
// which 10^10 make a dollar.
func (r *reading) stateCost(name string, v gjson.Result) {
	scale := 0
	switch name {
	case "is_byok":
		r.ownKey = v.Type == gjson.True
		return
	case "cost_in_usd_ticks":
		scale = 10
	case "cost":
		if v.IsObject() {
			v = v.Get("total_cost")
		}
	default:
		return
	}
	text := v.Raw
	switch v.Type {
	case gjson.Null:
		return
	case gjson.String:
		text = v.Str
	}
	cost, err := modelgate.RoundUSD(text, scale)
	if err != nil || cost < 0 || cost > mostStated {
		r.cost = StatedCost{Odd: true}
		return
	}
	r.cost = StatedCost{Cost: cost, Known: true}
}

// StatedCost is nothing where the operator's own key at another provider was
// used: that bill is not in it.
func (c *counter) StatedCost() StatedCost {
	if c.ownKey {
		return StatedCost{}
	}
	return c.cost
}
