package gateway

import (
	"net/http"
	"slices"

	"modelgate"
	"modelgate/internal/budget"
	"modelgate/internal/pricing"
)

// reserveBudget reserves what the call may cost of budgets, and what it will
// probably use of rate limits over an hour or a day. Routes without a known price
// are left out where money is counted.
func (g *Gateway) reserveBudget(c *call) error {
	if len(c.caller.Budgets) == 0 && len(c.caller.Rules) == 0 || g.Budgets == nil {
		return nil
	}
	traits := c.traits()
	limited, inUSD, budgeted := c.caller.RulesApply(&traits)
	budgeted = budgeted || len(c.caller.Budgets) > 0
	d := budget.Demand{At: c.id.Time(), Free: c.costless(), Use: modelgate.Amounts{Requests: 1}}
	switch {
	case d.Free && !limited, !limited && !budgeted:
		return nil
	case !d.Free:
		if budgeted || inUSD {
			if err := c.keepPriced(); err != nil {
				return err
			}
		}
		if err := g.fill(c, &d, limited, budgeted); err != nil {
			return err
		}
	}
	var err error
	c.reservation, err = g.Budgets.Reserve(c.r.Context(), c.caller, &traits, &d)
	if limited {
		g.showLimits(c, err)
	}
	return err
}

// keepPriced leaves out the routes without a known price.
func (c *call) keepPriced() error {
	priced := c.attempts[:0]
	for _, a := range c.attempts {
		if pricing.Known(a.price) {
			priced = append(priced, a)
		}
	}
	if len(priced) == 0 {
		return modelgate.ErrUnpriced
	}
	c.attempts = priced
	return nil
}

