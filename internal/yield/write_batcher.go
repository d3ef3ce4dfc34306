package yield

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// clockWrites is how many writes lie between two looks at the clock.
	clockWrites = 32
	// window is over how long the use of the processors is measured: calls come in
	// bursts, during which the processors are always busy.
	window = 100 * time.Millisecond
	// busyPercent of the processors' time must be in use for the process to count
	// as busy.
	busyPercent = 75
)

// WriteBatcher lets goroutines that are about to write to a socket write one right
// after another while the process uses all of its processors. Finding the reader
// asleep and waking its processor costs more than the write, and is then needed
// once for all of them. While there is processor time to spare nobody waits for
// others. With a nil WriteBatcher nobody ever waits. Safe for concurrent use.
type WriteBatcher struct {
	writes atomic.Uint32
	busy   atomic.Bool // in the last window

	mu    sync.Mutex
	began time.Time     // of the present window
	used  time.Duration // of the processors, by then

	now  func() time.Time
	time func() time.Duration // that the process has used of its processors
}

// NewWriteBatcher returns one for which the process is not busy.
func NewWriteBatcher() *WriteBatcher { return newWriteBatcher(time.Now, processTime) }

func newWriteBatcher(now func() time.Time, used func() time.Duration) *WriteBatcher {
	return &WriteBatcher{began: now(), used: used(), now: now, time: used}
}

// BeforeChunk yields to every runnable goroutine. It is for chunks of a stream:
// those of many streams come together, and writing one at once does not make the
// next one come sooner.
func (b *WriteBatcher) BeforeChunk() {
	if b != nil {
		runtime.Gosched()
	}
}

// BeforeWrite yields to every runnable goroutine while the process is busy.
func (b *WriteBatcher) BeforeWrite() {
	if b == nil {
		return
	}
	if b.writes.Add(1)%clockWrites == 0 {
		b.measure()
	}
	if b.busy.Load() {
		runtime.Gosched()
	}
}

// measure judges the window if it is over, and begins the next one.
func (b *WriteBatcher) measure() {
	if !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	now := b.now()
	long := now.Sub(b.began)
	if long < window {
		return
	}
	used := b.time()
	b.busy.Store(100*(used-b.used) > busyPercent*long*time.Duration(runtime.GOMAXPROCS(0)))
	b.began, b.used = now, used
}

// processTime is the processor time of all threads of the process, 0 if the system
// does not say.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
