package gateway

import (
	"net/http"

	"modelgate"
	"modelgate/internal/budget"
)

// enforced reports whether the caller's budgets or balance bind this call.
func (g *Gateway) enforced(c *call) bool { return g.Budgets != nil && len(c.caller.Budgets) > 0 }

// reserveBudget reserves what the call may cost. Routes without a known price are
// left out where money is counted.
func (g *Gateway) reserveBudget(c *call) error {
	if !g.enforced(c) || c.costless() {
		return nil
	}
	priced := c.attempts[:0]
	for _, a := range c.attempts {
		if a.price.Known() {
			priced = append(priced, a)
		}
	}
	if len(priced) == 0 {
		return modelgate.ErrUnpriced
	}
	c.attempts = priced
	amount, err := g.amount(c)
	if err != nil {
		return err
	}
	c.hold, err = g.Budgets.Reserve(c.r.Context(), c.caller, c.id.Time(), amount)
	return err
}

// refusalPrecedence is the refusal of a call that cannot go anywhere: where money
// would refuse it too, that comes before the missing route.
func (g *Gateway) refusalPrecedence(c *call, refusal error) error {
	if modelgate.KindOf(refusal) != modelgate.BadGateway {
		return refusal
	}
	err := g.reserveBudget(c)
	c.hold.Release()
	switch modelgate.KindOf(err) {
	case modelgate.InsufficientBalance, modelgate.BudgetExceeded, modelgate.Forbidden:
		return err
	}
	return refusal
}

// costless reports whether nothing that the call does is charged.
func (c *call) costless() bool {
	if c.free {
		return true
	}
	switch c.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return c.attempts[0].model == ""
	}
	return false
}

// amount is how much to reserve. In strict mode a call whose cost has no
// bound is refused as if it were too dear.
func (g *Gateway) amount(c *call) (modelgate.Nano, error) {
	if g.Budgets.Mode == budget.Estimate {
		return g.estimate(c), nil
	}
	amount, why := c.bound()
	if why != "" {
		g.Log.Info("call refused: nothing bounds its cost, and budgets are strict", "request_id", c.id.String(), "model", c.attempts[0].model, "cause", why)
		last := len(c.caller.Budgets) - 1 // the balance comes first
		return 0, &modelgate.DetailError{Err: c.caller.Budgets[last].Refusal(), Detail: why}
	}
	return amount, nil
}

// settle ends the reservation once the call is booked.
func (g *Gateway) settle(c *call, end *modelgate.CallEnd) {
	if c.hold.Holds() == 0 {
		return
	}
	if end.Job != nil {
		c.hold.Settle(end.Cost + end.Job.Reserve)
		return
	}
	c.hold.Settle(end.Cost)
	g.recent.note(&c.attempts[c.tried], c.kind(), end, c.guessed)
}