// refusalPrecedence is the refusal of a call that cannot go anywhere: where money
// would refuse it too, that comes before the missing route.
func (g *Gateway) refusalPrecedence(c *call, refusal error) error {
	if modelgate.KindOf(refusal) != modelgate.BadGateway {
		return refusal
	}
	err := g.limitRates(c)
	if err == nil {
		err = g.reserveBudget(c)
		c.reservation.Release()
	}
	switch modelgate.KindOf(err) {
	case modelgate.RateLimited, modelgate.InsufficientBalance, modelgate.BudgetExceeded, modelgate.Forbidden:
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

// fill completes a demand with what rate limits and budgets are to hold.
func (g *Gateway) fill(c *call, d *budget.Demand, limited, budgeted bool) (err error) {
	estimates := g.Budgets.Mode == budget.Estimate
	if limited || estimates {
		d.Use, c.estimated = g.estimateUse(c), true
	}
	switch {
	case budgeted && estimates:
		d.Money = d.Use.Cost
	case budgeted:
		d.Money, err = g.strictAmount(c)
	}
	return err
}

// strictAmount is how much of budgets to reserve in strict mode. A call whose
// cost has no bound is refused as if it were too dear.
func (g *Gateway) strictAmount(c *call) (modelgate.Nano, error) {
	amount, why := c.maxCost()
	if why != "" {
		g.Log.Info("call refused: nothing bounds its cost, and budgets are strict", "request_id", c.id.String(), "model", c.attempts[0].model, "cause", why)
		refusal := modelgate.ErrBudget
		only := func(b modelgate.Budget) bool { return !b.IsBalance() }
		if list := c.caller.Budgets; len(list) > 0 && !slices.ContainsFunc(list, only) {
			traits := c.traits()
			if _, _, budgeted := c.caller.RulesApply(&traits); !budgeted {
				refusal = modelgate.ErrBalance
			}
		}
		return 0, &modelgate.DetailError{Err: refusal, Detail: why}
	}
	return amount, nil
}

// settle ends the reservation once the call is booked.
func (g *Gateway) settle(c *call, end *modelgate.CallEnd) {
	c.settleRates(end)
	if reserved := c.reservation.Any(); reserved {
		used := end.Usage.Amounts(end.Cost)
		if end.Job != nil {
			used.Cost += end.Job.Reserve
		}
		c.reservation.Settle(&used)
	} else if !c.estimated {
		return
	}
	if end.Job == nil {
		g.recent.note(c.attempts[c.tried].routeName(), c.kind(), end, c.guessed)
	}
}

// defaultOutput is how many tokens an answer is taken to have while nothing
// is known of its model.
const defaultOutput = 1024

// defaultLength is how long a job's result is taken to be that was not asked
// to have a length, in millionths of a second, while nothing is known of its
// model.
const defaultLength = 5_000_000

// estimateUse is what a call will probably use, on the route with the most of
// each.
func (g *Gateway) estimateUse(c *call) modelgate.Amounts {
	most := modelgate.Amounts{Requests: 1}
	for i := range c.attempts {
		a := &c.attempts[i]
		u := modelgate.Usage{
			Images: a.requested.Count, Seconds: a.requested.Seconds * max(a.requested.Count, 1), Characters: a.requested.Characters,
			Size: a.requested.Size, Quality: a.requested.Quality, Audio: a.requested.Audio,
		}
		known, some := g.recent.p99Estimate(a.routeName())
		if tokens(c.kind()) {
			u = modelgate.Usage{Input: (c.bound.Text + 2) / 3}
			if c.model != nil && c.model.ContextLength > 0 {
				u.Input = min(u.Input, c.model.ContextLength*c.bound.Inputs)
			}
			if c.kind() != modelgate.Embedding {
				u.Output = min(c.output(known, some), modelgate.MaxQuantity/c.bound.Answers()) * c.bound.Answers()
			}
			most.Input, most.Output = max(most.Input, u.Input), max(most.Output, u.Output)
			most.Cost = max(most.Cost, pricing.Estimate(a.price, &u, c.id.Time()))
			continue
		}
		if c.kind() == modelgate.Image {
			u.Images = max(u.Images, 1)
		}
		if a.protocol != nil {
			u.Output = a.protocol.Tokens(a.requested, c.jobKind)
			if u.Seconds == 0 && !some {
				u.Seconds = defaultLength * max(a.requested.Count, 1)
			}
		}
		most.Cost = max(most.Cost, pricing.Estimate(a.price, &u, c.id.Time()), modelgate.Nano(known))
	}
	return most
}

// output is how many tokens one answer will probably have.
func (c *call) output(known int64, some bool) int64 {
	n := int64(defaultOutput)
	if some {
		n = known
	}
	if c.bound.Output > 0 {
		n = min(n, c.bound.Output)
	}
	if c.model != nil && c.model.MaxOutput > 0 {
		n = min(n, c.model.MaxOutput)
	}
	return n
}

// maxCost is the most that a call can cost on any of its routes; where there is
// no telling it says why.
func (c *call) maxCost() (most modelgate.Nano, why string) {
	if c.bound.Open != "" {
		return 0, c.bound.Open
	}
	d := pricing.Demand{Choices: c.bound.Answers(), Searches: !tokens(c.kind()) || c.model == nil}
	if c.model != nil {
		d.Input, d.Output = c.model.ContextLength, c.model.MaxOutput
		if d.Output == 0 {
			d.Output = c.model.ContextLength
		}
		if c.bound.Output > 0 {
			d.Output = min(d.Output, c.bound.Output)
		}
	}
	for i := range c.attempts {
		asked := &c.attempts[i].requested
		d.Images = max(asked.Count, c.bound.Choices)
		d.Characters, d.Seconds = asked.Characters, asked.Seconds*d.Images
		b, ok := pricing.Bound(c.attempts[i].price, d)
		if !ok {
			return 0, c.boundless()
		}
		most = max(most, b)
	}
	return most, ""
}

// boundless is why the price of a call that runs no tools has no bound.
func (c *call) boundless() string {
	switch {
	case c.model == nil:
		return "strict budgets need a model that is in the catalog, with context_length and max_output"
	case c.model.ContextLength == 0 || c.model.MaxOutput == 0:
		return "strict budgets need the model's context_length and max_output in the catalog"
	}
	return "the price of the model has a unit of which the request does not say how much is used at most"
}
