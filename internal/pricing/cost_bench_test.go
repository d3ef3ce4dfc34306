package pricing_test

import (
	"testing"
	"time"

	"modelgate/internal/pricing"

	"modelgate"
)

func BenchmarkCost(b *testing.B) {
	p := &modelgate.Price{}
	for unit, usd := range map[modelgate.Unit]modelgate.Nano{modelgate.UnitInput: 2_500_000_000, modelgate.UnitCachedInput: 250_000_000, modelgate.UnitOutput: 10_000_000_000} {
		if err := p.Base.Set(unit, usd); err != nil {
			b.Fatal(err)
		}
	}
	p.Prepare() // as that of a catalog is
	u, now := modelgate.Usage{Input: 1234, CachedInput: 512, Output: 345}, time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if cost, _, _ := pricing.Cost(p, &u, now); cost == 0 {
			b.Fatal("it costs nothing")
		}
	}
}
