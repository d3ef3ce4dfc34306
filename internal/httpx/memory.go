package httpx

import (
	"math/bits"
	"sync"
)

// Bodies are read into pooled buffers of a power of two of bytes between these:
// to allocate and to clear 100 KB takes two thirds of the time that checking them
// takes, and makes the collector run for each few hundred of them. Longer ones are
// rare and left to the collector.
const (
	leastPower, mostPower = 12, 20
	leastBuffer           = 1 << leastPower
	mostBuffer            = 1 << mostPower
)

// buffer is what a body is read into.
type buffer struct{ b []byte }

// bufferPool has a pool for each size. The zero value is ready. Safe for
// concurrent use.
type bufferPool [mostPower - leastPower + 1]sync.Pool // of *buffer

// bufferSize is the size of the buffer for a body of so many bytes.
func bufferSize(size int64) int64 {
	if size > mostBuffer {
		return size
	}
	return max(leastBuffer, int64(1)<<bits.Len64(uint64(size-1)))
}

// pool is the one for a size that bufferSize returned; nil where buffers of
// that size are not pooled.
func (p *bufferPool) pool(size int64) *sync.Pool {
	if size > mostBuffer {
		return nil
	}
	return &p[bits.TrailingZeros64(uint64(size))-leastPower]
}

// grow reserves memory for a body that may have size bytes by now and moves the
// body into a buffer of that size. A buffer still holds the bytes of bodies
// before it.
func (r *Reservation) grow(size int64, body []byte) ([]byte, error) {
	size = bufferSize(size)
	if r == nil || r.quota == nil {
		return append(make([]byte, 0, size), body...), nil
	}
	if err := r.Reserve(size); err != nil {
		return nil, err
	}
	b := &buffer{}
	if pool := r.quota.buffers.pool(size); pool != nil {
		if pooled, ok := pool.Get().(*buffer); ok {
			b = pooled
		}
	}
	if b.b == nil {
		b.b = make([]byte, 0, size)
	}
	body = append(b.b[:0], body...)
	r.Recycle()
	r.buffer = b
	return body, nil
}

// Recycle returns the body's buffer to the pool. Nothing may refer to the body
// any more. A second time, and on nil, it does nothing.
func (r *Reservation) Recycle() {
	if r == nil || r.buffer == nil {
		return
	}
	if pool := r.quota.buffers.pool(int64(cap(r.buffer.b))); pool != nil {
		pool.Put(r.buffer)
	}
	r.buffer = nil
}
