package modelgate

import "math"

// latencyStep is by how much the bound of one class of latency lies above that
// of the class before.
const latencyStep = 1.25

// LatencyClass sorts a latency in milliseconds into a class, so that
// percentiles over any number of calls can be told from a few counts: class n
// holds what takes more than 1.25^(n-1) and at most 1.25^n ms, class 0 all up
// to 1 ms. The highest is 80, about 15 hours.
func LatencyClass(ms int64) int {
	if ms <= 1 {
		return 0
	}
	// The division is not exact at a bound; which of two neighbours a call
	// falls into does not matter, that it always is the same one does.
	return min(int(math.Ceil(math.Log(float64(ms))/math.Log(latencyStep))), 80)
}

// LatencyQuantile is the latency in milliseconds below which the share q of
// the calls lies, of which counts has those of each class; 0 for no calls. It
// errs by the width of a class, an eighth up or down.
func LatencyQuantile(counts map[int]int64, q float64) int64 {
	var total int64
	highest := 0
	for class, n := range counts {
		total += n
		highest = max(highest, class)
	}
	if total == 0 {
		return 0
	}
	rank := int64(math.Ceil(q * float64(total)))
	for class := 0; class <= highest; class++ {
		if rank -= counts[class]; rank <= 0 {
			return amid(class)
		}
	}
	return int64(math.Round(math.Pow(latencyStep, float64(highest))))
}

// amid is the latency in milliseconds that stands for a class.
func amid(class int) int64 {
	return int64(math.Round(math.Pow(latencyStep, float64(class)-0.5)))
}

// LatencyCounts is how many calls took about so many milliseconds, by the
// latencies that LatencyQuantile finds among the same counts. Those of several
// times added up tell the percentiles of all of them. It is never nil.
func LatencyCounts(counts map[int]int64) map[int64]int64 {
	out := make(map[int64]int64, len(counts))
	for class, n := range counts {
		out[amid(class)] += n
	}
	return out
}
