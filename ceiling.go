package modelgate

import "slices"

// Ceiling is the most that a key of an organization can be issued with
// (GET /gw/ceiling).
type Ceiling struct {
	MaxScopes    []Scope      `json:"max_scopes"`
	Entitlements Entitlements `json:"entitlements"`
	// Backing is that of the bound key whose rights the ceiling is; nil for
	// the ceiling of an organization. It is neither stored nor shown.
	Backing []Entitlements `json:"-"`
	// Policy is the organization's. It says which routes calls can take. It is
	// neither stored nor shown here.
	Policy RoutingPolicy `json:"-"`
}

func (c Ceiling) under(p RoutingPolicy) Ceiling {
	c.Policy = p
	return c
}

// Bounds is the ceiling of the organization, under its routing policy.
func (c *Client) Bounds() Ceiling { return c.Ceiling.under(c.RoutingPolicy) }

// OpenCeiling allows every scope and every model.
func OpenCeiling() Ceiling {
	return Ceiling{MaxScopes: AllScopes(), Entitlements: OpenEntitlements()}
}

// Validate checks a ceiling and fills default axes. Errors are bad_request.
func (c *Ceiling) Validate() error {
	for _, s := range c.MaxScopes {
		if !s.Valid() {
			return Errorf(BadRequest, "max_scopes: unknown scope %q", s)
		}
	}
	if c.MaxScopes == nil {
		c.MaxScopes = []Scope{}
	}
	if c.Entitlements == nil {
		c.Entitlements = Entitlements{}
	}
	return c.Entitlements.Validate()
}

// Grant is what an admitted key is issued with.
type Grant struct {
	Scopes []Scope
	// Entitlements are the key's own tuples: those it was asked for, or a
	// copy of the ceiling's.
	Entitlements Entitlements
	// Denies are the ceiling's deny rules at the moment of issuance. They
	// bind the key beside its own tuples, so that leaving them out of a
	// request cannot widen a key past its ceiling.
	Denies Entitlements
	// Backing limits allow rules for single models that no ceiling holds word
	// for word. It has the allow rules of each ceiling under which such a rule
	// was resolved, and the rule permits only routes that all of these permit.
	// See Caller.Permit.
	Backing []Entitlements
}

// maxBacking bounds the ceilings that are remembered, one for each generation
// of bound keys that grants further single models. Past that none is granted.
const maxBacking = 8

// Admit applies the issuance rules (POST /gw/keys). Requested nil means
// absent: the key inherits the ceiling; empty means deny-all. The catalog is
// the one of this moment. Malformed tuples are bad_request, everything
// outside the ceiling is forbidden, and either the whole request is granted
// or nothing.
func (c Ceiling) Admit(scopes []Scope, requested *Entitlements, catalog *Catalog) (Grant, error) {
	if err := c.admitScopes(scopes); err != nil {
		return Grant{}, err
	}
	g := Grant{Scopes: uniqueScopes(scopes), Denies: c.Entitlements.Only(Deny)}
	if requested == nil {
		g.Entitlements, g.Backing = slices.Clone(c.Entitlements), c.Backing
		return g, nil
	}
	tuples := slices.Clone(*requested)
	if err := tuples.Validate(); err != nil {
		return Grant{}, err
	}
	for i, e := range tuples {
		if err := c.admitTuple(i, e, catalog); err != nil {
			return Grant{}, err
		}
	}
	var err error
	g.Entitlements = tuples
	g.Backing, err = c.backing(tuples)
	return g, err
}

// backing is what must stand behind the tuples, which were admitted. Rules of
// single models that the ceiling holds itself need what they need there.
func (c Ceiling) backing(tuples Entitlements) ([]Entitlements, error) {
	resolved := func(e Entitlement) bool { return e.single() && !slices.Contains(c.Entitlements, e) }
	switch {
	case !slices.ContainsFunc(tuples, Entitlement.single):
		return nil, nil
	case !slices.ContainsFunc(tuples, resolved):
		return c.Backing, nil
	}
	allows := c.Entitlements.Only(Allow)
	same := func(es Entitlements) bool { return slices.Equal(es, allows) }
	switch {
	case slices.ContainsFunc(c.Backing, same):
		return c.Backing, nil
	case len(c.Backing) == maxBacking:
		return nil, Errorf(Forbidden, "entitlements: a single model cannot be granted past %d generations of keys; leave entitlements out", maxBacking)
	}
	return append(slices.Clone(c.Backing), allows), nil
}

func (c Ceiling) admitScopes(scopes []Scope) error {
	for _, s := range scopes {
		if !s.Valid() {
			return errUnknownScope(s)
		}
		if !slices.Contains(c.MaxScopes, s) {
			return Errorf(Forbidden, "scopes: %s exceeds the ceiling (see GET /gw/ceiling)", s)
		}
	}
	return nil
}

func errUnknownScope(s Scope) error {
	return Errorf(BadRequest, "scopes: unknown scope %q; use inference:use, stats:read or keys:manage", s)
}

// admitTuple is rules 1 to 6.
func (c Ceiling) admitTuple(i int, e Entitlement, catalog *Catalog) error {
	if e.Axis != AxisProvider && e.Effect == Deny {
		return nil
	}
	if e.single() {
		slug := e.Provider + "/" + e.ModelPattern
		m := catalog.Find(slug)
		if m == nil {
			return Errorf(Forbidden, "entitlements[%d]: model %q is not in the catalog (see GET /v1/models)", i, slug)
		}
		if !c.Allows(m) {
			return Errorf(Forbidden, "entitlements[%d]: the ceiling does not allow model %q", i, slug)
		}
		return nil
	}
	if !slices.Contains(c.Entitlements, e) {
		return Errorf(Forbidden, "entitlements[%d]: not among the ceiling's tuples (see GET /gw/ceiling)", i)
	}
	return nil
}

// Allows reports whether the ceiling permits the model on a route that the
// routing policy leaves, or on any where it leaves none. This is also the field
// allowed of GET /gw/models.
func (c Ceiling) Allows(m *Model) bool {
	_, ok := c.Route(m)
	return ok
}

// Route is the model's current inference route: the first one that the ceiling
// permits and the policy leaves, as in Allows, and of these the first whose
// provider is configured, as a call takes it. Without any it is the first that
// the policy leaves, and false.
func (c Ceiling) Route(m *Model) (i int, permitted bool) {
	left := m.routesUnder(c.Policy)
	best := -1
	for _, i := range left {
		switch {
		case !c.Entitlements.Permit(m.Target(i)):
		case !m.Routes[i].Unconfigured:
			return i, true
		case best < 0:
			best = i
		}
	}
	if best < 0 {
		return left[0], false
	}
	return best, true
}

func uniqueScopes(scopes []Scope) []Scope {
	out := []Scope{}
	for _, s := range AllScopes() {
		if slices.Contains(scopes, s) {
			out = append(out, s)
		}
	}
	return out
}
