package modelgate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
)

// catalog is small enough that random patterns meet its models often: two
// slugs share a route, and one model has two routes.
func catalog(t interface{ Fatalf(string, ...any) }) *modelgate.Catalog {
	c, err := modelgate.NewCatalog([]*modelgate.Model{
		{Slug: "ann/one", Kind: modelgate.LLM, Routes: []modelgate.Route{{Provider: "p", Model: "one"}}},
		{Slug: "ann/two", Kind: modelgate.Image, Routes: []modelgate.Route{{Provider: "p", Model: "two"}, {Provider: "q", Model: "two"}}},
		{Slug: "bob/one", Kind: modelgate.LLM, Routes: []modelgate.Route{{Provider: "q", Model: "one"}}},
		{Slug: "bob/alias", Kind: modelgate.Audio, Routes: []modelgate.Route{{Provider: "q", Model: "one"}}},
	}, nil)
	if err != nil {
		t.Fatalf("catalog: %v", err)
	}
	return c
}

// target is a provider-proxy call.
func target(c *modelgate.Catalog, provider, model string) modelgate.Target {
	return modelgate.Target{Provider: provider, Model: model, Catalog: c.Serving(provider, model)}
}

// targets are the doors' calls on every route and the proxy's of every known
// and one unknown model.
func targets(c *modelgate.Catalog) []modelgate.Target {
	var out []modelgate.Target
	for _, m := range c.Models() {
		for i := range m.Routes {
			out = append(out, m.Target(i))
		}
	}
	for _, provider := range []string{"p", "q", "r"} {
		for _, model := range []string{"one", "two", "three"} {
			out = append(out, target(c, provider, model))
		}
	}
	return out
}

var (
	drawTuple = rapid.Custom(func(t *rapid.T) modelgate.Entitlement {
		axis := rapid.SampledFrom([]modelgate.Axis{modelgate.AxisProvider, modelgate.AxisVendor, modelgate.AxisKind}).Draw(t, "axis")
		names := map[modelgate.Axis][]string{
			modelgate.AxisProvider: {"p", "q", "r", "*", "?"},
			modelgate.AxisVendor:   {"ann", "bob", "a*", "*"},
			modelgate.AxisKind:     {"llm", "image", "audio", "*", "a*"},
		}[axis]
		return modelgate.Entitlement{
			Axis: axis, Provider: rapid.SampledFrom(names).Draw(t, "provider"),
			ModelPattern: rapid.SampledFrom([]string{"one", "two", "three", "alias", "*", "t*", "?ne"}).Draw(t, "pattern"),
			Effect:       rapid.SampledFrom([]modelgate.Effect{modelgate.Allow, modelgate.Allow, modelgate.Deny}).Draw(t, "effect"),
		}
	})
	drawTuples = rapid.Map(rapid.SliceOfN(drawTuple, 0, 6), func(es []modelgate.Entitlement) modelgate.Entitlements { return es })
)

// ruleMatches reads one tuple by the plainest rule that there is.
func ruleMatches(e modelgate.Entitlement, t modelgate.Target) bool {
	match := func(pattern, s string) bool { return globOracle([]rune(pattern), []rune(s)) }
	if e.Axis == modelgate.AxisProvider {
		return match(e.Provider, t.Provider) && match(e.ModelPattern, t.Model)
	}
	for _, m := range t.Catalog {
		author, name, _ := strings.Cut(m.Slug, "/")
		subject := author
		if e.Axis == modelgate.AxisKind {
			subject = string(m.Kind)
		}
		if match(e.Provider, subject) && match(e.ModelPattern, name) {
			return true
		}
	}
	return false
}

func permitOracle(es modelgate.Entitlements, t modelgate.Target) bool {
	rule := func(effect modelgate.Effect) bool {
		return slices.ContainsFunc(es, func(e modelgate.Entitlement) bool { return e.Effect == effect && ruleMatches(e, t) })
	}
	return rule(modelgate.Allow) && !rule(modelgate.Deny)
}

func TestPermitIsDefaultDenyAndDenyWins(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	rapid.Check(t, func(t *rapid.T) {
		es := drawTuples.Draw(t, "tuples")
		shuffled := rapid.Permutation(es).Draw(t, "shuffled")
		for _, target := range targets(c) {
			got := es.Permit(target)
			if want := permitOracle(es, target); got != want {
				t.Fatalf("%+v permit %s %s: %v, want %v", es, target.Provider, target.Model, got, want)
			}
			if modelgate.Entitlements(shuffled).Permit(target) != got {
				t.Fatalf("%+v: the order of the tuples decides on %s %s", es, target.Provider, target.Model)
			}
		}
	})
}

