package stats

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"modelgate"
)

// Weight is what makes one bucket larger than another.
type Weight string

// The weights.
const (
	WeighCost     Weight = "spend"
	WeighRequests Weight = "requests"
	WeighTokens   Weight = "tokens"
)

// of is the weight of a bucket.
func (w Weight) of(s *Sums) int64 {
	switch w {
	case WeighRequests:
		return s.Requests
	case WeighTokens:
		return s.Tokens
	}
	return s.Cost
}

// Span is the calls of one span of time.
type Span struct {
	At      time.Time // where it begins
	Buckets []modelgate.StatsBucket
}

// Spans returns the spans that have calls, the oldest first. Their buckets are
// those of the heaviest keys of the whole time, at most that many and the
// heaviest first. A span without calls of a key has no bucket for it.
func (s *Statistics) Spans(w Weight, most int) []Span {
	keys := s.heaviest(w, most)
	out := make([]Span, 0, len(s.spans))
	for _, at := range slices.Sorted(maps.Keys(s.spans)) {
		span := Span{At: time.UnixMicro(at).UTC()}
		for _, key := range keys {
			if sum := s.spans[at][key]; sum != nil && *sum != (Sums{}) {
				span.Buckets = append(span.Buckets, sum.bucket(key))
			}
		}
		if len(span.Buckets) > 0 {
			out = append(out, span)
		}
	}
	return out
}

// heaviest returns the keys with the largest sums over all spans. Equal ones are
// ordered by requests, then by key.
func (s *Statistics) heaviest(w Weight, most int) []string {
	all := make(map[string]*Sums)
	for _, buckets := range s.spans {
		for key, sum := range buckets {
			s.bucket(all, []byte(key)).add(*sum)
		}
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.of(all[b]), w.of(all[a])), cmp.Compare(all[b].Requests, all[a].Requests), cmp.Compare(a, b))
	})
	return keys[:min(most, len(keys))]
}
