package modelgate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"modelgate"
)

// FuzzEntitlements reads rules out of text, one a line, its fields parted by
// blanks, and holds them against the plain rules of ruleMatches.
func FuzzEntitlements(f *testing.F) {
	f.Add("provider p * allow\nprovider p o* deny", "p", "one", uint8(0))
	f.Add("vendor ann * allow\nkind image * deny", "q", "two", uint8(3))
	f.Add("kind l?m * allow\nvendor bob alias deny", "q", "one", uint8(2))
	f.Add("provider * * allow\nvendor * * deny", "r", "unheard", uint8(9))
	f.Add("provider ** ?* allow\nprovider P * deny\nvendor ann one deny", "p", "ONE", uint8(1))
	f.Fuzz(func(t *testing.T, rules, provider, model string, door uint8) {
		if len(provider)+len(model) > 24 || !utf8.ValidString(provider+model) || !utf8.ValidString(rules) || strings.ContainsRune(rules+provider+model, utf8.RuneError) {
			return // the oracle is exponential, and reads characters
		}
		var es modelgate.Entitlements
		for line := range strings.Lines(rules) {
			if part := strings.Fields(line); len(part) == 4 && strings.Count(line, "*") <= 6 && len(es) < 12 {
				es = append(es, modelgate.Entitlement{Axis: modelgate.Axis(part[0]), Provider: part[1], ModelPattern: part[2], Effect: modelgate.Effect(part[3])})
			}
		}
		if es.Validate() != nil {
			return
		}
		c := catalog(t)
		wanted := []modelgate.Target{target(c, provider, model)}
		if models := c.Models(); int(door) < len(models) {
			wanted = append(wanted, models[door].Target(0))
		}
		for _, target := range wanted {
			if got, want := es.Permit(target), permitOracle(es, target); got != want {
				t.Fatalf("%+v permit %s %s: %v, want %v", es, target.Provider, target.Model, got, want)
			}
			deny := append(es[:len(es):len(es)], modelgate.Entitlement{Axis: modelgate.AxisProvider, Provider: target.Provider, ModelPattern: "*", Effect: modelgate.Deny})
			if !strings.ContainsAny(target.Provider, "*?") && deny.Permit(target) {
				t.Fatalf("%+v: the last rule denies %s %s", deny, target.Provider, target.Model)
			}
		}
		if es.PermitProvider(provider, nil) && !es.Permit(modelgate.Target{Provider: provider, Model: model}) {
			t.Fatalf("%+v allow all of %s, but not %q", es, provider, model)
		}
	})
}
