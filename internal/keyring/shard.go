package keyring

import (
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
)

const shardCount = 64

// entry is what one query found out. It is never changed but for its two
// flags; a refresh puts another in its place.
type entry struct {
	caller *modelgate.Caller // nil: the database knows no such key
	asked  time.Time         // before the query was sent
	epoch  uint64            // before the query was sent
	ahead  atomic.Bool       // a refresh beside a call was asked for
	use    *use              // outlives refreshes
}

// shard holds the keys whose digests begin alike. mu guards everything.
type shard struct {
	mu      sync.RWMutex
	known   map[modelgate.Digest]*entry
	unknown map[modelgate.Digest]*entry
	flights map[modelgate.Digest]*flight
	// generation counts what was forgotten: a query that began in another
	// one may have read a state from before and is not kept.
	generation uint64

	knownRoom, unknownRoom int
}

func (s *shard) init(known, unknown int) {
	s.known = make(map[modelgate.Digest]*entry)
	s.unknown = make(map[modelgate.Digest]*entry)
	s.flights = make(map[modelgate.Digest]*flight)
	s.knownRoom = max(1, known/shardCount)
	s.unknownRoom = max(1, unknown/shardCount)
}

func (k *Keyring) shard(d modelgate.Digest) *shard { return &k.shards[d[0]%shardCount] }

func (s *shard) get(d modelgate.Digest) *entry {
	s.mu.RLock()
	e := s.known[d]
	s.mu.RUnlock()
	return e
}

// unknownSince reports whether the key was found unknown after an instant
// and in this epoch.
func (s *shard) unknownSince(d modelgate.Digest, after time.Time, epoch uint64) bool {
	s.mu.RLock()
	e := s.unknown[d]
	s.mu.RUnlock()
	return e != nil && e.epoch == epoch && e.asked.After(after)
}

// forget drops the entries that gone picks, and every query under way.
func (s *shard) forget(gone func(modelgate.Digest, *entry) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	clear(s.flights)
	for _, entries := range []map[modelgate.Digest]*entry{s.known, s.unknown} {
		for d, e := range entries {
			if gone(d, e) {
				delete(entries, d)
			}
		}
	}
}

// keep stores what a query found, unless something was forgotten since it
// began, and ends its flight.
func (s *shard) keep(d modelgate.Digest, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[d] == f {
		delete(s.flights, d)
	}
	if f.err != nil || f.generation != s.generation {
		return
	}
	before := s.known[d]
	if f.found.caller == nil {
		delete(s.known, d)
		put(s.unknown, d, f.found, s.unknownRoom)
		return
	}
	delete(s.unknown, d)
	if before != nil {
		f.found.use = before.use
	}
	put(s.known, d, f.found, s.knownRoom)
}

// put makes room by dropping the least recently used of a few entries, which
// is close to the least recently used of all and costs the same at any size.
func put(entries map[modelgate.Digest]*entry, d modelgate.Digest, e *entry, room int) {
	if _, there := entries[d]; !there && len(entries) >= room {
		const sample = 8
		var victim modelgate.Digest
		var oldest *entry
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