func TestPermit(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	tuple := func(axis modelgate.Axis, provider, pattern string, effect modelgate.Effect) modelgate.Entitlement {
		return modelgate.Entitlement{Axis: axis, Provider: provider, ModelPattern: pattern, Effect: effect}
	}
	open := modelgate.OpenEntitlements()
	for _, c := range []struct {
		name   string
		tuples modelgate.Entitlements
		target modelgate.Target
		want   bool
	}{
		{"nothing is allowed by default", nil, target(c, "p", "one"), false},
		{"the open rule", open, target(c, "r", "unheard-of"), true},
		{"a kind rule does not know an uncatalogued model",
			modelgate.Entitlements{tuple(modelgate.AxisKind, "*", "*", modelgate.Allow)}, target(c, "r", "unheard-of"), false},
		{"a vendor deny does not know an uncatalogued model",
			append(slices.Clone(open), tuple(modelgate.AxisVendor, "*", "*", modelgate.Deny)), target(c, "r", "unheard-of"), true},
		{"any slug of a shared route denies",
			append(slices.Clone(open), tuple(modelgate.AxisKind, "audio", "*", modelgate.Deny)), target(c, "q", "one"), false},
		{"a door's call is one slug only",
			append(slices.Clone(open), tuple(modelgate.AxisKind, "audio", "*", modelgate.Deny)), c.Find("bob/one").Target(0), true},
		{"a deny before its allow",
			modelgate.Entitlements{tuple(modelgate.AxisProvider, "p", "o*", modelgate.Deny), open[0]}, target(c, "p", "one"), false},
		{"letter case counts",
			modelgate.Entitlements{tuple(modelgate.AxisProvider, "p", "ONE", modelgate.Allow)}, target(c, "p", "one"), false},
		{"the vendor is the author and not the provider",
			modelgate.Entitlements{tuple(modelgate.AxisVendor, "q", "*", modelgate.Allow)}, target(c, "q", "one"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.tuples.Permit(c.target); got != c.want {
				t.Errorf("permitted %v, want %v", got, c.want)
			}
		})
	}
}

// callerOracle reads a caller's rights by the words of Caller.Permit.
func callerOracle(c *modelgate.Caller, t modelgate.Target) bool {
	if !permitOracle(c.Entitlements, t) || slices.ContainsFunc(c.Denies, func(e modelgate.Entitlement) bool { return ruleMatches(e, t) }) {
		return false
	}
	open := true // by every ceiling behind the key
	for _, ceiling := range c.Backing {
		open = open && permitOracle(ceiling, t)
	}
	for _, e := range c.Entitlements {
		if e.Effect != modelgate.Allow || !ruleMatches(e, t) {
			continue
		}
		if open || e.Axis != modelgate.AxisVendor || strings.ContainsAny(e.Provider+e.ModelPattern, "*?") {
			return true
		}
		for _, m := range t.Catalog {
			backed := false // a route of the model
			for i := range m.Routes {
				every := true
				for _, ceiling := range c.Backing {
					every = every && permitOracle(ceiling, m.Target(i))
				}
				backed = backed || every
			}
			first := m.Routes[0].Provider == t.Provider && m.Routes[0].Model == t.Model
			if m.Slug == e.Provider+"/"+e.ModelPattern && first && !backed {
				return true
			}
		}
	}
	return false
}

func TestCallerPermitAgainstAnOracle(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	rapid.Check(t, func(t *rapid.T) {
		caller := &modelgate.Caller{Entitlements: drawTuples.Draw(t, "tuples"), Denies: drawTuples.Draw(t, "denies").Only(modelgate.Deny)}
		for range rapid.IntRange(0, 3).Draw(t, "backing") {
			allows := slices.DeleteFunc(drawTuples.Draw(t, "ceiling"), func(e modelgate.Entitlement) bool { return e.Effect == modelgate.Deny })
			caller.Backing = append(caller.Backing, allows)
		}
		for _, target := range targets(c) {
			if got, want := caller.Permit(target), callerOracle(caller, target); got != want {
				t.Fatalf("%+v permits %s %s: %v, want %v", caller, target.Provider, target.Model, got, want)
			}
		}
	})
}

// Whoever may make calls that name no model may call every model there,
// known to the catalog or not.
func TestPermitProviderMeansEveryModel(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	rapid.Check(t, func(t *rapid.T) {
		caller := modelgate.Caller{Entitlements: drawTuples.Draw(t, "tuples"), Denies: drawTuples.Draw(t, "denies").Only(modelgate.Deny)}
		for _, provider := range []string{"p", "q", "r"} {
			if !caller.PermitProvider(provider, c.ServedBy(provider)) {
				continue
			}
			for _, model := range []string{"one", "two", "three", "unheard-of"} {
				if !caller.Permit(target(c, provider, model)) {
					t.Fatalf("%+v, %+v: all of %s is permitted but not %s", caller.Entitlements, caller.Denies, provider, model)
				}
			}
		}
	})
}

