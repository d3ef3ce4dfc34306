// Package ratelimit holds every key to its rate and to its number of calls at
// once: within one instance, or through Redis across all of them.
package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"

	"modelgate"
)

// Kind says what a request counts against.
type Kind string

// The kinds: every request counts against the rate, calls of doors and
// provider proxy also against the concurrency, which they hold until their
// Pass is released.
const (
	Request Kind = "request"
	Call    Kind = "call"
)

// Limiter is what keeps limits: Local or Shared.
type Limiter interface {
	// Enter admits a request of a key or refuses it with ErrRateLimited, in a
	// *modelgate.LimitError where the key's own limits refuse. A refused request
	// counts against nothing. The limits are the caller's; what they leave open
	// is the configuration's. The request counts against the keys above as well,
	// against all or none.
	Enter(key modelgate.KeyID, limits modelgate.Limits, kind Kind, above ...modelgate.Ancestor) (Pass, error)
	// State is how much of its own limits a key has used: the rate, then the
	// calls at once, as far as they bind it.
	State(key modelgate.KeyID, limits modelgate.Limits) []modelgate.LimitState
	// Draw takes one request from a bucket, or refuses it with ErrRateLimited.
	Draw(Bucket) error
	// Drawn is how many requests are drawn from a bucket.
	Drawn(Bucket) int64
	// Refund takes back what a request drew that was refused later on.
	Refund(Bucket)
}

// figures are the limits that bind, worked out from what is set.
type figures struct {
	rate     int64         // requests a second; 0: unlimited
	interval time.Duration // between requests at the steady rate; 0: unlimited
	burst    int64         // requests at once after a pause, at least 1
	places   int64         // calls at once; 0: unlimited, or none needed
}

// longest bounds how far ahead of the clock a bucket can be, so that no
// product of a burst and an interval overflows.
const longest = 100 * 365 * 24 * time.Hour

// bind applies the defaults. A rate needs a burst of at least one; one that
// is not set, or zero, is a second's worth of the rate.
func bind(l modelgate.Limits, k Kind) figures {
	var f figures
	if rate := value(l.RequestsPerSecond); rate > 0 {
		f.rate = rate
		f.interval = time.Second / time.Duration(rate)
		f.burst = value(l.Burst)
		if f.burst <= 0 {
			f.burst = rate
		}
		f.burst = min(f.burst, int64(longest/max(f.interval, 1)))
	}
	if k == Call {
		f.places = max(0, value(l.Concurrency))
	}
	return f
}

func value(v *int) int64 {
	if v == nil {
		return 0
	}
	return int64(*v)
}

// spent is the refusal of a request of a key whose bucket is empty.
func (f figures) spent(key modelgate.KeyID) error { return refuse(f.rateState(key, f.burst)) }

// crowded is the refusal of a call of a key that has so many already.
func (f figures) crowded(key modelgate.KeyID, inside int64) error {
	return refuse(f.placesState(key, inside))
}

func refuse(l modelgate.LimitState) error {
	l.Needed = modelgate.WholeUnits(1)
	return &modelgate.LimitError{Err: modelgate.ErrRateLimited, State: l}
}

// rateState is the rate of a key with so many requests drawn from its bucket.
func (f figures) rateState(key modelgate.KeyID, drawn int64) modelgate.LimitState {
	drawn = min(drawn, f.burst)
	return modelgate.LimitState{
		Kind: modelgate.LimitRate, Scope: modelgate.LevelKey, ID: string(key), Unit: modelgate.UnitRequests, Window: "second",
		Limit: modelgate.WholeUnits(f.rate), Used: modelgate.WholeUnits(drawn), Remaining: modelgate.WholeUnits(f.burst - drawn),
	}
}

// placesState is the number of calls at once of a key that has so many.
func (f figures) placesState(key modelgate.KeyID, inside int64) modelgate.LimitState {
	return modelgate.LimitState{
		Kind: modelgate.LimitRate, Scope: modelgate.LevelKey, ID: string(key), Unit: modelgate.UnitConcurrency,
		Limit: modelgate.WholeUnits(f.places), Used: modelgate.WholeUnits(inside), Remaining: modelgate.WholeUnits(max(0, f.places-inside)),
	}
}

// states are the limits that bind a key, whose bucket will be full after so
// long and that has so many calls inside.
func (f figures) states(key modelgate.KeyID, full time.Duration, inside int64) (list []modelgate.LimitState) {
	if f.interval > 0 {
		drawn := (max(full, 0) + f.interval - 1) / f.interval // what has come back in part is not there yet
		list = append(list, f.rateState(key, int64(drawn)))
	}
	if f.places > 0 {
		list = append(list, f.placesState(key, inside))
	}
	return list
}

// free reports whether nothing binds.
func (f figures) free() bool { return f.interval == 0 && f.places == 0 }

// Pass is what a request got on entering. The zero value holds nothing.
type Pass struct {
	gate  *gate
	lease *lease
	below *Pass // what it got of the keys below, where there are ancestors
}

// Release gives the place back. It must be called exactly once, when the
// call has ended; a copy of a Pass is the same Pass.
func (p Pass) Release() {
	if p.gate != nil {
		p.gate.leave()
	}
	if p.lease != nil {
		p.lease.end()
	}
	if p.below != nil {
		p.below.Release()
	}
}

