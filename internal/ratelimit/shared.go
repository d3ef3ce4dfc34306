package ratelimit

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"modelgate"
)

// How the gateway deals with Redis.
const (
	patience   = 50 * time.Millisecond // the most a call waits for it
	retryAfter = time.Second           // between tries while it does not answer
	leaseFor   = time.Minute           // a place is free again so long after its instance died
	renewEvery = 20 * time.Second
	renewBatch = 200
)

// enterScript draws a request from a key's bucket and takes a place among
// its calls, both or neither, on the clock of Redis. It answers 1, 0 where the
// bucket is empty, or the number of calls below 0 where there are too many.
//
// KEYS: the bucket, the places. ARGV: interval in µs (0: no rate), burst,
// places (0: none needed), how long a place is leased in µs, its name.
const enterScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst, places = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local exact = function(x) return string.format('%.3f', x) end
if places > 0 then
	redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', exact(now))
	local inside = redis.call('ZCARD', KEYS[2])
	if inside >= places then return -inside end
end
if interval > 0 then
	local most = now + burst * interval
	local keep = function(full) redis.call('SET', KEYS[1], exact(full), 'PX', math.ceil((full - now) / 1000)) end
	local full = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
	if full > most then keep(most) end
	if full + interval > most then return 0 end
	keep(full + interval)
end
if places > 0 then
	redis.call('ZADD', KEYS[2], exact(now + ARGV[4]), ARGV[5])
	redis.call('PEXPIRE', KEYS[2], math.ceil(ARGV[4] / 1000))
end
return 1`

// refundScript takes back what a request drew from a bucket that is not full.
//
// KEYS: the bucket. ARGV: interval in µs.
const refundScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = tonumber(redis.call('GET', KEYS[1]) or 0) - ARGV[1]
if full > now then
	redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000))
else
	redis.call('DEL', KEYS[1])
end
return 1`

// renewScript leases places anew, those too that a restart of Redis lost.
//
// KEYS: the places. ARGV: for how long in µs, their names.
const renewScript = `
local time = redis.call('TIME')
local ends = string.format('%.3f', time[1] * 1000000 + time[2] + ARGV[1])
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], ends, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[1] / 1000))
return 1`

