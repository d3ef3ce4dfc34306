package modelgate_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"modelgate"
)

// Whatever is asked, in whatever order, by how many at once and across
// reloads of the catalog: a caller that remembers says what one that does not
// remember says.
func TestRememberedDecisions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			pick := func(list ...string) string { return list[random.IntN(len(list))] }
			rules := func(n int) (es modelgate.Entitlements) {
				for range n {
					effect := modelgate.Allow
					if random.IntN(8) == 0 {
						effect = modelgate.Deny
					}
					es = append(es, modelgate.Entitlement{
						Axis: modelgate.Axis(pick("provider", "vendor", "kind")), Provider: pick("p", "q", "ann", "bob", "llm", "?", "b*"),
						ModelPattern: pick("one", "two", "t*", "alias", fmt.Sprint("m", random.IntN(90))), Effect: effect,
					})
				}
				return es
			}
			fresh := modelgate.Caller{Entitlements: rules(30), Denies: rules(2)}
			if seed%3 == 0 {
				fresh.Backing = []modelgate.Entitlements{rules(9)}
			}
			remembering := fresh
			remembering.Remember()
			for range 3 { // loads of the catalog
				c := catalog(t)
				var asked []modelgate.Target
				for _, m := range c.Models() {
					for i := range m.Routes {
						asked = append(asked, m.Target(i), target(c, m.Routes[i].Provider, m.Routes[i].Model))
					}
				}
				for i := range 90 {
					asked = append(asked, target(c, pick("p", "q"), fmt.Sprint("m", i)))
				}
				var all sync.WaitGroup
				for g := range 4 {
					order := random.Perm(len(asked))
					all.Go(func() {
						for _, i := range append(order, order...) {
							if got, want := remembering.Permit(asked[i]), fresh.Permit(asked[i]); got != want {
								t.Errorf("caller %d of %+v: %v, want %v", g, asked[i], got, want)
							}
						}
					})
				}
				all.Wait()
			}
		})
	}
}

func BenchmarkPermit(b *testing.B) {
	for _, n := range []int{5, 1000} {
		caller := modelgate.Caller{}
		for i := range n - 1 {
			caller.Entitlements = append(caller.Entitlements, modelgate.Entitlement{
				Axis: modelgate.AxisProvider, Provider: "openai", ModelPattern: fmt.Sprintf("model-%d*", i), Effect: modelgate.Allow,
			})
		}
		caller.Entitlements = append(caller.Entitlements, modelgate.Entitlement{Axis: modelgate.AxisProvider, Provider: "openai", ModelPattern: "*", Effect: modelgate.Allow})
		wanted := modelgate.Target{Provider: "openai", Model: "gpt-large"}
		b.Run(fmt.Sprintf("%d rules", n), func(b *testing.B) {
			caller := caller
			caller.Remember()
			b.ReportAllocs()
			for b.Loop() {
				if !caller.Permit(wanted) {
					b.Fatal("refused")
				}
			}
		})
	}
}
