package gateway

import (
	"sync"

	"modelgate"
)

const (
	// recentCalls of a route are remembered; the second largest of them is
	// their 99th percentile, near enough.
	recentCalls = 128
	// recentRoutes bounds the memory: names of models can come from clients.
	recentRoutes = 4096
)

// recentUsage knows what the calls of a route have used of late: output tokens,
// or the cost where a model is not charged by the token. It is safe for
// concurrent use.
type recentUsage struct {
	mu     sync.RWMutex
	routes map[routeName]*sample
}

type routeName struct{ provider, model string }

// sample is the last calls of a route.
type sample struct {
	mu      sync.Mutex
	figures [recentCalls]int64
	count   int
	typical int64
}

// p99Estimate is what nearly no call of the route exceeds; false while there were
// none.
func (r *recentUsage) p99Estimate(route routeName) (int64, bool) {
	r.mu.RLock()
	s := r.routes[route]
	r.mu.RUnlock()
	if s == nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typical, true
}

// note remembers a call. What was guessed of one that was cut is remembered
// only where it is more than usual: such calls would have used more.
func (r *recentUsage) note(route routeName, k modelgate.ModelKind, end *modelgate.CallEnd, guessed bool) {
	if end.StatusCode >= 300 {
		return
	}
	figure := int64(end.Cost)
	if tokens(k) {
		figure = end.Usage.CompletionTokens()
	}
	if guessed {
		if usual, _ := r.p99Estimate(route); figure <= usual {
			return
		}
	}
	if s := r.sample(route); s != nil {
		s.add(figure)
	}
}

func (r *recentUsage) sample(name routeName) *sample {
	r.mu.RLock()
	s := r.routes[name]
	r.mu.RUnlock()
	if s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s = r.routes[name]; s == nil && len(r.routes) < recentRoutes {
		s = new(sample)
		r.routes[name] = s
	}
	return s
}

func (s *sample) add(figure int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures[s.count%recentCalls] = figure
	s.count++
	if s.count > 16 && s.count%16 != 0 && figure <= s.typical {
		return
	}
	var first, second int64
	n := min(s.count, recentCalls)
	for _, v := range s.figures[:n] {
		if v > first {
			first, second = v, first
		} else if v > second {
			second = v
		}
	}
	s.typical = second
	if n < recentCalls { // too few to leave the largest out
		s.typical = first
	}
}
