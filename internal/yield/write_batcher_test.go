package yield

import (
	"runtime"
	"testing"
	"time"
)

// meter is the clocks of a process, of which a test says what it uses.
type meter struct {
	now  time.Time
	used time.Duration
}

// pass lets time pass, in which parts of a hundred of all processors are used.
func (m *meter) pass(d time.Duration, parts int) {
	m.now = m.now.Add(d)
	m.used += d * time.Duration(parts*runtime.GOMAXPROCS(0)) / 100
}

func (m *meter) batcher() *WriteBatcher {
	return newWriteBatcher(func() time.Time { return m.now }, func() time.Duration { return m.used })
}

func TestWriteBatcherWhileBusy(t *testing.T) {
	m := &meter{now: time.Unix(1_000_000_000, 0)}
	w := m.batcher()
	for _, step := range []struct {
		name  string
		long  time.Duration
		parts int
		busy  bool
	}{
		{"at first", 0, 0, false},
		{"all of a short time", window / 2, 100, false},
		{"all of a window", window / 2, 100, true},
		{"nothing, for less than a window", window - 1, 0, true},
		{"nothing for a window", 1, 0, false},
		{"three quarters", window, busyPercent, false},
		{"a little more", window, busyPercent + 1, true},
		{"a long rest", time.Hour, 1, false},
	} {
		m.pass(step.long, step.parts)
		for range clockWrites {
			w.BeforeWrite()
		}
		if got := w.busy.Load(); got != step.busy {
			t.Errorf("%s: busy %v, want %v", step.name, got, step.busy)
		}
	}
}

// TestWriteBatcherYields has a goroutine that can run go first where there is nothing
// to spare, and with BeforeChunk always.
func TestWriteBatcherYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m := &meter{now: time.Unix(1_000_000_000, 0)}
	w := m.batcher()
	// behind counts how often of a hundred times another goroutine runs during
	// wait. The scheduler takes the one that gave way first now and then.
	behind := func(wait func()) (n int) {
		for range 100 {
			ran := make(chan struct{})
			go close(ran)
			wait()
			select {
			case <-ran:
				n++
			default:
				<-ran
			}
		}
		return n
	}
	if n := behind(w.BeforeWrite); n > 10 {
		t.Errorf("with time to spare BeforeWrite waits %d times of 100", n)
	}
	if n := behind(w.BeforeChunk); n < 90 {
		t.Errorf("BeforeChunk waits %d times of 100", n)
	}
	m.pass(window, 100)
	for range clockWrites {
		w.BeforeWrite()
	}
	if n := behind(w.BeforeWrite); n < 90 {
		t.Errorf("without time to spare BeforeWrite waits %d times of 100", n)
	}
	w = nil
	if n := behind(w.BeforeWrite) + behind(w.BeforeChunk); n > 10 {
		t.Errorf("the nil WriteBatcher waits %d times of 200", n)
	}
}

func TestProcessTime(t *testing.T) {
	before := processTime()
	if before <= 0 {
		t.Fatalf("the process has used %v", before)
	}
	for end := time.Now().Add(10 * time.Second); processTime() == before; {
		if time.Now().After(end) {
			t.Fatal("work takes no time")
		}
	}
}

func BenchmarkBeforeWrite(b *testing.B) {
	w := NewWriteBatcher()
	for b.Loop() {
		w.BeforeWrite()
	}
}
