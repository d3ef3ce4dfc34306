package ratelimit

import (
	"context"
	"slices"
	"time"
)

// lease is a place in Redis.
type lease struct {
	shared *Shared
	places string // the set of the key's places
	member string
	ended  bool // guarded by shared.mu once kept
}

func (s *Shared) keep(l *lease) {
	s.mu.Lock()
	s.leases[l] = struct{}{}
	s.mu.Unlock()
}

// end gives the place back before it returns, so that a client's next call
// finds it free. Where Redis does not answer, Run tries again.
func (l *lease) end() {
	s := l.shared
	s.mu.Lock()
	l.ended = true
	s.mu.Unlock()
	if s.leftAlone() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	if _, err := s.server.do(ctx, "ZREM", l.places, l.member); err != nil {
		s.lost(err)
		return
	}
	s.answers()
	s.mu.Lock()
	delete(s.leases, l)
	s.mu.Unlock()
}

// Run keeps the places of calls that last from expiring, and sends what calls
// have used of rate limits in the end, until ctx ends.
func (s *Shared) Run(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	var gathered <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			s.Flush()
			return
		case <-tick.C:
			s.Renew(ctx)
			s.Flush()
		case <-s.buckets.wake:
			if gathered == nil {
				gathered = time.After(gatherFor)
			}
		case <-gathered:
			gathered = nil
			s.Flush()
		}
	}
}

// Flush sends at once what calls have used of rate limits in the end; Run does
// so a moment after a call.
func (s *Shared) Flush() { s.buckets.flush() }

// Renew leases the places held for another minute and gives back those whose
// calls ended while Redis did not answer; Run does it three times a minute.
func (s *Shared) Renew(ctx context.Context) {
	held, ended := s.sort()
	ctx, cancel := context.WithTimeout(ctx, renewEvery/2)
	defer cancel()
	var commands []command
	for places, members := range ended {
		commands = append(commands, command{"ZREM", append([]any{places}, members...)})
	}
	for places, members := range held {
		for batch := range slices.Chunk(members, renewBatch) {
			args := append([]any{leaseFor.Microseconds()}, batch...)
			commands = append(commands, command{"EVAL", arguments(s.renew.text, []string{places}, args)})
		}
	}
	if len(commands) == 0 {
		return
	}
	err := s.server.all(ctx, commands)
	if err != nil { // the connection may have broken long ago
		err = s.server.all(ctx, commands)
	}
	if err != nil {
		s.log.Warn("places of calls could not be renewed", "error", err)
	}
}

// sort lists the places held and ended by key. Those that ended are tried
// once: what is then still in Redis expires by itself.
func (s *Shared) sort() (held, ended map[string][]any) {
	held, ended = make(map[string][]any), make(map[string][]any)
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.leases {
		if !l.ended {
			held[l.places] = append(held[l.places], l.member)
			continue
		}
		ended[l.places] = append(ended[l.places], l.member)
		delete(s.leases, l)
	}
	return held, ended
}

// leftAlone reports whether Redis did not answer lately. The one request
// that gets false when the time is up is the one that tries again.
func (s *Shared) leftAlone() bool {
	away := s.away.Load()
	if away == 0 {
		return false
	}
	now := s.local.now().Sub(s.local.start)
	return now < time.Duration(away) || !s.away.CompareAndSwap(away, int64(now+retryAfter))
}

// lost notes that Redis did not answer.
func (s *Shared) lost(err error) {
	until := int64(s.local.now().Sub(s.local.start) + retryAfter)
	if s.away.Swap(until) == 0 {
		s.log.Warn("redis does not answer; limits hold for each instance alone", "error", err)
	}
}

// answers notes that Redis does.
func (s *Shared) answers() {
	if s.away.Load() != 0 && s.away.Swap(0) != 0 {
		s.log.Info("redis answers again; limits are shared")
	}
}
