package httpx

import (
	"sync"
	"sync/atomic"

	"modelgate"
)

// freeBody is how much of each body is not counted for its owner: ordinary
// calls pass however full the room is. All of these together have a bound too,
// past which they are counted like the rest.
const freeBody = 64 << 10

// MemoryQuota bounds the memory that request bodies take together, and how much of
// it one owner may have, and keeps what some have left for others. Nil has no
// bound and keeps nothing. Safe for concurrent use.
type MemoryQuota struct {
	total, each int64
	free        int64        // for the first freeBody bytes of all bodies
	freeTaken   atomic.Int64 // of that
	spare       spare

	mu    sync.Mutex
	taken int64
	owned map[string]int64
}

// NewRoom is a room for so many bytes, and half as many for the beginnings of
// all bodies. One owner may have half of it, or what the largest body takes that
// is kept twice.
func NewRoom(total, largest int64) *MemoryQuota {
	return &MemoryQuota{total: total, each: max(total/2, min(total, 2*largest)), free: total / 2, owned: make(map[string]int64)}
}

// For is an owner's place in the room for one request's body. Leave it when
// the body is not needed any more.
func (r *MemoryQuota) For(owner string) Reservation { return Reservation{room: r, owner: owner} }

// Reservation is the room that one body takes. Nil and the zero value have no bound.
// It belongs to one goroutine and is not to be copied once it is used.
type Reservation struct {
	room  *MemoryQuota
	owner string
	free  int64   // of the room's free
	has   int64   // counted for the owner
	lent  *memory // of the body; nil for none, and once it is handed on
}

// Hold makes sure of the room for a body that is kept more than once, of so
// many bytes in all. Errors are those of ReadBody that concern the room.
func (p *Reservation) Hold(size int64) error { return p.hold(size) }

// hold makes sure of the room for a body of so many bytes in all. Errors:
// modelgate.ErrRateLimited where the owner has its share, unavailable where
// there is no room left.
func (p *Reservation) hold(size int64) error {
	if p == nil || p.room == nil || size <= p.free+p.has {
		return nil
	}
	r := p.room
	if want := min(size, freeBody) - p.free; want > 0 && p.has == 0 {
		if r.freeTaken.Add(want) <= r.free {
			p.free += want
		} else {
			r.freeTaken.Add(-want)
		}
	}
	more := size - p.free - p.has
	if more <= 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.owned[p.owner]+more > r.each:
		return modelgate.ErrRateLimited
	case r.taken+more > r.total:
		return modelgate.Errorf(modelgate.Unavailable, "too many large requests at once; retry shortly")
	}
	r.taken += more
	r.owned[p.owner] += more
	p.has += more
	return nil
}

// Leave gives the room back; a second time does nothing.
func (p *Reservation) Leave() {
	if p == nil || p.room == nil {
		return
	}
	r := p.room
	if p.free > 0 {
		r.freeTaken.Add(-p.free)
		p.free = 0
	}
	if p.has == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= p.has
	if r.owned[p.owner] -= p.has; r.owned[p.owner] == 0 {
		delete(r.owned, p.owner)
	}
	p.has = 0
}
