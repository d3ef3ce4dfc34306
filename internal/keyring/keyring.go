// Package keyring turns a presented secret into the caller behind it. It
// keeps callers in memory, so that a call costs no database read, and bounds
// how long a change made elsewhere can go unseen.
package keyring

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"modelgate"
)

// How long what is known may be used. A change by another instance is seen
// when the control version is next read, about a second later; without that
// within softAge plus queryTimeout, which is under 30 s; and with the database
// away within hardAge plus queryTimeout, which is under 90 s
// (spec: Authentication 11).
const (
	aheadAge     = 15 * time.Second // refreshed beside the call from here on
	aheadSpread  = 3 * time.Second  // keys loaded together spread their refreshes over this
	softAge      = 20 * time.Second // refreshed before the call goes on
	hardAge      = 85 * time.Second // not used any more, database or not
	unknownAge   = 5 * time.Second  // an unknown key is not asked for again
	queryTimeout = 2 * time.Second
	retryAfter   = time.Second // between tries while the database is away
)

// The bounds of the memory and of the load on the database. Keys seen for
// the first time and keys known already have lanes of their own, so that a
// flood of invented keys cannot delay the refresh of good ones.
const (
	defaultCapacity = 100_000
	unknownCapacity = 10_000
	laneWidth       = 8 // queries at once in each of the two lanes
	aheadQueue      = 1024
)

// Source is where callers come from.
type Source interface {
	// Caller is the live caller with the digest; an unauthorized
	// modelgate.Error says that there is none. A key past its expiry is
	// returned: the keyring judges that on every call. seen is what was found
	// before, nil for nothing: what of a key never changes may be taken from it.
	Caller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error)
	// ControlVersion changes whenever a change revokes, suspends or limits.
	ControlVersion(context.Context) (int64, error)
}

// Options are what New needs; all but Capacity are required.
type Options struct {
	Source Source
	// Unreachable tells an error that says the database did not answer from
	// one that is an answer.
	Unreachable func(error) bool
	// Touch stores when keys were last used.
	Touch func(context.Context, map[modelgate.KeyID]time.Time) error
	// Now must carry a monotonic reading, as time.Now does: a step of the wall
	// clock then makes no caller younger or older.
	Now      func() time.Time
	Log      *slog.Logger
	Capacity int // callers kept; 0 means 100,000
}

// Keyring identifies callers. Safe for concurrent use; Run must be running
// for control versions, refreshes ahead and last uses.
type Keyring struct {
	source      Source
	unreachable func(error) bool
	now         func() time.Time
	log         *slog.Logger
	start       time.Time

	shards [shardCount]shard
	// epoch counts the control versions seen. An entry of an older epoch is
	// stale: its next use asks the database.
	epoch   atomic.Uint64
	outage  outage
	read    atomic.Int64 // when the last good read began, since start; 0: none yet
	first   chan struct{}
	again   chan struct{}
	ahead   chan modelgate.Digest
	touches touches
	strange strangers
}

// errUnverified answers when the database is away and what is known is too
// old: the key may be good, so it is not a 401.
var errUnverified = &modelgate.Error{Kind: modelgate.Unavailable, Message: "key cannot be verified right now; retry shortly"}

// New makes an empty keyring.
func New(o Options) *Keyring {
	k := &Keyring{
		source:      o.Source,
		unreachable: o.Unreachable,
		now:         o.Now,
		log:         o.Log,
		start:       o.Now(),
		first:       make(chan struct{}, laneWidth),
		again:       make(chan struct{}, laneWidth),
		ahead:       make(chan modelgate.Digest, aheadQueue),
		touches:     touches{store: o.Touch, pending: make(map[modelgate.KeyID]time.Time)},
		strange:     strangers{failures: make(map[netip.Prefix]time.Duration)},
	}
	capacity := o.Capacity
	if capacity == 0 {
		capacity = defaultCapacity
	}
	for i := range k.shards {
		k.shards[i].init(capacity, unknownCapacity)
	}
	return k
}

// Identify is the caller behind a secret, which is shared and must not be
// changed. Errors: unauthorized, unavailable while the database does not
// answer and nothing recent is known, else internal.
//
// An address from which many secrets come that are no keys gets the same
// answer without a look-up, but for a hundred look-ups a second that all such
// addresses share. A key that this instance knows is not affected by where it
// comes from.
func (k *Keyring) Identify(ctx context.Context, secret string, from Origin) (*modelgate.Caller, error) {
	digest := digestOf(secret)
	s := k.shard(digest)
	e := s.get(digest)
	if e == nil && !modelgate.WellFormed(secret) {
		return nil, modelgate.ErrUnauthorized
	}
	return k.identify(ctx, digest, e, from)
}

