package modelgate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLatencyClassesGrow(t *testing.T) {
	t.Parallel()
	last := 0
	for ms := int64(-1); ms < 200_000; ms++ {
		class := LatencyClass(ms)
		if class < last || class > last+4 {
			t.Fatalf("LatencyClass(%d) = %d after %d", ms, class, last)
		}
		last = class
	}
	if got := LatencyClass(math.MaxInt64); got != 80 {
		t.Errorf("the longest is of class %d", got)
	}
}

func TestLatencyQuantile(t *testing.T) {
	t.Parallel()
	if got := LatencyQuantile(nil, 0.5); got != 0 {
		t.Errorf("of no calls: %d", got)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		counts, all := map[int]int64{}, []int64{}
		for range 1 + random.IntN(500) {
			ms := int64(math.Exp(random.Float64()*10)) + 10
			all = append(all, ms)
			counts[LatencyClass(ms)]++
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.95, 0.99, 1} {
			exact := float64(all[int(math.Ceil(q*float64(len(all))))-1])
			if got := float64(LatencyQuantile(counts, q)); math.Abs(got-exact) > exact*0.15 {
				t.Errorf("%v of %d calls: %v, exactly %v", q, len(all), got, exact)
			}
		}
	}
}
