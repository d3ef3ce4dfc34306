package gateway

import (
	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/ratelimit"
)

// identify finds the caller behind the presented key, unless a session has
// done so.
func (g *Gateway) identify(c *call) error {
	if c.caller != nil {
		return nil
	}
	secret, err := auth.Presented(c.r.Header, auth.AnyHeader)
	if err != nil {
		return err
	}
	c.caller, err = g.Keys.Identify(c.r.Context(), secret, auth.OriginOf(c.r))
	return err
}

// enter checks the scope, then rate and concurrency.
func (g *Gateway) enter(c *call) error {
	if !c.caller.Has(modelgate.InferenceUse) {
		return modelgate.ErrMissingScope(modelgate.InferenceUse)
	}
	pass, err := g.Limiter.Enter(c.caller.KeyID, c.caller.Limits, ratelimit.Call, c.caller.Ancestors...)
	c.pass = pass
	return err
}

// permit keeps the routes that the caller may use and that are there. Where
// none is left it answers why the first one is not.
func (g *Gateway) permit(c *call) error {
	first := c.attempts[0]
	kept := c.attempts[:0]
	for _, a := range c.attempts {
		if c.refusal(&a) == nil {
			kept = append(kept, a)
		}
	}
	if len(kept) == 0 {
		return c.refusal(&first)
	}
	if kept[0].way != nil {
		kept = kept[:1] // a job that one provider may have taken is not given to another
	}
	c.attempts = kept
	return nil
}

// refusal is why a route cannot serve the call, nil when it can. The order is
// that of the refusals everywhere.
func (c *call) refusal(a *attempt) error {
	switch {
	case a.wrongDoor:
		return modelgate.ErrWrongDoor(c.model.Slug, c.snapshot.doorOf(c.model))
	case !c.permitted(a):
		return modelgate.ErrModelDenied
	case a.provider == nil:
		return modelgate.ErrNoRoute(c.model.Slug)
	}
	return c.caller.RefuseRegion(a.provider.Region())
}

// permitted judges every model that the call names on this route. A call that
// names none needs the right to all of the provider's.
func (c *call) permitted(a *attempt) bool {
	if a.model == "" {
		return c.caller.PermitProvider(a.name, c.snapshot.Catalog.ServedBy(a.name))
	}
	target := modelgate.Target{Provider: a.name, Model: a.model, Catalog: c.snapshot.Catalog.Serving(a.name, a.model)}
	if c.bySlug {
		target.Catalog = []*modelgate.Model{c.model}
	}
	if !c.caller.Permit(target) {
		return false
	}
	for _, other := range a.others {
		target := modelgate.Target{Provider: a.name, Model: other, Catalog: c.snapshot.Catalog.Serving(a.name, other)}
		if !c.caller.Permit(target) {
			return false
		}
	}
	return true
}
