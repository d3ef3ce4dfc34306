package modelgate

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Caller is who makes a call: a live key with everything that decides its
// rights. The key look-up makes it. Calls share it, and nothing changes it.
type Caller struct {
	ClientID      ClientID
	KeyID         KeyID
	SubAccountID  SubAccountID // "" for a key of the organization itself
	Markup        Markup       // of the sub-account; 0 without one
	Scopes        []Scope
	Entitlements  Entitlements   // the key's own tuples
	Denies        Entitlements   // the ceiling's deny rules at issuance; they bind too
	Backing       []Entitlements // limits rules for single models; see Grant.Backing
	RoutingPolicy RoutingPolicy
	Billing       Billing
	Limits        Limits // the key's, else the client's
	// Ancestors are the keys that this one was issued below, its issuer first;
	// nil for a key that no bound key has issued. Their budgets are among
	// Budgets.
	Ancestors []Ancestor
	ExpiresAt time.Time // zero: never
	Ceiling   Ceiling   // of the organization; see Bounds
	// WalletMarkup is at which the sub-account pays for its calls from its
	// wallet; nil where it has none, or none that is enabled. Nothing changes it.
	WalletMarkup *Markup
	// Budgets apply to every call, in the order in which refusals are
	// answered. A manual-billing client's balance is one of them, and a
	// sub-account's wallet.
	Budgets []Budget
	// RateLimits are those that were set for the caller, its organization,
	// sub-account and ancestors, in the order of SortRates. They are shared:
	// nothing changes them.
	RateLimits []*RateLimit
	// Rules are budgets with counters of their own, in the same order. Which of
	// them apply depends on the call. They are shared: nothing changes them.
	Rules []*Budget
	// PersonID and Role are those of the member whose hidden key it is; "" for
	// every other key.
	PersonID PersonID
	Role     Role
	// Token is the browser token that the caller came with instead of its key;
	// nil for a key.
	Token *Token

	decisions *decisions // nil: every decision is made anew
}

// Ancestor is a key above another in its lineage. What was set on it binds
// both together.
type Ancestor struct {
	KeyID KeyID
	// Limits are those that the key has itself, not its client's; a rate or
	// concurrency that it does not have is 0, which is unlimited.
	Limits Limits
}

// Has reports whether the caller holds the scope; AnyKey is always held.
func (c *Caller) Has(s Scope) bool { return s == AnyKey || slices.Contains(c.Scopes, s) }

// Actor is who the caller's changes are recorded of.
func (c *Caller) Actor() Actor {
	if c.PersonID != "" {
		return Actor{PersonID: c.PersonID}
	}
	return Actor{KeyID: c.KeyID}
}

// SeenBudgets are the budgets that count a call and that the caller Sees, in the
// order in which refusals are answered. One that counts each value by itself is
// left out.
func (c *Caller) SeenBudgets(call *Traits) []*Budget {
	var seen []*Budget
	for i := range c.Budgets {
		seen = append(seen, &c.Budgets[i])
	}
	seen = slices.DeleteFunc(append(seen, c.Rules...), func(b *Budget) bool {
		_, counts := b.Counts(call)
		return !counts || b.Match.Each() || !c.Sees(b)
	})
	SortRules(seen)
	return seen
}

// RulesApply reports which of the caller's rules count a call: rate limits, some
// of them in dollars, and hard budgets.
func (c *Caller) RulesApply(call *Traits) (limited, inUSD, budgeted bool) {
	for _, b := range c.Rules {
		if b.Mode == Soft {
			continue
		}
		if _, counts := b.Counts(call); counts {
			limited = limited || b.Unit != ""
			inUSD = inUSD || b.Unit == UnitUSD
			budgeted = budgeted || b.Unit == ""
		}
	}
	return limited, inUSD, budgeted
}

// Live reports whether the key has not expired at the instant now.
func (c *Caller) Live(now time.Time) bool {
	return c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt)
}

// Permit reports whether the caller may use the target. Its own tuples must
// allow it, and no deny rule of its own or of the ceiling may match. A rule for
// a single model permits only what every issuer of the key may use too; see
// Grant.Backing. The exception is a model whose routes have all changed since
// the key was issued: then the rule permits the route that a call takes.
func (c *Caller) Permit(t Target) bool {
	if c.decisions == nil {
		return c.permit(t)
	}
	permitted, known := c.decisions.get(&t)
	if !known {
		permitted = c.permit(t)
		c.decisions.add(&t, permitted)
	}
	return permitted
}

func (c *Caller) permit(t Target) bool {
	if c.Token != nil && !c.Token.permitsAny(t.Catalog) {
		return false
	}
	return c.Entitlements.Permit(t) && !c.Denies.deny(t) && (len(c.Backing) == 0 || c.backed(t))
}

// backed judges a target that the key's own tuples allow.
func (c *Caller) backed(t Target) bool {
	for i := range c.Entitlements {
		e := &c.Entitlements[i]
		if e.Effect == Allow && e.matches(t) && (!e.single() || c.routeMoved(e, t)) {
			return true
		}
	}
	return c.backingPermits(t)
}

