package web

import (
	"sync"

	"modelgate"
)

// freeBody is how much of each body takes no room: ordinary calls are not
// counted, and pass however full the room is.
const freeBody = 64 << 10

// Room bounds the memory that request bodies take together, and how much of
// it one owner may have, and keeps what some have left for others. Nil has no
// bound and keeps nothing. Safe for concurrent use.
type Room struct {
	total, each int64
	spare       spare

	mu    sync.Mutex
	taken int64
	owned map[string]int64
}

// NewRoom is a room for so many bytes, half of which one owner may have.
func NewRoom(total int64) *Room {
	return &Room{total: total, each: total / 2, owned: make(map[string]int64)}
}

// For is an owner's place in the room for one request's body. Leave it when
// the body is not needed any more.
func (r *Room) For(owner string) Place { return Place{room: r, owner: owner} }

// Place is the room that one body takes. Nil and the zero value have no bound.
// It belongs to one goroutine and is not to be copied once it is used.
type Place struct {
	room  *Room
	owner string
	has   int64
	lent  *memory // of the body; nil for none, and once it is handed on
}

// Hold makes sure of the room for a body that is kept more than once, of so
// many bytes in all. Errors are those of ReadBody that concern the room.
func (p *Place) Hold(size int64) error { return p.hold(size) }

// hold makes sure of the room for a body of so many bytes in all. Errors:
// modelgate.ErrRateLimited where the owner has its share, unavailable where
// there is no room left.
func (p *Place) hold(size int64) error {
	more := size - freeBody
	if p == nil || p.room == nil || more <= p.has {
		return nil
	}
	more -= p.has
	r := p.room
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
func (p *Place) Leave() {
	if p == nil || p.has == 0 {
		return
	}
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= p.has
	if r.owned[p.owner] -= p.has; r.owned[p.owner] == 0 {
		delete(r.owned, p.owner)
	}
	p.has = 0
}
