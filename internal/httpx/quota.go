package httpx

import (
	"sync"
	"sync/atomic"

	"modelgate"
)

// freeBody is how many bytes of each body are not counted for its owner, so
// that ordinary calls pass however many large ones there are. All of these
// together are bounded too, past which they are counted like the rest.
const freeBody = 64 << 10

// MemoryQuota bounds the memory that request bodies take together, and the share
// of one owner. It also pools the buffers they are read into. Nil has no bound
// and no pool. Safe for concurrent use.
type MemoryQuota struct {
	total, each int64
	free        int64        // for the first freeBody bytes of all bodies
	freeTaken   atomic.Int64 // of that
	buffers     bufferPool

	mu    sync.Mutex
	taken int64
	owned map[string]int64
}

// NewMemoryQuota makes a quota of total bytes, and half as many for the first
// freeBody bytes of all bodies. One owner may have half of it, or enough to hold
// the largest body twice.
func NewMemoryQuota(total, largest int64) *MemoryQuota {
	return &MemoryQuota{total: total, each: max(total/2, min(total, 2*largest)), free: total / 2, owned: make(map[string]int64)}
}

// For begins an owner's reservation for one request's body. Release it when
// the body is not needed any more.
func (q *MemoryQuota) For(owner string) Reservation { return Reservation{quota: q, owner: owner} }

// Reservation is the memory that one body takes. Nil and the zero value have no
// bound. It belongs to one goroutine and must not be copied once it is used.
type Reservation struct {
	quota  *MemoryQuota
	owner  string
	free   int64   // of the quota's free
	has    int64   // counted for the owner
	buffer *buffer // of the body; nil for none, and once it is recycled
}

// Reserve makes the reservation at least size bytes. Errors:
// modelgate.ErrRateLimited where the owner has its share, unavailable where
// all memory for bodies is taken.
func (r *Reservation) Reserve(size int64) error {
	if r == nil || r.quota == nil || size <= r.free+r.has {
		return nil
	}
	q := r.quota
	if want := min(size, freeBody) - r.free; want > 0 && r.has == 0 {
		if q.freeTaken.Add(want) <= q.free {
			r.free += want
		} else {
			q.freeTaken.Add(-want)
		}
	}
	more := size - r.free - r.has
	if more <= 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.owned[r.owner]+more > q.each:
		return modelgate.ErrRateLimited
	case q.taken+more > q.total:
		return modelgate.Errorf(modelgate.Unavailable, "too many large requests at once; retry shortly")
	}
	q.taken += more
	q.owned[r.owner] += more
	r.has += more
	return nil
}

// Release gives the memory back to the quota; a second time does nothing.
func (r *Reservation) Release() {
	if r == nil || r.quota == nil {
		return
	}
	q := r.quota
	q.freeTaken.Add(-r.free)
	r.free = 0
	if r.has == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken -= r.has
	if q.owned[r.owner] -= r.has; q.owned[r.owner] == 0 {
		delete(q.owned, r.owner)
	}
	r.has = 0
}
