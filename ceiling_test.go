package modelgate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
)

// Shorthand of the tables below.
func rule(axis modelgate.Axis, provider, pattern string, effect modelgate.Effect) modelgate.Entitlement {
	return modelgate.Entitlement{Axis: axis, Provider: provider, ModelPattern: pattern, Effect: effect}
}

func TestAdmitRules(t *testing.T) {
	t.Parallel()
	const byProvider, byVendor, byKind, allow, deny = modelgate.AxisProvider, modelgate.AxisVendor, modelgate.AxisKind, modelgate.Allow, modelgate.Deny
	ceiling := modelgate.Ceiling{MaxScopes: []modelgate.Scope{modelgate.InferenceUse, modelgate.StatsRead}, Entitlements: modelgate.Entitlements{
		rule(byProvider, "p", "*", allow), rule(byProvider, "q", "two", deny), rule(byVendor, "b*", "*", allow), rule(byKind, "llm", "*", allow),
		rule(byKind, "audio", "*", deny),
	}}
	absent, outside := "entitlements[0]: not among the ceiling's tuples", "entitlements[0]: the ceiling does not allow model"
	for _, c := range []struct {
		name  string
		tuple modelgate.Entitlement
		kind  modelgate.Kind // "": admitted
		want  string
	}{
		{"1: provider row of the ceiling", rule(byProvider, "p", "*", allow), "", ""},
		{"1: provider row with the axis left out", rule("", "p", "*", allow), "", ""},
		{"1: narrower provider row", rule(byProvider, "p", "one", allow), modelgate.Forbidden, absent},
		{"1: other effect", rule(byProvider, "p", "*", deny), modelgate.Forbidden, absent},
		{"1: provider deny of the ceiling", rule(byProvider, "q", "two", deny), "", ""},
		{"1: provider deny that the ceiling lacks", rule(byProvider, "q", "one", deny), modelgate.Forbidden, absent},
		{"2: vendor deny", rule(byVendor, "zoe", "*", deny), "", ""},
		{"2: vendor deny of a concrete slug outside the catalog", rule(byVendor, "zoe", "none", deny), "", ""},
		{"3: concrete slug by its route", rule(byVendor, "ann", "two", allow), "", ""},
		{"3: concrete slug by its vendor", rule(byVendor, "bob", "one", allow), "", ""},
		{"3: concrete slug that a kind denies", rule(byVendor, "bob", "alias", allow), modelgate.Forbidden, outside + ` "bob/alias"`},
		{"3: concrete slug outside the catalog", rule(byVendor, "ann", "none", allow), modelgate.Forbidden, `model "ann/none" is not in the catalog`},
		{"3: the whole slug as a pattern", rule(byVendor, "ann", "ann/two", allow), modelgate.Forbidden, "is not in the catalog"},
		{"4: vendor glob of the ceiling", rule(byVendor, "b*", "*", allow), "", ""},
		{"4: vendor glob inside one of the ceiling", rule(byVendor, "bob", "*", allow), modelgate.Forbidden, absent},
		{"4: glob in the vendor only", rule(byVendor, "a?n", "one", allow), modelgate.Forbidden, absent},
		{"5: kind deny", rule(byKind, "video", "*", deny), "", ""},
		{"6: kind row of the ceiling", rule(byKind, "llm", "*", allow), "", ""},
		{"6: narrower kind row", rule(byKind, "llm", "one", allow), modelgate.Forbidden, absent},
		{"malformed axis", rule("model", "p", "*", allow), modelgate.BadRequest, "unknown axis"},
		{"malformed effect", rule(byProvider, "p", "*", "maybe"), modelgate.BadRequest, "unknown effect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requested := modelgate.Entitlements{c.tuple}
			grant, err := ceiling.Admit([]modelgate.Scope{modelgate.InferenceUse}, &requested, catalog(t))
			if c.kind != "" {
				wantError(t, err, c.kind, c.want)
				if diff := cmp.Diff(modelgate.Grant{}, grant); diff != "" {
					t.Errorf("a refusal granted something: %s", diff)
				}
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			c.tuple.Axis = axisOr(c.tuple.Axis)
			want := modelgate.Grant{
				Scopes: []modelgate.Scope{modelgate.InferenceUse}, Entitlements: modelgate.Entitlements{c.tuple},
				Denies: modelgate.Entitlements{rule(byProvider, "q", "two", deny), rule(byKind, "audio", "*", deny)},
			}
			if strings.HasPrefix(c.name, "3:") {
				want.Backing = []modelgate.Entitlements{{ceiling.Entitlements[0], ceiling.Entitlements[2], ceiling.Entitlements[3]}}
			}
			if diff := cmp.Diff(want, grant); diff != "" {
				t.Errorf("grant differs (-want +got): %s", diff)
			}
		})
	}
}

