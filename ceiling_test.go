package modelgate_test

import (
	"slices"
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

// escapes names what a caller may call although the ceiling forbids it: a
// door's call on the current route, a call of an uncatalogued model, anything
// that a deny row of the ceiling matches, or a scope. A concrete vendor allow
// is judged by the model's first route only, so nothing is claimed of others.
func escapes(c *modelgate.Catalog, ceiling modelgate.Ceiling, caller *modelgate.Caller) string {
	for _, m := range c.Models() {
		if target := m.Target(0); caller.Permit(target) && !ceiling.Entitlements.Permit(target) {
			return m.Slug
		}
	}
	for _, target := range targets(c) {
		denied := slices.ContainsFunc(ceiling.Entitlements.Denies(), func(e modelgate.Entitlement) bool { return ruleMatches(e, target) })
		unknown := len(target.Catalog) == 0 && !ceiling.Entitlements.Permit(target)
		if caller.Permit(target) && (denied || unknown) {
			return target.Provider + " " + target.Model
		}
	}
	for _, provider := range []string{"p", "q", "r"} {
		if caller.PermitProvider(provider, c.ServedBy(provider)) && !ceiling.Entitlements.PermitProvider(provider, c.ServedBy(provider)) {
			return "all of " + provider
		}
	}
	for _, s := range caller.Scopes {
		if !slices.Contains(ceiling.MaxScopes, s) {
			return string(s)
		}
	}
	return ""
}

// No chain of issuances leads out of the organization's ceiling: the first
// key is bound to a sub-account, so each next one is issued under the rights
// of the one before.
func TestNoIssuanceEscapesTheCeiling(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	rapid.Check(t, func(t *rapid.T) {
		scope := rapid.SliceOfDistinct(rapid.SampledFrom(modelgate.AllScopes()), rapid.ID[modelgate.Scope])
		ceiling := modelgate.Ceiling{MaxScopes: scope.Draw(t, "maxScopes"), Entitlements: drawTuples.Draw(t, "ceiling")}
		if rapid.Bool().Draw(t, "open") {
			ceiling.Entitlements = append(modelgate.OpenEntitlements(), ceiling.Entitlements.Denies()...)
		}
		bounds := ceiling
		parent := &modelgate.Caller{Entitlements: ceiling.Entitlements}
		for range rapid.IntRange(1, 4).Draw(t, "generations") {
			requested := drawRequest(t, bounds)
			grant, err := bounds.Admit(scope.Draw(t, "scopes"), requested, c)
			if err != nil {
				continue
			}
			caller := &modelgate.Caller{
				SubAccountID: "bound", Scopes: grant.Scopes, Entitlements: grant.Entitlements, Denies: grant.Denies, Ceiling: ceiling,
			}
			if what := escapes(c, ceiling, caller); what != "" {
				t.Fatalf("%+v with denies %+v may use %s, which the ceiling %+v forbids", caller.Entitlements, caller.Denies, what, ceiling)
			}
			if what := escapes(c, parent.Bounds(), caller); parent.SubAccountID != "" && what != "" {
				t.Fatalf("%+v may use %s, which its issuer %+v may not", caller.Entitlements, what, parent)
			}
			parent, bounds = caller, caller.Bounds()
		}
	})
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
