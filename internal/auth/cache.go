package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"modelgate"
)

// How long what is known may be used. A change by another instance is seen
// when the control version is next read, about a second later; without that
// within softAge plus queryTimeout, which is under 30 s; and with the database
// away within hardAge plus queryTimeout, which is under 90 s.
const (
	aheadAge     = 15 * time.Second // refreshed beside the call from here on
	aheadSpread  = 3 * time.Second  // what is loaded together spreads its refreshes over this
	softAge      = 20 * time.Second // refreshed before the call goes on
	hardAge      = 85 * time.Second // not used any more, database or not
	unknownAge   = 5 * time.Second  // an unknown secret is not asked for again
	queryTimeout = 2 * time.Second
	retryAfter   = time.Second // between tries while the database is away
)

// The bounds of the memory and of the load on the database. Secrets seen
// for the first time and secrets known already have lanes of their own, so that
// a flood of invented ones cannot delay the refresh of good ones.
const (
	defaultCapacity = 100_000
	unknownCapacity = 10_000
	laneWidth       = 8 // queries at once in each of the two lanes
	aheadQueue      = 1024
)

// source is what a cache asks.
type source[T any] struct {
	// find is what lives under a digest; an unauthorized modelgate.Error says
	// that nothing does. seen is what was found before, nil for nothing.
	find func(ctx context.Context, d modelgate.Digest, seen *T) (*T, error)
	// version changes whenever something that was found may have changed.
	version func(context.Context) (int64, error)
}

// cache keeps what the database knows of secrets, by their digests. Safe for
// concurrent use; run must be running for versions and refreshes ahead.
type cache[T any] struct {
	source      source[T]
	unreachable func(error) bool
	now         func() time.Time
	log         *slog.Logger
	client      func(peer netip.Addr, forwarded []string) netip.Addr // see Options
	start       time.Time

	shards [shardCount]shard[T]
	// epoch counts the control versions seen. An entry of an older epoch is
	// stale: its next use asks the database.
	epoch   atomic.Uint64
	flights singleflight.Group
	outage  outage
	read    atomic.Int64 // when the last good read began, since start; 0: none yet
	first   chan struct{}
	again   chan struct{}
	ahead   chan modelgate.Digest
	strange failedLookupLimiter
}

// errUnverified answers when the database is away and what is known is too
// old: the secret may be good, so it is not a 401.
var errUnverified = &modelgate.Error{Kind: modelgate.Unavailable, Message: "key cannot be verified right now; retry shortly"}

// init makes the cache empty; the fields down to client are set.
func (c *cache[T]) init(capacity int) {
	c.start = c.now()
	c.first, c.again = make(chan struct{}, laneWidth), make(chan struct{}, laneWidth)
	c.ahead = make(chan modelgate.Digest, aheadQueue)
	c.strange.failures = make(map[netip.Prefix]time.Duration)
	for i := range c.shards {
		c.shards[i].init(capacity, unknownCapacity)
	}
}

// current is the entry with a value that a digest has now, and the instant it
// was judged at; e is what is known of it, which may be nil. Errors:
// unauthorized where there is none, unavailable while the database does not
// answer and nothing recent is known, else internal.
func (c *cache[T]) current(ctx context.Context, digest modelgate.Digest, e *entry[T], from Origin) (*entry[T], time.Time, error) {
	now := c.now()
	s := c.shard(digest)
	if e != nil && c.usable(e, digest, now) {
		return e, now, nil
	}
	if e == nil && s.unknownSince(digest, now.Add(-unknownAge), c.epoch.Load()) {
		return nil, now, modelgate.ErrUnauthorized
	}
	if e != nil && now.Sub(e.asked) < hardAge && c.outage.lasts(now.Sub(c.start)) {
		return e, now, nil
	}
	e, err := c.ask(ctx, s, digest, e, from)
	return e, c.now(), err
}

// usable reports whether an entry needs no query before the call goes on,
// and asks for a refresh beside the call where one is due.
func (c *cache[T]) usable(e *entry[T], digest modelgate.Digest, now time.Time) bool {
	age := now.Sub(e.asked)
	if age >= softAge || e.epoch != c.epoch.Load() {
		return false
	}
	spread := aheadSpread * time.Duration(digest[31]) / 256
	if age >= aheadAge+spread && e.ahead.CompareAndSwap(false, true) {
		select {
		case c.ahead <- digest:
		default: // the next use past softAge refreshes
		}
	}
	return true
}

// ask queries the database, because what is known, seen, is not enough. While
// the database does not answer, what is known counts up to hardAge.
func (c *cache[T]) ask(ctx context.Context, s *shard[T], digest modelgate.Digest, seen *entry[T], from Origin) (*entry[T], error) {
	e, err := c.lookup(ctx, s, digest, seen, from)
	switch {
	case err == nil && e.value == nil, errors.Is(err, errSuspect):
		return nil, modelgate.ErrUnauthorized
	case err == nil:
		return e, nil
	case !errors.Is(err, errNoAnswer):
		return nil, fmt.Errorf("identify: %w", err)
	}
	// Read again: it may have been forgotten while the query hung.
	if e := s.get(digest); e != nil && c.now().Sub(e.asked) < hardAge {
		return e, nil
	}
	return nil, errUnverified
}

// Forget drops a secret at once: a call that begins after Forget returns asks
// the database, and a query that began before cannot bring it back.
func (c *cache[T]) Forget(digest modelgate.Digest) {
	c.shard(digest).forget(func(d modelgate.Digest, _ *entry[T]) bool { return d == digest })
}

// forget does the same for all that gone picks.
func (c *cache[T]) forget(gone func(*entry[T]) bool) {
	for i := range c.shards {
		c.shards[i].forget(func(_ modelgate.Digest, e *entry[T]) bool { return gone(e) })
	}
}

// LastRead is when the last database read that succeeded began; the zero
// time before the first. A gateway whose last read is over 85 s old can
// identify nobody.
func (c *cache[T]) LastRead() time.Time {
	since := c.read.Load()
	if since == 0 {
		return time.Time{}
	}
	return c.start.Add(time.Duration(since))
}

func (c *cache[T]) noteRead(began time.Time) {
	c.read.Store(max(1, int64(began.Sub(c.start))))
}
