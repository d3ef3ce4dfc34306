package httpx

import (
	"math/bits"
	"sync"
)

// Bodies are read into memory of a power of two of bytes between these, which
// others were read into before them: to allocate and to clear 100 KB takes two
// thirds of what it takes to check them, and makes the collector run for each few
// hundred of them. What is longer is rare and left to the collector.
const (
	leastPower, mostPower = 12, 20
	leastMemory           = 1 << leastPower
	mostMemory            = 1 << mostPower
)

// memory is what a body is read into.
type memory struct{ b []byte }

// spare is memory that nobody uses, by size. The zero value is ready. Safe for
// concurrent use.
type spare [mostPower - leastPower + 1]sync.Pool // of *memory

// memorySize is how much memory a body of so many bytes gets.
func memorySize(size int64) int64 {
	if size > mostMemory {
		return size
	}
	return max(leastMemory, int64(1)<<bits.Len64(uint64(size-1)))
}

// pool is where memory of the size, one of memorySize, is kept; nil for nowhere.
func (s *spare) pool(size int64) *sync.Pool {
	if size > mostMemory {
		return nil
	}
	return &s[bits.TrailingZeros64(uint64(size))-leastPower]
}

// take is memory for so many bytes; size is one of memorySize. What other bodies
// have left in it is still there.
func (s *spare) take(size int64) *memory {
	if p := s.pool(size); p != nil {
		if m, ok := p.Get().(*memory); ok {
			return m
		}
	}
	return &memory{make([]byte, 0, size)}
}

// keep is for memory that is not used any more.
func (s *spare) keep(m *memory) {
	if p := s.pool(int64(cap(m.b))); p != nil {
		p.Put(m)
	}
}

// lend makes room for a body that may have so many bytes by now, in place of
// what it was given before, and moves it there.
func (p *Reservation) lend(size int64, body []byte) ([]byte, error) {
	size = memorySize(size)
	if p == nil || p.room == nil {
		return append(make([]byte, 0, size), body...), nil
	}
	if err := p.hold(size); err != nil {
		return nil, err
	}
	m := p.room.spare.take(size)
	body = append(m.b[:0], body...)
	p.Recycle()
	p.lent = m
	return body, nil
}

// Recycle lets other bodies be read into the memory of the one that was read in
// this place. Nobody may refer to it any more. A second time, and of nil, it does
// nothing.
func (p *Reservation) Recycle() {
	if p == nil || p.lent == nil {
		return
	}
	p.room.spare.keep(p.lent)
	p.lent = nil
}