// backingPermits reports whether every issuer behind the key's rules for single
// models may use the target.
func (c *Caller) backingPermits(t Target) bool {
	return !slices.ContainsFunc(c.Backing, func(ceiling Entitlements) bool { return !ceiling.Permit(t) })
}

// routeMoved reports whether the target is the current route of the model that
// e names, and the issuers may use none of the model's routes.
func (c *Caller) routeMoved(e *Entitlement, t Target) bool {
	return slices.ContainsFunc(t.Catalog, func(m *Model) bool {
		if !e.matchesModel(m) {
			return false
		}
		first := m.Routes[m.routesUnder(c.RoutingPolicy)[0]]
		if first.Provider != t.Provider || first.Model != t.Model {
			return false
		}
		for i := range m.Routes {
			if c.backingPermits(m.Target(i)) {
				return false
			}
		}
		return true
	})
}

// PermitProvider reports whether the caller may use every model of the
// provider, which calls that name no model need. With a browser token none does.
func (c *Caller) PermitProvider(provider string, served []*Model) bool {
	if c.Token != nil {
		return false
	}
	all := slices.Concat(c.Entitlements, c.Denies)
	return all.PermitProvider(provider, served)
}

// PermitNative reports whether the caller may use a model under the provider's
// own id; with "", every model of the provider.
func (c *Caller) PermitNative(catalog *Catalog, provider, model string) bool {
	if model == "" {
		return c.PermitProvider(provider, catalog.ServedBy(provider))
	}
	return c.Permit(Target{Provider: provider, Model: model, Catalog: catalog.Serving(provider, model)})
}

// Bounds is the ceiling this caller issues under: the organization's, or for
// a key bound to a sub-account its own rights and stored denies.
func (c *Caller) Bounds() Ceiling {
	if c.SubAccountID == "" {
		return c.Ceiling.under(c.RoutingPolicy)
	}
	tuples := slices.Clone(c.Entitlements)
	for _, d := range c.Denies {
		if !slices.Contains(tuples, d) {
			tuples = append(tuples, d)
		}
	}
	return Ceiling{MaxScopes: c.Scopes, Entitlements: tuples, Backing: c.Backing, Policy: c.RoutingPolicy}
}

// Allows reports whether the policy allows calls to providers in a region.
func (p RoutingPolicy) Allows(region string) bool { return p != EUOnly || InEU(region) }

// PermitRegion reports whether the caller's routing policy allows a region.
func (c *Caller) PermitRegion(region string) bool { return c.RoutingPolicy.Allows(region) }

// RefuseRegion is the refusal of a provider in a region, nil where the caller's
// routing policy allows it. An end customer is not told the region.
func (c *Caller) RefuseRegion(region string) error {
	switch {
	case c.PermitRegion(region):
		return nil
	case c.SubAccountID != "":
		return ErrRegion("unknown")
	}
	return ErrRegion(region)
}

// deny reports whether any rule matches; es holds deny rules only.
func (es Entitlements) deny(t Target) bool {
	return slices.ContainsFunc(es, func(e Entitlement) bool { return e.matches(t) })
}

// manyRules is the number of rules from which decisions are cached: with fewer,
// evaluating them again is as fast. maxDecisions bounds the cache of a caller.
const (
	manyRules    = 16
	maxDecisions = 64
)

// decisions caches the results of Caller.permit. A caller never changes, and a
// reload makes new models, so an entry never becomes wrong. Entries of models
// that are gone are dropped with all others when the cache is full. Safe for
// concurrent use.
type decisions struct {
	known atomic.Pointer[map[decided]bool] // never changed, only replaced
}

// decided is a target as the key of a map. Its models are either one model or
// all that one catalog lists for the pair, so the first of them and their
// number identify all.
type decided struct {
	provider, model string
	first           *Model
	count           int
}

func (t *Target) decided() decided {
	d := decided{provider: t.Provider, model: t.Model, count: len(t.Catalog)}
	if d.count > 0 {
		d.first = t.Catalog[0]
	}
	return d
}

func (ds *decisions) get(t *Target) (permitted, known bool) {
	m := ds.known.Load()
	if m == nil {
		return false, false
	}
	permitted, known = (*m)[t.decided()]
	return permitted, known
}

// add caches a decision. One that another goroutine adds at the same time may
// be lost and is then made again.
func (ds *decisions) add(t *Target, permitted bool) {
	d := t.decided()
	d.provider, d.model = strings.Clone(d.provider), strings.Clone(d.model) // they may be parts of a body
	old, now := ds.known.Load(), map[decided]bool{}
	if old != nil && len(*old) < maxDecisions {
		now = maps.Clone(*old)
	}
	now[d] = permitted
	ds.known.CompareAndSwap(old, &now)
}

// Remember makes Permit cache its decisions, where there are many rules. It
// must be called before the caller is shared. Copies share the cache and must
// not change their rules.
func (c *Caller) Remember() {
	n := len(c.Entitlements) + len(c.Denies)
	for _, b := range c.Backing {
		n += len(b)
	}
	if n >= manyRules {
		c.decisions = new(decisions)
	}
}