// IdentifyDigest is Identify for who has presented the secret before and is
// known by its digest since.
func (k *Keyring) IdentifyDigest(ctx context.Context, digest modelgate.Digest, from Origin) (*modelgate.Caller, error) {
	return k.identify(ctx, digest, k.shard(digest).get(digest), from)
}

// identify judges what is known of a key, e, which may be nil.
func (k *Keyring) identify(ctx context.Context, digest modelgate.Digest, e *entry, from Origin) (*modelgate.Caller, error) {
	now := k.now()
	s := k.shard(digest)
	if e != nil && k.usable(e, digest, now) {
		return k.admit(e, now)
	}
	if e == nil && s.unknownSince(digest, now.Add(-unknownAge), k.epoch.Load()) {
		return nil, modelgate.ErrUnauthorized
	}
	if e != nil && now.Sub(e.asked) < hardAge && k.outage.lasts(now.Sub(k.start)) {
		return k.admit(e, now)
	}
	return k.ask(ctx, s, digest, e, from)
}

// digestOf is modelgate.DigestOf without the copy on the heap.
func digestOf(secret string) modelgate.Digest {
	var onStack [maxPresented]byte
	if len(secret) > len(onStack) {
		return modelgate.DigestOf(secret)
	}
	return sha256.Sum256(onStack[:copy(onStack[:], secret)])
}

// usable reports whether an entry needs no query before the call goes on,
// and asks for a refresh beside the call where one is due.
func (k *Keyring) usable(e *entry, digest modelgate.Digest, now time.Time) bool {
	age := now.Sub(e.asked)
	if age >= softAge || e.epoch != k.epoch.Load() {
		return false
	}
	spread := aheadSpread * time.Duration(digest[31]) / 256
	if age >= aheadAge+spread && e.ahead.CompareAndSwap(false, true) {
		select {
		case k.ahead <- digest:
		default: // the next use past softAge refreshes
		}
	}
	return true
}

// ask queries the database, because what is known, seen, is not enough. While
// the database does not answer, what is known counts up to hardAge.
func (k *Keyring) ask(ctx context.Context, s *shard, digest modelgate.Digest, seen *entry, from Origin) (*modelgate.Caller, error) {
	e, err := k.lookup(ctx, s, digest, seen, from)
	now := k.now()
	switch {
	case err == nil && e.caller == nil, errors.Is(err, errSuspect):
		return nil, modelgate.ErrUnauthorized
	case err == nil:
		return k.admit(e, now)
	case !errors.Is(err, errNoAnswer):
		return nil, fmt.Errorf("identify: %w", err)
	}
	// Read again: the key may have been forgotten while the query hung.
	if e := s.get(digest); e != nil && now.Sub(e.asked) < hardAge {
		return k.admit(e, now)
	}
	return nil, errUnverified
}

// admit applies what is judged on every call.
func (k *Keyring) admit(e *entry, now time.Time) (*modelgate.Caller, error) {
	if !e.caller.Live(now) {
		return nil, modelgate.ErrUnauthorized
	}
	if e.use.due(now.Sub(k.start)) {
		k.touches.add(e.caller.KeyID, now)
	}
	return e.caller, nil
}

// Forget drops a key at once: a call that begins after Forget returns asks
// the database, and a query that began before cannot bring the key back.
func (k *Keyring) Forget(digest modelgate.Digest) {
	k.shard(digest).forget(func(d modelgate.Digest, _ *entry) bool { return d == digest })
}

// ForgetSubAccount does the same for every key bound to a sub-account, and
// for every key that was found unknown, as those of a suspended one are.
func (k *Keyring) ForgetSubAccount(id modelgate.SubAccountID) {
	for i := range k.shards {
		k.shards[i].forget(func(_ modelgate.Digest, e *entry) bool {
			return e.caller == nil || e.caller.SubAccountID == id
		})
	}
}

// ForgetClient does the same for every key of an organization.
func (k *Keyring) ForgetClient(id modelgate.ClientID) {
	for i := range k.shards {
		k.shards[i].forget(func(_ modelgate.Digest, e *entry) bool {
			return e.caller != nil && e.caller.ClientID == id
		})
	}
}

// LastRead is when the last database read that succeeded began; the zero
// time before the first. A gateway whose last read is over 85 s old can
// identify nobody.
func (k *Keyring) LastRead() time.Time {
	since := k.read.Load()
	if since == 0 {
		return time.Time{}
	}
	return k.start.Add(time.Duration(since))
}

func (k *Keyring) noteRead(began time.Time) {
	k.read.Store(max(1, int64(began.Sub(k.start))))
}