func axisOr(a modelgate.Axis) modelgate.Axis {
	if a == "" {
		return modelgate.AxisProvider
	}
	return a
}

func TestAdmitScopes(t *testing.T) {
	t.Parallel()
	ceiling := modelgate.Ceiling{MaxScopes: []modelgate.Scope{modelgate.StatsRead, modelgate.InferenceUse}, Entitlements: modelgate.OpenEntitlements()}
	for _, c := range []struct {
		name   string
		scopes []modelgate.Scope
		kind   modelgate.Kind
		want   string
	}{
		{"none", nil, "", ""},
		{"repeated, in another order", []modelgate.Scope{modelgate.StatsRead, modelgate.InferenceUse, modelgate.StatsRead}, "", ""},
		{"outside the ceiling", []modelgate.Scope{modelgate.InferenceUse, modelgate.KeysManage}, modelgate.Forbidden, "keys:manage exceeds the ceiling"},
		{"unknown", []modelgate.Scope{"admin"}, modelgate.BadRequest, `unknown scope "admin"`},
		{"the mark of open routes", []modelgate.Scope{modelgate.AnyKey}, modelgate.BadRequest, "unknown scope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			grant, err := ceiling.Admit(c.scopes, nil, catalog(t))
			if c.kind != "" {
				wantError(t, err, c.kind, c.want)
				return
			}
			want := []modelgate.Scope{}
			if len(c.scopes) > 0 {
				want = []modelgate.Scope{modelgate.InferenceUse, modelgate.StatsRead}
			}
			if diff := cmp.Diff(want, grant.Scopes); err != nil || diff != "" {
				t.Errorf("%v, scopes differ: %s", err, diff)
			}
		})
	}
}

// Absent inherits, empty denies everything, and one bad tuple among many
// spoils the whole request.
func TestAdmitIsAtomic(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	ceiling := modelgate.OpenCeiling()
	inherited, err := ceiling.Admit(nil, nil, c)
	if diff := cmp.Diff(ceiling.Entitlements, inherited.Entitlements); err != nil || diff != "" {
		t.Errorf("absent tuples: %v, %s", err, diff)
	}
	inherited.Entitlements[0].Effect = modelgate.Deny
	if ceiling.Entitlements[0].Effect != modelgate.Allow {
		t.Error("a grant shares its tuples with the ceiling")
	}
	empty, err := ceiling.Admit(nil, &modelgate.Entitlements{}, c)
	if err != nil || empty.Entitlements == nil || len(empty.Entitlements) != 0 {
		t.Errorf("empty tuples: %v, %#v", err, empty.Entitlements)
	}
	if empty.Entitlements.Permit(c.Find("ann/one").Target(0)) {
		t.Error("empty tuples permit a model")
	}
	mixed := modelgate.Entitlements{ceiling.Entitlements[0], rule("", "p", "x", modelgate.Allow)}
	_, err = ceiling.Admit(nil, &mixed, c)
	wantError(t, err, modelgate.Forbidden, "entitlements[1]")
	if mixed[1].Axis != "" {
		t.Error("Admit changed the request")
	}
}

