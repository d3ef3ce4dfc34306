package giveway

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// asks between two looks at the clock.
	asks = 32
	// window is how long the use of the processors is added up before it is
	// judged: calls come in bursts, in which there is never time to spare.
	window = 100 * time.Millisecond
	// sparing of 100 parts of the processors' time are used where there is some
	// to spare.
	sparing = 75
)

// WriteBatcher has those who are about to write to a socket do so one right after
// the other, for as long as the process uses all of its processors. To find who
// is to read asleep and to wake its processor takes longer than to write, and is
// then needed once for all of them. While there is time to spare, nobody waits
// for others: it would only take longer. The nil WriteBatcher has nobody wait. Safe
// for concurrent use.
type WriteBatcher struct {
	asked atomic.Uint32
	busy  atomic.Bool // in the window before

	mu   sync.Mutex
	from time.Time     // when the present window began
	used time.Duration // of the processors, by then

	now  func() time.Time
	time func() time.Duration // that the process has used of its processors
}

// NewWriteBatcher begins with time to spare.
func NewWriteBatcher() *WriteBatcher { return newWriteBatcher(time.Now, processTime) }

func newWriteBatcher(now func() time.Time, used func() time.Duration) *WriteBatcher {
	return &WriteBatcher{from: now(), used: used(), now: now, time: used}
}

// Pass returns after everybody has had a turn who can run. It is for pieces of
// a stream: those of many streams come together, and the next of the same one
// does not come sooner for it.
func (t *WriteBatcher) Pass() {
	if t != nil {
		runtime.Gosched()
	}
}

// Wait returns at once, or after everybody has had a turn who can run.
func (t *WriteBatcher) Wait() {
	if t == nil {
		return
	}
	if t.asked.Add(1)%asks == 0 {
		t.look()
	}
	if t.busy.Load() {
		runtime.Gosched()
	}
}

// look judges the window that has ended, if one has.
func (t *WriteBatcher) look() {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	now := t.now()
	long := now.Sub(t.from)
	if long < window {
		return
	}
	used := t.time()
	t.busy.Store(100*(used-t.used) > sparing*long*time.Duration(runtime.GOMAXPROCS(0)))
	t.from, t.used = now, used
}

// processTime is that of all threads of the process, 0 where the system does
// not say.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