func TestPermitProvider(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	all := modelgate.Entitlement{Axis: modelgate.AxisProvider, Provider: "p", ModelPattern: "*", Effect: modelgate.Allow}
	for _, row := range []struct {
		name string
		also []modelgate.Entitlement
		want bool
	}{
		{"an allow of everything", nil, true},
		{"a deny of one model", []modelgate.Entitlement{{Axis: modelgate.AxisProvider, Provider: "?", ModelPattern: "x", Effect: modelgate.Deny}}, false},
		{"a deny elsewhere", []modelgate.Entitlement{{Axis: modelgate.AxisProvider, Provider: "q", ModelPattern: "*", Effect: modelgate.Deny}}, true},
		{"a deny of a kind served there", []modelgate.Entitlement{{Axis: modelgate.AxisKind, Provider: "image", ModelPattern: "*", Effect: modelgate.Deny}}, false},
		{"a deny of a kind served elsewhere", []modelgate.Entitlement{{Axis: modelgate.AxisKind, Provider: "audio", ModelPattern: "*", Effect: modelgate.Deny}}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			es := append(modelgate.Entitlements{all}, row.also...)
			if got := es.PermitProvider("p", c.ServedBy("p")); got != row.want {
				t.Errorf("permitted %v, want %v", got, row.want)
			}
		})
	}
	narrow := modelgate.Entitlements{{Axis: modelgate.AxisProvider, Provider: "p", ModelPattern: "?*", Effect: modelgate.Allow}}
	if narrow.PermitProvider("p", nil) {
		t.Error("a pattern other than * stands for every model")
	}
}

func TestEntitlementsValidate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", modelgate.MaxPattern)
	for _, c := range []struct {
		name  string
		tuple modelgate.Entitlement
		want  string // part of the message, "" for none
	}{
		{"default axis", modelgate.Entitlement{Provider: "p", ModelPattern: "*", Effect: modelgate.Allow}, ""},
		{"longest", modelgate.Entitlement{Provider: long, ModelPattern: long, Effect: modelgate.Deny}, ""},
		{"axis", modelgate.Entitlement{Axis: "model", Provider: "p", ModelPattern: "*", Effect: modelgate.Allow}, "unknown axis"},
		{"axis in capitals", modelgate.Entitlement{Axis: "Vendor", Provider: "p", ModelPattern: "*", Effect: modelgate.Allow}, "unknown axis"},
		{"effect", modelgate.Entitlement{Provider: "p", ModelPattern: "*", Effect: "block"}, "unknown effect"},
		{"no effect", modelgate.Entitlement{Provider: "p", ModelPattern: "*"}, "unknown effect"},
		{"no provider", modelgate.Entitlement{ModelPattern: "*", Effect: modelgate.Allow}, "must not be empty"},
		{"no pattern", modelgate.Entitlement{Provider: "p", Effect: modelgate.Allow}, "must not be empty"},
		{"long provider", modelgate.Entitlement{Provider: long + "x", ModelPattern: "*", Effect: modelgate.Allow}, "at most 256 bytes"},
		{"long pattern", modelgate.Entitlement{Provider: "*", ModelPattern: long + "x", Effect: modelgate.Allow}, "at most 256 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			es := modelgate.Entitlements{{Axis: modelgate.AxisKind, Provider: "llm", ModelPattern: "*", Effect: modelgate.Allow}, c.tuple}
			err := es.Validate()
			if c.want == "" {
				if err != nil || es[1].Axis != modelgate.AxisProvider {
					t.Errorf("%v, axis %q; want no error and the provider axis", err, es[1].Axis)
				}
				return
			}
			wantError(t, err, modelgate.BadRequest, "entitlements[1]: ", c.want)
		})
	}
	many := make(modelgate.Entitlements, modelgate.MaxEntitlements+1)
	wantError(t, many.Validate(), modelgate.BadRequest, "at most 1000 tuples")
}

func wantError(t *testing.T, err error, kind modelgate.Kind, parts ...string) {
	t.Helper()
	e, ok := errors.AsType[*modelgate.Error](err)
	if !ok || e.Kind != kind {
		t.Errorf("error %v of kind %q, want %q", err, modelgate.KindOf(err), kind)
		return
	}
	for _, part := range parts {
		if !strings.Contains(e.Message, part) {
			t.Errorf("message %q does not say %q", e.Message, part)
		}
	}
}

func TestDenies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		es := drawTuples.Draw(t, "tuples")
		want := slices.DeleteFunc(slices.Clone(es), func(e modelgate.Entitlement) bool { return e.Effect != modelgate.Deny })
		if diff := cmp.Diff(append(modelgate.Entitlements{}, want...), es.Only(modelgate.Deny)); diff != "" {
			t.Fatal(diff)
		}
	})
}
