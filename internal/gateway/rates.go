package gateway

import (
	"errors"
	"slices"

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
	estimate := modelgate.Amounts{Requests: 1}
	if !c.costless() {
		if g.Rates.Uses(c.caller, &traits, modelgate.UnitUSD) {
			if err := c.keepPriced(); err != nil {
				return err
			}
		}
		estimate, c.estimated = g.estimateUse(c), true
	}
	c.callRates, err = g.Rates.Limit(c.caller, &traits, &estimate)
	ratelimit.WriteHeaders(c.w.Header(), append(c.entryRates.Shown, c.callRates.Shown...))
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
	c.entryRates.Keep()
	used := end.Usage.Amounts(end.Cost)
	if end.Job != nil {
		used.Cost += end.Job.Reserve
	}
	c.callRates.Settle(&used)
	c.entryRates.End()
	c.callRates.End()
}

// showLimits writes the headers anew with the rate limits over an hour or a day
// that bound the call, or that refused it with an error.
func (g *Gateway) showLimits(c *call, refusal error) {
	shown := slices.Concat(c.entryRates.Shown, c.callRates.Shown)
	at := c.id.Time()
	for _, b := range c.caller.Rules {
		if left, reserved := c.reservation.Left(b.Rule); b.Unit != "" && reserved && c.caller.Sees(b) {
			state := c.caller.StateOf(b, b.Limit-left, 0, at)
			shown = append(shown, ratelimit.Shown{Rule: b.RateLimit(), State: state, Full: b.Period.End(at).Sub(at)})
		}
	}
	retry, late := errors.AsType[*modelgate.RetryError](refusal)
	if limit, seen := errors.AsType[*modelgate.LimitError](refusal); late && seen {
		shown = append(shown, ratelimit.Shown{Rule: &modelgate.RateLimit{Window: limit.State.Window}, State: limit.State, Full: retry.After})
	}
	ratelimit.WriteHeaders(c.w.Header(), shown)
}
