package auth

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
)

const shardCount = 64

// entry is what one query found out. It is never changed but for its two
// flags; a refresh puts another in its place.
type entry[T any] struct {
	value *T          // nil: the database knows no such secret
	asked time.Time   // before the query was sent
	epoch uint64      // before the query was sent
	ahead atomic.Bool // a refresh beside a call was asked for
	use   *use        // outlives refreshes
}

// shard holds what is known of secrets whose digests begin alike. mu guards
// everything.
type shard[T any] struct {
	mu      sync.RWMutex
	known   map[modelgate.Digest]*entry[T]
	unknown map[modelgate.Digest]*entry[T]
	// generation counts what was forgotten: a query that began in another
	// one may have read a state from before and is not kept.
	generation uint64

	knownRoom, unknownRoom int
}

func (s *shard[T]) init(known, unknown int) {
	s.known = make(map[modelgate.Digest]*entry[T])
	s.unknown = make(map[modelgate.Digest]*entry[T])
	s.knownRoom = max(1, known/shardCount)
	s.unknownRoom = max(1, unknown/shardCount)
}

func (c *cache[T]) shard(d modelgate.Digest) *shard[T] { return &c.shards[d[0]%shardCount] }

func (s *shard[T]) get(d modelgate.Digest) *entry[T] {
	s.mu.RLock()
	e := s.known[d]
	s.mu.RUnlock()
	return e
}

// unknownSince reports whether the secret was found unknown after an instant
// and in this epoch.
func (s *shard[T]) unknownSince(d modelgate.Digest, after time.Time, epoch uint64) bool {
	s.mu.RLock()
	e := s.unknown[d]
	s.mu.RUnlock()
	return e != nil && e.epoch == epoch && e.asked.After(after)
}

// forget drops the entries that gone picks, and every query under way.
func (s *shard[T]) forget(gone func(modelgate.Digest, *entry[T]) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	for _, entries := range []map[modelgate.Digest]*entry[T]{s.known, s.unknown} {
		for d, e := range entries {
			if gone(d, e) {
				delete(entries, d)
			}
		}
	}
}

// each calls do with all that is known to be there.
func (s *shard[T]) each(do func(*entry[T])) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.known {
		do(e)
	}
}

// state is what is known of a secret, nil for nothing, and the generation of
// that.
func (s *shard[T]) state(d modelgate.Digest) (*entry[T], uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[d], s.generation
}

// flight names the query for a secret. A call that begins after something was
// forgotten joins no query from before.
func (s *shard[T]) flight(d modelgate.Digest) string {
	_, generation := s.state(d)
	return string(binary.BigEndian.AppendUint64(d[:], generation))
}

// keep stores what a query found, unless something was forgotten since it
// began in a generation.
func (s *shard[T]) keep(d modelgate.Digest, found *entry[T], generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation != s.generation {
		return
	}
	before := s.known[d]
	if found.value == nil {
		delete(s.known, d)
		put(s.unknown, d, found, s.unknownRoom)
		return
	}
	delete(s.unknown, d)
	if before != nil {
		found.use = before.use
	}
	put(s.known, d, found, s.knownRoom)
}

// put makes room by dropping the least recently used of a few entries, which
// is close to the least recently used of all and costs the same at any size.
func put[T any](entries map[modelgate.Digest]*entry[T], d modelgate.Digest, e *entry[T], room int) {
	if _, there := entries[d]; !there && len(entries) >= room {
		const sample = 8
		var victim modelgate.Digest
		var oldest *entry[T]
		looked := 0
		for candidate, entry := range entries {
			if oldest == nil || entry.use.before(oldest.use) {
				victim, oldest = candidate, entry
			}
			if looked++; looked == sample {
				break
			}
		}
		delete(entries, victim)
	}
	entries[d] = e
}