// drawRequest draws a request that stands some chance of being admitted.
func drawRequest(t *rapid.T, bounds modelgate.Ceiling) *modelgate.Entitlements {
	if rapid.Bool().Draw(t, "absent") {
		return nil
	}
	choices := []*rapid.Generator[modelgate.Entitlement]{drawTuple}
	if len(bounds.Entitlements) > 0 {
		choices = append(choices, rapid.SampledFrom(bounds.Entitlements))
	}
	concrete := []modelgate.Entitlement{}
	for _, slug := range [][2]string{{"ann", "one"}, {"ann", "two"}, {"bob", "one"}, {"bob", "alias"}} {
		concrete = append(concrete, rule(modelgate.AxisVendor, slug[0], slug[1], modelgate.Allow))
	}
	choices = append(choices, rapid.SampledFrom(concrete))
	requested := modelgate.Entitlements(rapid.SliceOfN(rapid.OneOf(choices...), 0, 3).Draw(t, "requested"))
	return &requested
}

// escapes names what a caller may call although its issuer may not: a door's
// call on any route, fallbacks included, a call of the provider proxy, a call
// that names no model, or a scope.
func escapes(c *modelgate.Catalog, bounds modelgate.Ceiling, issuer, caller *modelgate.Caller) string {
	for _, target := range targets(c) {
		if caller.Permit(target) && !issuer.Permit(target) {
			return target.Provider + " " + target.Model
		}
	}
	for _, provider := range []string{"p", "q", "r"} {
		if caller.PermitProvider(provider, c.ServedBy(provider)) && !issuer.PermitProvider(provider, c.ServedBy(provider)) {
			return "all of " + provider
		}
	}
	for _, s := range caller.Scopes {
		if !slices.Contains(bounds.MaxScopes, s) {
			return string(s)
		}
	}
	return ""
}

// No sequence of issuances leads out of the organization's ceiling, nor out
// of the rights of the key that issues: keys of the organization and bound
// keys issue in any order, the bound ones under their own rights.
func TestNoIssuanceEscapesTheCeiling(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	for round := range 20 { // rapid draws 100 a round
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { issueSome(t, c) })
		})
	}
}

// drawCeiling draws narrow ceilings as often as wide ones: what a key can
// reach past a ceiling shows where the ceiling opens one route of two.
func drawCeiling(t *rapid.T) modelgate.Entitlements {
	es := drawTuples.Draw(t, "ceiling")
	switch rapid.SampledFrom([]string{"as drawn", "open", "one provider"}).Draw(t, "width") {
	case "open":
		return append(modelgate.OpenEntitlements(), es.Only(modelgate.Deny)...)
	case "one provider":
		provider := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "provider")
		return append(es.Only(modelgate.Deny), rule(modelgate.AxisProvider, provider, "*", modelgate.Allow))
	}
	return es
}

// issueSome plays one sequence of issuances.
func issueSome(t *rapid.T, c *modelgate.Catalog) {
	scopes := rapid.SliceOfDistinct(rapid.SampledFrom(modelgate.AllScopes()), rapid.ID[modelgate.Scope])
	ceiling := modelgate.Ceiling{MaxScopes: scopes.Draw(t, "maxScopes"), Entitlements: drawCeiling(t)}
	organization := &modelgate.Caller{Scopes: modelgate.AllScopes(), Entitlements: ceiling.Entitlements, Ceiling: ceiling}
	issuers := []*modelgate.Caller{organization}
	for range rapid.IntRange(1, 14).Draw(t, "issuances") {
		issuer := rapid.SampledFrom(issuers).Draw(t, "issuer")
		bounds := issuer.Bounds()
		grant, err := bounds.Admit(scopes.Draw(t, "scopes"), drawRequest(t, bounds), c)
		if err != nil {
			continue
		}
		caller := &modelgate.Caller{
			Scopes: grant.Scopes, Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing, Ceiling: ceiling,
		}
		within := organization
		if issuer.SubAccountID != "" {
			within = issuer
		}
		if issuer.SubAccountID != "" || rapid.Bool().Draw(t, "bound") {
			caller.SubAccountID = "bound"
		}
		for _, limit := range []*modelgate.Caller{within, organization} {
			if what := escapes(c, limit.Bounds(), limit, caller); what != "" {
				t.Fatalf("%+v may use %s, which %+v may not", caller, what, limit)
			}
		}
		issuers = append(issuers, caller)
	}
}

