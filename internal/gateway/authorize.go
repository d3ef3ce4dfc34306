package gateway

import (
	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/ratelimit"
)

// enter finds the caller behind the presented key, unless a session has done
// so, and checks its scope, then its rate and concurrency. The pass is to be
// released when the request has ended, also after an error.
func (g *Gateway) enter(in *inbound) (pass ratelimit.Pass, err error) {
	if in.caller == nil {
		if in.caller, err = auth.Identify(g.Keys, in.r, auth.AnyHeader); err != nil {
			return pass, err
		}
	}
	if !in.caller.Has(modelgate.InferenceUse) {
		return pass, modelgate.ErrMissingScope(modelgate.InferenceUse)
	}
	return ratelimit.EnterCaller(g.Limiter, in.caller, ratelimit.Call, g.shared(in)...)
}

// shared are the buckets that a request with a browser token draws from besides
// its own.
func (g *Gateway) shared(in *inbound) []ratelimit.Bucket {
	if g.SharedRates == nil || in.caller.Token == nil {
		return nil
	}
	return g.SharedRates(in.r, in.caller)
}

// authorize keeps the routes that the caller may use and that are there. Where
// none is left it answers why the first one is not.
func (g *Gateway) authorize(c *call) error {
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
	if kept[0].protocol != nil {
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
	for _, other := range a.others {
		if err := c.caller.RefuseRegion(a.provider.Region(other)); err != nil {
			return err
		}
	}
	return c.caller.RefuseRegion(a.region())
}

// permitted judges every model that the call names on this route. A call that
// names none needs the right to all of the provider's.
func (c *call) permitted(a *attempt) bool {
	catalog := c.snapshot.Catalog
	for _, other := range a.others {
		if !c.caller.PermitNative(catalog, a.name, other) {
			return false
		}
	}
	if c.bySlug {
		return c.caller.Permit(modelgate.Target{Provider: a.name, Model: a.model, Catalog: []*modelgate.Model{c.model}})
	}
	return c.caller.PermitNative(catalog, a.name, a.model)
}
