package spool

import (
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"testing"
)

func optionsOn(fs FS) Options {
	return Options{
		FS: fs, Log: slog.New(slog.DiscardHandler), Segment: 64 << 10, Bound: 1 << 20,
		NewInstance: func() string { return "instance-1" }, Fatal: func(error) {},
	}
}

// createGate holds back every Create but the first until told how it ends.
type createGate struct {
	FS
	mu      sync.Mutex
	opened  bool
	entered chan struct{}
	leave   chan error
}

func newCreateGate(fs FS) *createGate {
	return &createGate{FS: fs, entered: make(chan struct{}, 100), leave: make(chan error)}
}

func (g *createGate) Create(name string, size int64) (File, error) {
	g.mu.Lock()
	first := !g.opened
	g.opened = true
	g.mu.Unlock()
	if !first {
		g.entered <- struct{}{}
		if err := <-g.leave; err != nil {
			return nil, err
		}
	}
	return g.FS.Create(name, size)
}

// While the disk takes its time over a new segment, calls go on in the old
// one, and are synced.
func TestAllocationStallsNobody(t *testing.T) {
	t.Parallel()
	g := newCreateGate(newDisk(1))
	s, err := Open(optionsOn(g))
	if err != nil {
		t.Fatal(err)
	}
	allocating := false
	for i := range 55 {
		if err := s.Begin(entryID(i), make([]byte, 900)); err != nil {
			t.Fatal(err)
		}
		if !allocating && s.Behind(Position{1, 0}) > 40<<10 {
			<-g.entered
			allocating = true
		}
		if err := s.End(entryID(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if !allocating {
		t.Fatal("no segment was asked for in time")
	}
	g.leave <- nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// largeSegments are options with segments that sixth fills.
func largeSegments(fs FS) Options {
	o := optionsOn(fs)
	o.Segment = 128 << 10
	return o
}

// sixth is the payload of a BEGIN of which six fill a segment of 128 KiB, with
// the room for their ENDs.
const sixth = (128<<10)/6 - int(endRoom) - 100

// Many calls that wait for one new segment get one, and all of them start.
func TestOneAllocationServesAllWhoWait(t *testing.T) {
	t.Parallel()
	g := newCreateGate(newDisk(1))
	s, err := Open(largeSegments(g))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 6 {
		if err := s.Begin(entryID(0), make([]byte, sixth)); err != nil {
			t.Fatal(err)
		}
	}
	failures := make(chan error, 4)
	for i := range cap(failures) {
		go func() { failures <- s.Begin(entryID(1+i), make([]byte, 500)) }()
	}
	<-g.entered
	g.leave <- nil
	for range cap(failures) {
		if err := <-failures; err != nil {
			t.Errorf("Begin: %v", err)
		}
	}
	if len(g.entered) != 0 {
		t.Error("a second segment is being allocated for calls that needed one")
	}
}

func TestFailedAllocationRefusesAllWhoWait(t *testing.T) {
	t.Parallel()
	g := newCreateGate(newDisk(1))
	s, err := Open(largeSegments(g))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 6 {
		if err := s.Begin(entryID(0), make([]byte, sixth)); err != nil {
			t.Fatal(err)
		}
	}
	<-g.entered // more than half is used: a spare segment is asked for already
	before := s.Tail()
	failed := make(chan error, 1)
	go func() { failed <- s.Begin(entryID(1), make([]byte, sixth)) }()
	g.leave <- syscall.ENOSPC
	select {
	case err = <-failed:
	case <-g.entered: // the call came after that attempt and asked for its own
		g.leave <- syscall.ENOSPC
		err = <-failed
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("Begin with a full disk: %v, want ErrFull", err)
	}
	if s.Tail() != before {
		t.Error("a refused Begin wrote something")
	}
	for range 3 {
		if err := s.End(entryID(0), make([]byte, maxEnd)); err != nil {
			t.Errorf("End on a full disk: %v", err)
		}
	}
	go func() { failed <- s.Begin(entryID(2), make([]byte, sixth)) }()
	<-g.entered
	g.leave <- nil
	if err := <-failed; err != nil {
		t.Errorf("Begin after there is room again: %v", err)
	}
}

// The room of open calls may be more than a segment and its spare.
func TestManyOpenCallsSpanSegments(t *testing.T) {
	t.Parallel()
	s, err := Open(optionsOn(newDisk(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const calls = 60 // a segment has room for 16 ENDs
	for i := range calls {
		if err := s.Begin(entryID(i), nil); err != nil {
			t.Fatalf("Begin %d: %v", i, err)
		}
	}
	for i := range calls {
		if err := s.End(entryID(i), make([]byte, maxEnd)); err != nil {
			t.Fatalf("End %d: %v", i, err)
		}
	}
	if st := s.Stats(); st.Open != 0 {
		t.Errorf("%d calls open, want 0", st.Open)
	}
}

func TestTooSmallSizesAreRefused(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][2]int64{{32 << 10, 1 << 20}, {64 << 10, 100 << 10}} {
		o := optionsOn(newDisk(1))
		o.Segment, o.Bound = sizes[0], sizes[1]
		if s, err := Open(o); err == nil {
			s.Close()
			t.Errorf("Open with segments of %d in %d bytes succeeded", o.Segment, o.Bound)
		}
	}
}

// With the bound reached calls are refused until something is released, and
// then go on.
func TestBoundReleased(t *testing.T) {
	t.Parallel()
	s := openDisk(t, newDisk(1), func(o *Options) { o.Bound = 256 << 10 })
	defer s.Close()
	for round := range 5 {
		n := 0
		for ; ; n++ {
			err := s.Begin(entryID(n), make([]byte, 2000))
			if errors.Is(err, ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.End(entryID(n), nil); err != nil {
				t.Fatal(err)
			}
		}
		if n < 40 {
			t.Fatalf("round %d: only %d calls until the bound", round, n)
		}
		if got := s.Stats().Bytes; got > 256<<10 {
			t.Fatalf("round %d: %d bytes allocated, beyond the bound", round, got)
		}
		if err := s.Release(s.Tail()); err != nil {
			t.Fatal(err)
		}
	}
}

// A spare that the bound did not allow is made as soon as something is
// released, not when a call needs it.
func TestReleaseLetsASpareBeMade(t *testing.T) {
	t.Parallel()
	g := newCreateGate(newDisk(1))
	o := optionsOn(g)
	o.Bound = 2 * o.Segment
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	call := func() {
		t.Helper()
		if err := s.Begin(entryID(1), make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
		if err := s.End(entryID(1), nil); err != nil {
			t.Fatal(err)
		}
	}
	for s.Tail().Segment == 1 && s.Tail().Offset < 40<<10 {
		call()
	}
	<-g.entered
	g.leave <- nil
	for s.Tail().Segment < 2 || s.Tail().Offset < 40<<10 {
		call()
	}
	s.mu.Lock()
	for s.noRoom == nil { // the attempt that the bound forbids
		s.roomMade.Wait()
	}
	s.mu.Unlock()
	if err := s.Release(s.Tail()); err != nil {
		t.Fatal(err)
	}
	s.Mark(entryID(1), nil)
	<-g.entered
	g.leave <- nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