// stateScript answers after how many µs a key's bucket is full, and how many
// calls it has.
//
// KEYS: the bucket, the places.
const stateScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = tonumber(redis.call('GET', KEYS[1]) or 0)
return {math.ceil(math.max(0, full - now)), redis.call('ZCOUNT', KEYS[2], string.format('(%.3f', now), '+inf')}`

// SharedOptions are what NewShared needs; all but Patience are required.
type SharedOptions struct {
	URL string // redis://… or rediss://…
	// Local decides while Redis does not answer, and holds the defaults.
	Local *Local
	IDs   *modelgate.IDs // names of places
	Log   *slog.Logger
	// Patience is how long a request waits for Redis before it is judged by
	// this instance alone; 0 means 50 ms.
	Patience time.Duration
}

// Shared keeps the limits of all instances together in Redis. While Redis
// does not answer each instance keeps its own, and about one call a
// second waits to find that out. Safe for concurrent use.
type Shared struct {
	local   *Local
	ids     *modelgate.IDs
	log     *slog.Logger
	wait    time.Duration
	server  *server
	enter   script
	refunds script
	renew   script
	states  script

	away      atomic.Int64 // until when Redis is left alone, on local's clock; 0: it answers
	fallbacks atomic.Int64

	buckets *sharedBuckets // of rate limits

	mu     sync.Mutex
	leases map[*lease]struct{} // held, or to be given back still
}

// NewShared makes the client, which connects when it is first used. The
// error says that the URL is none.
func NewShared(o SharedOptions) (*Shared, error) {
	wait := cmp.Or(o.Patience, patience)
	server, err := newServer(o.URL, max(dialTimeout, wait))
	if err != nil {
		return nil, err
	}
	s := &Shared{
		local:   o.Local,
		ids:     o.IDs,
		log:     o.Log,
		wait:    wait,
		server:  server,
		enter:   newScript(enterScript),
		refunds: newScript(refundScript),
		renew:   newScript(renewScript),
		states:  newScript(stateScript),
		leases:  make(map[*lease]struct{}),
	}
	s.buckets = newSharedBuckets(s)
	return s, nil
}

// Close closes the connections to Redis. Places that are still held are free
// for other instances a minute later.
func (s *Shared) Close() { s.server.close() }

// Fallbacks is how many requests were judged by this instance alone since it
// started, because Redis did not answer.
func (s *Shared) Fallbacks() int64 { return s.fallbacks.Load() }

// Enter is that of Limiter.
func (s *Shared) Enter(key modelgate.KeyID, limits modelgate.Limits, kind Kind, above ...modelgate.Ancestor) (Pass, error) {
	f := bind(limits.Or(s.local.defaults), kind)
	pass, err := s.enterOne(key, f)
	if err != nil || len(above) == 0 {
		return pass, err
	}
	return climb(s, pass, key, f, kind, above)
}

// refund leaves alone what Redis does not answer for: the bucket fills by
// itself.
func (s *Shared) refund(key modelgate.KeyID, f figures) {
	if f.interval == 0 {
		return
	}
	if s.away.Load() != 0 {
		s.local.refund(key, f)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	if _, err := s.server.eval(ctx, s.refunds, []string{bucket(key)}, float64(f.interval)/float64(time.Microsecond)); err != nil {
		s.lost(err)
	}
}

// State is that of Limiter. It is this instance's own while Redis does not
// answer.
func (s *Shared) State(key modelgate.KeyID, limits modelgate.Limits) []modelgate.LimitState {
	return s.stateOf(key, bind(limits.Or(s.local.defaults), Call))
}

func (s *Shared) stateOf(key modelgate.KeyID, f figures) []modelgate.LimitState {
	if f.free() {
		return nil
	}
	if !s.leftAlone() {
		ctx, cancel := context.WithTimeout(context.Background(), s.wait)
		defer cancel()
		got, err := redis.Int64s(s.server.run(ctx, s.states, []string{bucket(key), places(key)}))
		if err == nil && len(got) == 2 {
			s.answers()
			return f.states(key, time.Duration(got[0])*time.Microsecond, got[1])
		}
		s.lost(err)
	}
	return s.local.state(key, f)
}

// bucket and places name a key's in Redis. One key's names share a hash tag, so
// that a cluster keeps them together.
func bucket(key modelgate.KeyID) string { return "modelgate:limit:{" + string(key) + "}:rate" }
func places(key modelgate.KeyID) string { return "modelgate:limit:{" + string(key) + "}:calls" }

func (s *Shared) enterOne(key modelgate.KeyID, f figures) (Pass, error) {
	if f.free() {
		return Pass{}, nil
	}
	if s.leftAlone() {
		return s.fallBack(key, f)
	}
	pass, answer, err := s.ask(key, f)
	if err != nil {
		s.lost(err)
		return s.fallBack(key, f)
	}
	s.answers()
	switch {
	case answer < 0:
		return Pass{}, f.crowded(key, -answer)
	case answer == 0:
		return Pass{}, f.spent(key)
	}
	return pass, nil
}

// ask runs the script and returns its answer too. Where the answer does not
// come, the place may have been taken all the same, so its lease is given back
// by Run.
func (s *Shared) ask(key modelgate.KeyID, f figures) (Pass, int64, error) {
	names := []string{bucket(key), places(key)}
	place := &lease{shared: s, places: names[1]}
	if f.places > 0 {
		place.member = s.ids.New().String()
	}
	// Not the call's own context: a client that leaves at once must not look
	// like a Redis that is away.
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	micros := float64(f.interval) / float64(time.Microsecond)
	got, err := s.server.eval(ctx, s.enter, names, micros, f.burst, f.places, leaseFor.Microseconds(), place.member)
	place.ended = err != nil
	if f.places > 0 && (err != nil || got == 1) {
		s.keep(place)
	}
	if err != nil || got != 1 || f.places == 0 {
		return Pass{}, got, err
	}
	return Pass{lease: place}, got, nil
}

func (s *Shared) fallBack(key modelgate.KeyID, f figures) (Pass, error) {
	s.fallbacks.Add(1)
	return s.local.enterOne(key, f)
}