// ruleOf is the issuance rule that a tuple falls under, written without a look at
// Admit, and whether it admits the tuple.
func ruleOf(c *modelgate.Catalog, ceiling modelgate.Entitlements, e modelgate.Entitlement) (rule int, admitted bool) {
	inCeiling := slices.ContainsFunc(ceiling, func(have modelgate.Entitlement) bool { return have == e })
	glob := strings.ContainsAny(e.Provider+e.ModelPattern, "*?")
	switch {
	case e.Axis == modelgate.AxisProvider:
		return 1, inCeiling
	case e.Axis == modelgate.AxisVendor && e.Effect == modelgate.Deny:
		return 2, true
	case e.Axis == modelgate.AxisVendor && !glob:
		for _, m := range c.Models() {
			if m.Slug == e.Provider+"/"+e.ModelPattern {
				for i := range m.Routes {
					admitted = admitted || permitOracle(ceiling, m.Target(i))
				}
				return 3, admitted
			}
		}
		return 3, false
	case e.Axis == modelgate.AxisVendor:
		return 4, inCeiling
	case e.Effect == modelgate.Deny:
		return 5, true
	}
	return 6, inCeiling
}

func TestAdmitAgainstAnOracle(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 200 { // enough to meet every rule in the fewer rounds of -short
			ceiling := modelgate.Ceiling{MaxScopes: modelgate.AllScopes(), Entitlements: drawCeiling(t)}
			requested := drawRequest(t, ceiling)
			_, err := ceiling.Admit(nil, requested, c)
			want := true
			if requested != nil {
				for _, e := range *requested {
					number, admitted := ruleOf(c, ceiling.Entitlements, e)
					want = want && admitted
					met[fmt.Sprint(number, admitted)]++
				}
			}
			if got := err == nil; got != want || err != nil && modelgate.KindOf(err) != modelgate.Forbidden {
				t.Fatalf("ceiling %+v, requested %+v: %v, want admitted %v", ceiling.Entitlements, *requested, err, want)
			}
		}
	})
	for _, outcome := range []string{"1 true", "1 false", "2 true", "3 true", "3 false", "4 true", "4 false", "5 true", "6 true", "6 false"} {
		if met[outcome] == 0 {
			t.Errorf("no request met rule %s", outcome)
		}
	}
}

// A rule of a single model is admitted for the model's first route. It must
// not open the routes behind it, on a door or on the provider proxy, where
// the ceiling does not.
func TestSingleModelOpensNoForbiddenRoute(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	single := modelgate.Entitlements{rule(modelgate.AxisVendor, "ann", "two", modelgate.Allow)}
	issue := func(bounds modelgate.Ceiling, es modelgate.Entitlements) *modelgate.Caller {
		grant, err := bounds.Admit(nil, &es, c)
		if err != nil {
			t.Fatal(err)
		}
		return &modelgate.Caller{SubAccountID: "bound", Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing}
	}
	first, fallback := c.Find("ann/two").Target(0), c.Find("ann/two").Target(1)
	onlyP := modelgate.Entitlements{rule(modelgate.AxisProvider, "p", "*", modelgate.Allow)}
	for _, row := range []struct {
		name     string
		ceiling  modelgate.Entitlements
		fallback bool
	}{
		{"one route", onlyP, false},
		{"every route", modelgate.OpenEntitlements(), true},
		{"the model itself", single, true},
		{"another provider denied", append(modelgate.OpenEntitlements(), rule(modelgate.AxisProvider, "q", "*", modelgate.Deny)), false},
	} {
		key := issue(modelgate.Ceiling{Entitlements: row.ceiling}, single)
		child := issue(key.Bounds(), single)
		for name, caller := range map[string]*modelgate.Caller{"key": key, "child": child} {
			if !caller.Permit(first) {
				t.Errorf("%s, %s: the first route is denied", row.name, name)
			}
			if caller.Permit(fallback) != row.fallback || caller.Permit(target(c, "q", "two")) != row.fallback {
				t.Errorf("%s, %s: the fallback is permitted %v, want %v", row.name, name, caller.Permit(fallback), row.fallback)
			}
		}
	}
	// A bound key that may use one route cannot resolve the model for its child
	// into the other, which the organization's ceiling does open.
	narrow := issue(modelgate.Ceiling{Entitlements: append(modelgate.OpenEntitlements(), onlyP...)}, onlyP)
	if child := issue(narrow.Bounds(), single); !child.Permit(first) || child.Permit(fallback) {
		t.Error("a child may use a route that its issuer may not")
	}
}

