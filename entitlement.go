package modelgate

import (
	"slices"
	"strings"
)

// Axis says what an entitlement tuple selects by.
type Axis string

// The three axes.
const (
	AxisProvider Axis = "provider"
	AxisVendor   Axis = "vendor"
	AxisKind     Axis = "kind"
)

// UnmarshalText reads an axis. An empty one is refused: the default is for a
// tuple that has none, not for a variable that happens to be empty.
func (a *Axis) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return Errorf(BadRequest, "must not be empty; use provider, vendor or kind, or leave it out for provider")
	}
	*a = Axis(text)
	return nil
}

// Effect is what a matching tuple does.
type Effect string

// The two effects.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// MaxPattern is the length limit of a glob, in bytes, and MaxEntitlements
// the number of tuples a key or ceiling may hold.
const (
	MaxPattern      = 256
	MaxEntitlements = 1000
)

// Entitlement is one rule of who may call what. Its fields are compared as
// they stand: two tuples are the same when all four are equal.
type Entitlement struct {
	Axis Axis `json:"axis" null:"absent"`
	// Provider is, on the provider axis, a provider's name or a glob; on the
	// vendor axis a glob over the author of a catalog model; on the kind axis
	// a glob over its kind.
	Provider string `json:"provider"`
	// ModelPattern is, on the provider axis, a glob over the provider's own
	// model id; otherwise over the slug after its first slash.
	ModelPattern string `json:"model_pattern"`
	Effect       Effect `json:"effect"`
}

// Entitlements is a set of rules: nothing is allowed by default and any
// matching deny wins over every allow.
type Entitlements []Entitlement

// Target is what a call wants to use: a provider, that provider's model id,
// and every catalog model that is served by exactly this pair. A door has
// one catalog model; a provider-proxy call may have none or several.
type Target struct {
	Provider string
	Model    string
	Catalog  []*Model
}

// OpenEntitlements is the rule that allows every model of every provider.
func OpenEntitlements() Entitlements {
	return Entitlements{{AxisProvider, "*", "*", Allow}}
}

// Permit reports whether the rules allow the target.
func (es Entitlements) Permit(t Target) bool {
	allowed := false
	for i := range es {
		e := &es[i]
		if e.Effect == Allow && allowed {
			continue
		}
		if !e.matches(t) {
			continue
		}
		if e.Effect != Allow {
			return false
		}
		allowed = true
	}
	return allowed
}

// PermitProvider reports whether the rules allow every model a provider has,
// which is what a call that names no model needs: an allow of the pattern *
// on the provider axis, and no deny that names the provider or a catalog
// model served there.
func (es Entitlements) PermitProvider(provider string, served []*Model) bool {
	allowed := false
	for i := range es {
		e := &es[i]
		switch {
		case e.Axis == AxisProvider && !Glob(e.Provider, provider):
		case e.Axis == AxisProvider && e.Effect != Allow:
			return false
		case e.Axis == AxisProvider:
			allowed = allowed || e.ModelPattern == "*"
		case e.Effect != Allow && slices.ContainsFunc(served, e.matchesModel):
			return false
		}
	}
	return allowed
}

func (e *Entitlement) matches(t Target) bool {
	if e.Axis == AxisProvider {
		return Glob(e.Provider, t.Provider) && Glob(e.ModelPattern, t.Model)
	}
	return slices.ContainsFunc(t.Catalog, e.matchesModel)
}

func (e *Entitlement) matchesModel(m *Model) bool {
	switch e.Axis {
	case AxisVendor:
		return Glob(e.Provider, m.Author()) && Glob(e.ModelPattern, m.Name())
	case AxisKind:
		return Glob(e.Provider, string(m.Kind)) && Glob(e.ModelPattern, m.Name())
	}
	return false
}

// Only are the rules among es that have the effect. It is never nil.
func (es Entitlements) Only(effect Effect) Entitlements {
	out := Entitlements{}
	for _, e := range es {
		if e.Effect == effect {
			out = append(out, e)
		}
	}
	return out
}

// single reports whether the tuple allows one model by its slug, which is
// what a key may be issued with although its ceiling does not hold the tuple
// (POST /gw/keys, rule 3).
func (e Entitlement) single() bool {
	return e.Axis == AxisVendor && e.Effect == Allow && !HasGlob(e.Provider) && !HasGlob(e.ModelPattern)
}

// Validate checks the shape of every tuple and fills the default axis.
// Errors are bad_request.
func (es Entitlements) Validate() error {
	if len(es) > MaxEntitlements {
		return Errorf(BadRequest, "entitlements: at most %d tuples", MaxEntitlements)
	}
	for i := range es {
		e := &es[i]
		if e.Axis == "" {
			e.Axis = AxisProvider
		}
		switch {
		case e.Axis != AxisProvider && e.Axis != AxisVendor && e.Axis != AxisKind:
			return Errorf(BadRequest, "entitlements[%d]: unknown axis; use provider, vendor or kind", i)
		case e.Effect != Allow && e.Effect != Deny:
			return Errorf(BadRequest, "entitlements[%d]: unknown effect; use allow or deny", i)
		case e.Provider == "" || e.ModelPattern == "":
			return Errorf(BadRequest, "entitlements[%d]: provider and model_pattern must not be empty; use * for any", i)
		case len(e.Provider) > MaxPattern || len(e.ModelPattern) > MaxPattern:
			return Errorf(BadRequest, "entitlements[%d]: a pattern has at most %d bytes", i, MaxPattern)
		}
	}
	return nil
}

// Glob reports whether s matches pattern. `*` matches any run of characters,
// `/` included, `?` matches exactly one character, nothing else is special
// and letter case counts. Invalid UTF-8 counts as one character a byte.
//
// On a mismatch it goes back to the last `*` only, so the work is at most
// len(pattern) × len(s) and no pattern can make it explode.
func Glob(pattern, s string) bool {
	if pattern == "*" {
		return true
	}
	if !HasGlob(pattern) {
		return pattern == s
	}
	matched, _ := glob(pattern, s)
	return matched
}

// glob does the work of Glob and counts it: one step for each look at a
// character.
func glob(pattern, s string) (matched bool, steps int) {
	p, i := 0, 0
	star, mark := -1, 0
	for ; i < len(s); steps++ {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == '?':
			i += runeLen(s[i:])
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark += runeLen(s[mark:])
			p, i = star+1, mark
		default:
			return false, steps
		}
	}
	return strings.Trim(pattern[p:], "*") == "", steps
}

// HasGlob reports whether the pattern has a special character; one that has
// none is concrete.
func HasGlob(pattern string) bool {
	return strings.IndexByte(pattern, '*') >= 0 || strings.IndexByte(pattern, '?') >= 0
}

// runeLen is the length in bytes of the first character of s, which is not
// empty.
func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}
