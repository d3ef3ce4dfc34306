package gateway

import (
	"modelgate"
	"modelgate/internal/ratelimit"
)

// enterRates draws from the rate limits that need to know nothing of a request
// but its caller. What was taken is to be ended with the request.
func (g *Gateway) enterRates(in *inbound) (ratelimit.Taken, error) {
	if g.Rates == nil || !g.Rates.Any(in.caller) {
		return ratelimit.Taken{}, nil
	}
	taken, err := g.Rates.Enter(in.caller)
	if err != nil {
		ratelimit.WriteHeaders(in.w.Header(), taken.Shown)
	}
	return taken, err
}

// limitRates draws from the other rate limits what the call will probably use.
// Where money is limited, routes without a known price are left out.
func (g *Gateway) limitRates(c *call) (err error) {
	if g.Rates == nil || !g.Rates.Any(c.caller) {
		return nil
	}
	traits := c.traits()
	estimate := ratelimit.Amounts{Requests: 1}
	if !c.costless() {
		if g.Rates.Uses(c.caller, &traits, modelgate.UnitUSD) {
			if err := c.keepPriced(); err != nil {
				return err
			}
		}
		estimate, c.estimated = g.estimateUse(c), true
	}
	c.taken, err = g.Rates.Limit(c.caller, &traits, &estimate)
	ratelimit.WriteHeaders(c.w.Header(), append(c.entered.Shown, c.taken.Shown...))
	return err
}

// traits are what matches look at of the call, on its first route.
func (c *call) traits() modelgate.Traits {
	a := &c.attempts[0]
	t := modelgate.Traits{Provider: a.name, Model: a.model, KeyID: c.caller.KeyID, SubAccountID: c.caller.SubAccountID, Attribution: c.attribution}
	if c.model != nil {
		t.Slug = c.model.Slug
	}
	return t
}

// settleRates notes what the call has used of rate limits, and gives its places
// back before the client has the end of the answer.
func (c *call) settleRates(end *modelgate.CallEnd) {
	c.entered.Keep()
	used := ratelimit.Amounts{Requests: 1, Input: end.Usage.PromptTokens(), Output: end.Usage.CompletionTokens(), Cost: end.Cost}
	if end.Job != nil {
		used.Cost += end.Job.Reserve
	}
	c.taken.Settle(&used)
	c.entered.End()
	c.taken.End()
}