// The check of rule 3 is of the moment of issuance: a model that its operator
// has moved stays open to the key that names it, unless a deny row forbids it.
func TestSingleModelFollowsItsFirstRoute(t *testing.T) {
	t.Parallel()
	single := modelgate.Entitlements{rule(modelgate.AxisVendor, "ann", "two", modelgate.Allow)}
	onlyP := modelgate.Ceiling{Entitlements: modelgate.Entitlements{
		rule(modelgate.AxisProvider, "p", "*", modelgate.Allow), rule(modelgate.AxisProvider, "r", "*", modelgate.Deny),
	}}
	grant, err := onlyP.Admit(nil, &single, catalog(t))
	if err != nil {
		t.Fatal(err)
	}
	caller := modelgate.Caller{Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing}
	for provider, want := range map[string]bool{"p": true, "q": true, "r": false} {
		moved := &modelgate.Model{Slug: "ann/two", Kind: modelgate.Image, Routes: []modelgate.Route{{Provider: provider, Model: "moved"}}}
		if got := caller.Permit(moved.Target(0)); got != want {
			t.Errorf("first route at %s: permitted %v, want %v", provider, got, want)
		}
	}
}

// A long line of keys, each naming single models that its issuer does not
// hold, keeps what is stored with a key small and opens ever less.
func TestBackingIsBounded(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	bounds := modelgate.Ceiling{Entitlements: modelgate.OpenEntitlements()}
	for generation := range 40 {
		name := []string{"one", "two"}[generation%2]
		es := append(modelgate.OpenEntitlements(), rule(modelgate.AxisVendor, "ann", name, modelgate.Allow))
		grant, err := bounds.Admit(nil, &es, c)
		if err != nil {
			t.Fatal(err)
		}
		caller := modelgate.Caller{SubAccountID: "bound", Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing}
		if !caller.Permit(c.Find("ann/two").Target(0)) {
			t.Fatalf("generation %d: the first route is denied", generation)
		}
		if want := min(generation+1, 3); len(grant.Backing) != want {
			t.Fatalf("generation %d: %d ceilings remembered, want %d", generation, len(grant.Backing), want)
		}
		bounds = caller.Bounds()
	}

	// With other rules in each generation there is an end.
	var wide modelgate.Entitlements
	for i := range 20 {
		wide = append(wide, rule(modelgate.AxisProvider, "*", strings.Repeat("*", i+1), modelgate.Allow))
	}
	bounds = modelgate.Ceiling{Entitlements: wide}
	for generation := range 9 {
		es := append(slices.Clone(wide[generation+1:]), rule(modelgate.AxisVendor, "ann", []string{"one", "two"}[generation%2], modelgate.Allow))
		grant, err := bounds.Admit(nil, &es, c)
		if generation == 8 {
			wantError(t, err, modelgate.Forbidden, "generations")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		bounds = (&modelgate.Caller{SubAccountID: "bound", Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing}).Bounds()
	}
}

// A model's current route is the first that the ceiling permits and the
// routing policy leaves, and of these the first whose provider is there.
func TestCurrentRoute(t *testing.T) {
	t.Parallel()
	m := &modelgate.Model{Slug: "ann/both", Kind: modelgate.LLM, Routes: []modelgate.Route{
		{Provider: "gone", Model: "x", Unconfigured: true}, {Provider: "us", Model: "x", Region: "us"}, {Provider: "eu", Model: "x", Region: "eu-west"},
	}}
	far := &modelgate.Model{Slug: "ann/far", Kind: modelgate.LLM, Routes: m.Routes[:2]}
	only := func(providers ...string) (es modelgate.Entitlements) {
		for _, p := range providers {
			es = append(es, rule(modelgate.AxisProvider, p, "*", modelgate.Allow))
		}
		return es
	}
	for _, c := range []struct {
		model   *modelgate.Model
		policy  modelgate.RoutingPolicy
		ceiling modelgate.Entitlements
		route   int
		allowed bool
	}{
		{m, modelgate.RouteAny, only("*"), 1, true},
		{m, modelgate.EUOnly, only("*"), 2, true},
		{m, modelgate.RouteAny, only("eu"), 2, true},
		{m, modelgate.RouteAny, only("gone"), 0, true},
		{m, modelgate.RouteAny, only("gone", "eu"), 2, true},
		{m, modelgate.EUOnly, only("us"), 2, false},
		{m, modelgate.RouteAny, only("no"), 0, false},
		{far, modelgate.EUOnly, only("us"), 1, true}, // it leaves none: a call is refused for the region, and not here
		{far, modelgate.EUOnly, only("eu"), 0, false},
	} {
		ceiling := modelgate.Ceiling{Entitlements: c.ceiling, Policy: c.policy}
		if route, allowed := ceiling.Route(c.model); route != c.route || allowed != c.allowed || ceiling.Allows(c.model) != allowed {
			t.Errorf("%s under %s and %v: %d, %v, want %d, %v", c.model.Slug, c.policy, c.ceiling, route, allowed, c.route, c.allowed)
		}
	}
}

// The case that storing the ceiling's deny rows exists for.
func TestDenyRowsBindWhatLeavesThemOut(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	open := rule(modelgate.AxisProvider, "*", "*", modelgate.Allow)
	ceiling := modelgate.Ceiling{MaxScopes: modelgate.AllScopes(), Entitlements: modelgate.Entitlements{
		open, rule(modelgate.AxisProvider, "p", "*", modelgate.Deny), rule(modelgate.AxisKind, "audio", "*", modelgate.Deny),
	}}
	requested := modelgate.Entitlements{open}
	grant, err := ceiling.Admit(modelgate.AllScopes(), &requested, c)
	if err != nil {
		t.Fatal(err)
	}
	caller := modelgate.Caller{SubAccountID: "bound", Scopes: grant.Scopes, Entitlements: grant.Entitlements, Denies: grant.Denies}
	if caller.Permit(target(c, "p", "one")) || caller.Permit(c.Find("bob/alias").Target(0)) || caller.PermitProvider("p", nil) {
		t.Error("a deny row that was left out of the request does not bind")
	}
	if !caller.Permit(c.Find("bob/one").Target(0)) {
		t.Error("what the ceiling allows is denied")
	}
	want := modelgate.Ceiling{MaxScopes: modelgate.AllScopes(), Entitlements: modelgate.Entitlements{open, ceiling.Entitlements[1], ceiling.Entitlements[2]}}
	if diff := cmp.Diff(want, caller.Bounds()); diff != "" {
		t.Errorf("bounds differ (-want +got): %s", diff)
	}
}

func TestBoundsOfAnOrganizationsKey(t *testing.T) {
	t.Parallel()
	caller := modelgate.Caller{Scopes: []modelgate.Scope{modelgate.KeysManage}, Ceiling: modelgate.OpenCeiling()}
	if diff := cmp.Diff(modelgate.OpenCeiling(), caller.Bounds()); diff != "" {
		t.Errorf("bounds are not the organization's: %s", diff)
	}
}

func TestCeilingValidate(t *testing.T) {
	t.Parallel()
	c := modelgate.Ceiling{}
	if err := c.Validate(); err != nil || c.MaxScopes == nil || c.Entitlements == nil {
		t.Errorf("%v, %#v; want lists that are empty and not null", err, c)
	}
	c = modelgate.Ceiling{MaxScopes: []modelgate.Scope{"root"}}
	wantError(t, c.Validate(), modelgate.BadRequest, `unknown scope "root"`)
	c = modelgate.Ceiling{Entitlements: modelgate.Entitlements{rule("x", "p", "*", modelgate.Allow)}}
	wantError(t, c.Validate(), modelgate.BadRequest, "unknown axis")
}
