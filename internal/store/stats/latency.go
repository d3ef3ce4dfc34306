package stats

import "math"

const (
	// latencyStep is the ratio between the upper bounds of a class and of the
	// class before it.
	latencyStep = 1.25
	// longestLatency is the highest class, from about 15 hours on.
	longestLatency = 80
)

// LatencyClass sorts a latency in milliseconds into a class, so that a few
// counts are enough to estimate percentiles over any number of calls. Class n
// holds more than 1.25^(n-1) and at most 1.25^n ms, class 0 all up to 1 ms.
func LatencyClass(ms int64) int {
	if ms <= 1 {
		return 0
	}
	// The division is not exact at a bound. Either neighbour will do, as long as
	// it always is the same one.
	return min(int(math.Ceil(math.Log(float64(ms))/math.Log(latencyStep))), longestLatency)
}

// LatencyQuantile estimates the latency in milliseconds that the share q of the
// calls does not exceed, from the number of calls in each class; 0 for no calls.
// The error is at most an eighth.
func LatencyQuantile(counts map[int]int64, q float64) int64 {
	var total int64
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := int64(math.Ceil(q * float64(total)))
	class := 0
	for rank -= counts[0]; rank > 0 && class < longestLatency; rank -= counts[class] {
		class++
	}
	return middleOf(class)
}

// middleOf is the latency in milliseconds that represents a class.
func middleOf(class int) int64 {
	return int64(math.Round(math.Pow(latencyStep, float64(class)-0.5)))
}

// CountsByLatency is the number of calls by their estimated latency in
// milliseconds, as LatencyQuantile estimates it. The counts of several times can
// be added up. It is never nil.
func CountsByLatency(counts map[int]int64) map[int64]int64 {
	out := make(map[int64]int64, len(counts))
	for class, n := range counts {
		out[middleOf(class)] += n
	}
	return out
}
