package spool

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A reader that releases as it goes, beside many writers, gets every entry
// once, and those of each writer in the order they were written.
func TestReaderBesideWriters(t *testing.T) {
	t.Parallel()
	const writers, calls = 16, 400
	s := openDisk(t, newDisk(1), func(o *Options) { o.Fsync, o.Bound = Interval, 512<<10 })
	defer s.Close()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range calls {
				id := writerID(w, n)
				err := s.Begin(id, make([]byte, 100+w))
				for errors.Is(err, ErrFull) { // the reader is behind
					err = s.Begin(id, make([]byte, 100+w))
				}
				if err == nil {
					err = s.End(id, nil)
				}
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	r := s.Reader(Position{})
	var seen [writers]int
	var last Position
	for total := 0; total < 2*writers*calls; {
		entries, err := r.Next(t.Context(), 50)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) > 50 {
			t.Fatalf("%d entries, want at most 50", len(entries))
		}
		for _, e := range entries {
			if !last.Before(e.At) {
				t.Fatalf("entry at %v after that at %v", e.At, last)
			}
			last = e.At
			w, n := binary.LittleEndian.Uint64(e.ID[:8]), binary.LittleEndian.Uint64(e.ID[8:])
			if want := seen[w]; int(n) != want/2 || e.Type == Begin != (want%2 == 0) {
				t.Fatalf("writer %d: entry of type %d of call %d, want number %d", w, e.Type, n, want)
			}
			seen[w]++
		}
		total += len(entries)
		if err := s.Release(r.At()); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if entries, err := r.Poll(1); err != nil || len(entries) != 0 {
		t.Errorf("Poll at the end = %d entries, %v", len(entries), err)
	}
}

func writerID(w, n int) *[16]byte {
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], uint64(w))
	binary.LittleEndian.PutUint64(id[8:], uint64(n))
	return &id
}

// A reader begins wherever an earlier one stopped, in this life and the next.
func TestReaderBeginsAtAnyEntry(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	s := openDisk(t, d, nil)
	for i := range 90 {
		if err := s.Begin(entryID(i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if err := s.End(entryID(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	all := readAll(t, s)
	if all[len(all)-1].At.Segment < 2 {
		t.Fatal("the entries lie in one segment")
	}
	wantRest := func(s *Spool, from Position, want []Entry) {
		t.Helper()
		entries, err := s.Reader(from).Poll(1)
		switch {
		case err != nil:
			t.Errorf("Poll at %v: %v", from, err)
		case len(want) == 0 && len(entries) != 0:
			t.Errorf("entry at %v from %v on, want none", entries[0].At, from)
		case len(want) > 0 && (len(entries) != 1 || entries[0].At != want[0].At || entries[0].ID != want[0].ID):
			t.Errorf("%d entries from %v on, want the one at %v", len(entries), from, want[0].At)
		}
	}
	for i, e := range all {
		wantRest(s, e.At, all[i:])
		wantRest(s, e.Next, all[i+1:])
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openDisk(t, d, nil)
	defer s.Close()
	for i, e := range all {
		wantRest(s, e.At, all[i:])
		wantRest(s, e.Next, all[i+1:])
	}
	if err := s.Release(Position{2, 0}); err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		if e.At.Segment == 2 {
			wantRest(s, Position{}, all[i:])
			wantRest(s, all[3].At, all[i:]) // in the segment that is gone
			break
		}
	}
}

// Lives without an entry leave empty segments; they hide nothing.
func TestEmptyLivesHideNothing(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	for life := range 12 {
		s := openDisk(t, d, nil)
		if life%4 == 1 {
			if err := s.Begin(entryID(life), nil); err != nil {
				t.Fatal(err)
			}
			// Torn at once: no damage, whatever empty segments follow.
			d.mu.Lock()
			node := d.files[fileName(s.Tail().Segment)]
			for i := range int64(40) {
				node.now[s.segments[len(s.segments)-1].end+i] = 0xEE
			}
			d.mu.Unlock()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openDisk(t, d, nil)
	defer s.Close()
	got := readAll(t, s)
	if len(got) != 3 || got[0].ID != *entryID(1) || got[1].ID != *entryID(5) || got[2].ID != *entryID(9) {
		t.Errorf("%d entries, want those of lives 1, 5 and 9", len(got))
	}
	if n := s.Stats().Quarantined; n != 0 {
		t.Errorf("%d places quarantined, want 0", n)
	}
	if got[2].Next == s.Start() || !got[2].At.Before(s.Start()) {
		t.Errorf("this life begins at %v, the last entry ends at %v", s.Start(), got[2].Next)
	}
}

// In the bubble every goroutine must have ended with the test, and no timer
// may start one later.
func TestCloseLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	for _, fsync := range []Fsync{Always, Interval} {
		synctest.Test(t, func(t *testing.T) {
			s := openDisk(t, newDisk(1), func(o *Options) { o.Fsync = fsync })
			if err := s.Begin(entryID(1), nil); err != nil {
				t.Fatal(err)
			}
			if err := s.End(entryID(1), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * syncInterval)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.Begin(entryID(2), nil); !errors.Is(err, ErrClosed) {
				t.Errorf("Begin after Close: %v, want ErrClosed", err)
			}
			if err := s.End(entryID(1), nil); !errors.Is(err, ErrClosed) {
				t.Errorf("End after Close: %v, want ErrClosed", err)
			}
		})
	}
}

func TestFailureLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"sync", "write"} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(1)
			var fatal atomic.Int64
			s := openDisk(t, d, func(o *Options) { o.Fatal = func(error) { fatal.Add(1) } })
			if err := s.Begin(entryID(1), nil); err != nil {
				t.Fatal(err)
			}
			d.faulty(op, syscall.EIO)
			if err := s.End(entryID(1), nil); !errors.Is(err, syscall.EIO) {
				t.Errorf("End with a failing %s: %v, want EIO", op, err)
			}
			if err := s.Close(); !errors.Is(err, syscall.EIO) {
				t.Errorf("Close with a failing %s: %v, want EIO", op, err)
			}
			if n := fatal.Load(); n != 1 {
				t.Errorf("Fatal was called %d times with a failing %s, want once", n, op)
			}
		})
	}
}

// An idle interval spool syncs nothing, and what is written once a tick.
func TestIntervalSyncsOncePerTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openDisk(t, newDisk(1), func(o *Options) { o.Fsync = Interval })
		defer s.Close()
		time.Sleep(10*syncInterval + syncInterval/2) // between two ticks
		idle := s.Stats().Fsyncs
		for i := range 50 {
			if err := s.Begin(entryID(i), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * syncInterval)
		if n := s.Stats().Fsyncs; idle != 0 || n != 1 {
			t.Errorf("%d syncs while idle and %d after writing, want 0 and 1", idle, n)
		}
	})
}

// Whoever waits for room when the spool closes is told so.
func TestCloseWakesWhoWaitsForRoom(t *testing.T) {
	t.Parallel()
	g := newCreateGate(newDisk(1))
	s, err := Open(largeSegments(g))
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if err := s.Begin(entryID(0), make([]byte, sixth)); err != nil {
			t.Fatal(err)
		}
	}
	<-g.entered
	refused := make(chan error, 1)
	go func() { refused <- s.Begin(entryID(1), make([]byte, sixth)) }()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if err := <-refused; !errors.Is(err, ErrClosed) {
		t.Errorf("Begin while closing: %v, want ErrClosed", err)
	}
	g.leave <- nil
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}
