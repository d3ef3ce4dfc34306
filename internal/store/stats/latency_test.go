package stats

import (
	"maps"
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

// Counts of two times, added up, tell what one count of both tells.
func TestCountsByLatency(t *testing.T) {
	t.Parallel()
	first, second, both := make(map[int]int64), make(map[int]int64), make(map[int]int64)
	for ms := int64(0); ms < 4000; ms++ {
		class := LatencyClass(ms * ms % 90_001)
		if ms%3 == 0 {
			first[class]++
		} else {
			second[class]++
		}
		both[class]++
	}
	sum := CountsByLatency(first)
	for about, n := range CountsByLatency(second) {
		sum[about] += n
	}
	for _, q := range []float64{0.01, 0.5, 0.95, 1} {
		rank, got := int64(math.Ceil(q*4000)), int64(0)
		for _, about := range slices.Sorted(maps.Keys(sum)) {
			if got = about; rank <= sum[about] {
				break
			}
			rank -= sum[about]
		}
		if want := LatencyQuantile(both, q); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
	if got := CountsByLatency(nil); got == nil || len(got) != 0 {
		t.Errorf("of no calls: %v", got)
	}
}