// gates judge requests of single keys.
type gates interface {
	enterOne(key modelgate.KeyID, f figures) (Pass, error)
	// refund takes back what a request drew from a key's bucket.
	refund(key modelgate.KeyID, f figures)
}

// climb goes on from the pass of a key to its ancestors. Where one refuses, all
// is given back.
func climb(g gates, pass Pass, key modelgate.KeyID, f figures, kind Kind, above []modelgate.Ancestor) (Pass, error) {
	type drawn struct {
		key modelgate.KeyID
		figures
	}
	taken := []drawn{{key, f}}
	for i := range above {
		f := bind(above[i].Limits, kind)
		next, refused := g.enterOne(above[i].KeyID, f)
		if refused != nil {
			pass.Release()
			for _, d := range taken {
				g.refund(d.key, d.figures)
			}
			return Pass{}, modelgate.ErrRateLimited // without the figures of a key above
		}
		below := pass
		next.below, pass = &below, next
		taken = append(taken, drawn{above[i].KeyID, f})
	}
	return pass, nil
}

const shardCount = 64

// Local keeps the limits of this instance alone. Safe for concurrent use.
type Local struct {
	defaults modelgate.Limits
	now      func() time.Time
	start    time.Time
	seed     maphash.Seed
	shards   [shardCount]shard
}

type shard struct {
	mu    sync.Mutex // also guards the gates of the shard
	gates map[modelgate.KeyID]*gate
	// sweepAt is the size at which idle gates are dropped, so that the work
	// of doing it is spread over the insertions in between.
	sweepAt int
}

// gate is the state of one key.
type gate struct {
	shard  *shard
	full   time.Duration // since start: when the bucket is full again
	inside int64
}

const firstSweep = 64

// NewLocal makes limits for keys that set none of their own, on the clock
// now.
func NewLocal(defaults modelgate.Limits, now func() time.Time) *Local {
	l := &Local{defaults: defaults, now: now, start: now(), seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i] = shard{gates: make(map[modelgate.KeyID]*gate), sweepAt: firstSweep}
	}
	return l
}

// Enter is that of Limiter; it never waits.
func (l *Local) Enter(key modelgate.KeyID, limits modelgate.Limits, kind Kind, above ...modelgate.Ancestor) (Pass, error) {
	f := bind(limits.Or(l.defaults), kind)
	pass, err := l.enterOne(key, f)
	if err != nil || len(above) == 0 {
		return pass, err
	}
	return climb(l, pass, key, f, kind, above)
}

// State is that of Limiter.
func (l *Local) State(key modelgate.KeyID, limits modelgate.Limits) []modelgate.LimitState {
	return l.state(key, bind(limits.Or(l.defaults), Call))
}

func (l *Local) state(key modelgate.KeyID, f figures) []modelgate.LimitState {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[key]
	if g == nil {
		return f.states(key, 0, 0)
	}
	return f.states(key, g.full-l.now().Sub(l.start), g.inside)
}

func (l *Local) refund(key modelgate.KeyID, f figures) {
	if f.interval == 0 {
		return
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gates[key]; g != nil {
		g.full -= f.interval
	}
}

func (l *Local) shard(key modelgate.KeyID) *shard {
	return &l.shards[maphash.String(l.seed, string(key))%shardCount]
}

func (l *Local) enterOne(key modelgate.KeyID, f figures) (Pass, error) {
	if f.free() {
		return Pass{}, nil
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Read under the lock: a request that waited for it would be judged by an
	// instant before that of others, and be refused although there is a token.
	now := l.now().Sub(l.start)
	g := s.gates[key]
	if g == nil {
		g = s.add(key, now)
	}
	if f.places > 0 && g.inside >= f.places {
		return Pass{}, f.crowded(key, g.inside)
	}
	if !g.take(f, now) {
		return Pass{}, f.spent(key)
	}
	if f.places == 0 {
		return Pass{}, nil
	}
	g.inside++
	return Pass{gate: g}, nil
}

// take draws one request from the bucket. The bucket is kept as the instant
// at which it will be full again: each request moves that by one interval,
// and it may lie at most burst intervals ahead.
func (g *gate) take(f figures, now time.Duration) bool {
	if f.interval == 0 {
		return true
	}
	most := now + time.Duration(f.burst)*f.interval
	// A burst that was larger before must not leave a debt.
	g.full = min(max(g.full, now), most)
	if g.full+f.interval > most {
		return false
	}
	g.full += f.interval
	return true
}

func (g *gate) leave() {
	g.shard.mu.Lock()
	g.inside--
	g.shard.mu.Unlock()
}

// add makes a gate, and drops those that say no more than a new one would.
func (s *shard) add(key modelgate.KeyID, now time.Duration) *gate {
	if len(s.gates) >= s.sweepAt {
		for k, g := range s.gates {
			if g.inside == 0 && g.full <= now {
				delete(s.gates, k)
			}
		}
		s.sweepAt = max(firstSweep, 2*len(s.gates))
	}
	g := &gate{shard: s}
	s.gates[key] = g
	return g
}
