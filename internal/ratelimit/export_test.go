package ratelimit

// Keys is how many keys are kept.
func (l *Local) Keys() int {
	n := 0
	for i := range l.shards {
		l.shards[i].mu.Lock()
		n += len(l.shards[i].gates)
		l.shards[i].mu.Unlock()
	}
	return n
}

// Leases is how many places Redis is believed to hold for this instance.
func (s *Shared) Leases() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}
