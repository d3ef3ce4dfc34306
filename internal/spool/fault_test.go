package spool

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func openDisk(t *testing.T, d *disk, change func(*Options)) *Spool {
	t.Helper()
	o := Options{
		FS: d, Log: slog.New(slog.DiscardHandler), Segment: 64 << 10, Bound: 1 << 20,
		NewInstance: func() string { return "instance-1" },
	}
	if change != nil {
		change(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

// faulty makes every operation of a kind fail from now on; nil heals it.
func (d *disk) faulty(op string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = nil
	if err != nil {
		d.fail = func(o, _ string) error {
			if o == op {
				return err
			}
			return nil
		}
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	fatal := make(chan error, 10)
	s := openDisk(t, d, func(o *Options) { o.Fatal = func(err error) { fatal <- err } })
	defer s.Close()
	for i := range 20 {
		if err := s.Begin(entryID(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(entryID(0), nil); err != nil {
		t.Fatal(err)
	}
	d.faulty("sync", syscall.EIO)
	failures := make(chan error, 19)
	for i := range 19 {
		go func() { failures <- s.End(entryID(i+1), nil) }()
	}
	for range 19 {
		if err := <-failures; !errors.Is(err, syscall.EIO) {
			t.Errorf("End with a failing sync: %v, want EIO", err)
		}
	}
	if err := <-fatal; !errors.Is(err, syscall.EIO) {
		t.Errorf("Fatal(%v), want EIO", err)
	}
	d.faulty("", nil)
	if err := s.Begin(entryID(99), nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("Begin after a failed sync: %v, want EIO", err)
	}
	if len(fatal) != 0 {
		t.Errorf("Fatal was called %d times more", len(fatal))
	}
}

func TestFullDiskRefusesCallsAndKeepsEnds(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	s := openDisk(t, d, nil)
	defer s.Close()
	d.faulty("create", syscall.ENOSPC)
	begun := 0
	for ; ; begun++ {
		before := s.Tail()
		err := s.Begin(entryID(begun), make([]byte, 500))
		if errors.Is(err, ErrFull) {
			if s.Tail() != before {
				t.Error("a refused Begin wrote something")
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if begun < 5 {
		t.Fatalf("only %d calls fit", begun)
	}
	for i := range begun {
		s.Mark(entryID(i), make([]byte, 500))
	}
	for i := range begun {
		if err := s.End(entryID(i), make([]byte, maxEnd)); err != nil {
			t.Fatalf("End %d of %d on a full disk: %v", i, begun, err)
		}
	}
	d.faulty("", nil)
	if err := s.Begin(entryID(begun), nil); err != nil {
		t.Errorf("Begin after there is room again: %v", err)
	}
}

// A segment whose header cannot be written must not stand in the way of the
// next attempt.
func TestFailedSegmentIsTriedAgain(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	s := openDisk(t, d, nil)
	defer s.Close()
	fill(t, s)
	d.faulty("write", syscall.EIO)
	if err := s.Begin(entryID(1), make([]byte, 500)); err == nil {
		t.Fatal("Begin succeeded though nothing can be written")
	}
	d.faulty("", nil)
	if err := s.Begin(entryID(2), make([]byte, 500)); err != nil {
		t.Errorf("Begin after the disk is well again: %v", err)
	}
}

// fill appends ended calls until the current segment has less room than a
// BEGIN needs, with no spare behind it.
func fill(t *testing.T, s *Spool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	seg := s.segments[len(s.segments)-1]
	for seg.limit-seg.end > endRoom {
		if err := s.append(Mark, entryID(0), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.spares) > 0 {
		t.Fatal("there is a spare segment already")
	}
}

// With the bound reached and the database away, a restart must still come up
// to ship what is there.
func TestFullSpoolOpens(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	for life := range 40 { // each takes a new segment; the bound is 16
		s, err := Open(Options{
			FS: d, Log: slog.New(slog.DiscardHandler), Segment: 64 << 10, Bound: 1 << 20,
			NewInstance: func() string { return "instance-1" },
		})
		if err != nil {
			t.Fatalf("Open of life %d: %v", life, err)
		}
		err = s.Begin(entryID(life), nil)
		if err != nil && !errors.Is(err, ErrFull) {
			t.Fatalf("Begin: %v", err)
		}
		if life == 39 {
			r := s.Reader(Position{})
			for {
				entries, err := r.Poll(100)
				if err != nil {
					t.Fatal(err)
				}
				if len(entries) == 0 {
					break
				}
			}
			if err := s.Release(r.At()); err != nil {
				t.Fatal(err)
			}
			if err := s.Begin(entryID(1000), nil); err != nil {
				t.Errorf("Begin after all was shipped: %v", err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A directory whose id cannot be read keeps it: a new one would detach the
// entries from what the database knows of them.
func TestUnreadableInstanceIsNotReplaced(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	if err := openDisk(t, d, nil).Close(); err != nil {
		t.Fatal(err)
	}
	d.faulty("read", syscall.EIO)
	s, err := Open(Options{FS: d, Log: slog.New(slog.DiscardHandler), NewInstance: func() string { return "instance-2" }})
	if err == nil {
		s.Close()
		t.Fatalf("Open without a readable id gave the directory the id %s", s.Instance())
	}
	d.faulty("", nil)
	again := openDisk(t, d, nil)
	defer again.Close()
	if again.Instance() != "instance-1" {
		t.Errorf("instance %q, want instance-1", again.Instance())
	}
}

// syncGate lets a test hold a sync of one file open.
type syncGate struct {
	FS
	name    string
	entered chan struct{}
	leave   chan struct{}
	closed  atomic.Bool
}

type gatedFile struct {
	File
	gate *syncGate
}

func (g *syncGate) Create(name string, size int64) (File, error) {
	f, err := g.FS.Create(name, size)
	if err == nil && name == g.name {
		f = &gatedFile{f, g}
	}
	return f, err
}

func (f *gatedFile) Sync() error {
	select {
	case f.gate.entered <- struct{}{}:
		<-f.gate.leave
	default:
	}
	if f.gate.closed.Load() {
		return fs.ErrClosed
	}
	return f.File.Sync()
}

func (f *gatedFile) Close() error {
	f.gate.closed.Store(true)
	return f.File.Close()
}

// A shipper may be done with a segment before its sync is: entries are read
// as soon as they are written.
func TestReleaseDuringSync(t *testing.T) {
	t.Parallel()
	g := &syncGate{FS: newDisk(1), name: fileName(1), entered: make(chan struct{}), leave: make(chan struct{})}
	fatal := make(chan error, 1)
	s, err := Open(Options{
		FS: g, Log: slog.New(slog.DiscardHandler), Segment: 64 << 10, Bound: 1 << 20,
		NewInstance: func() string { return "instance-1" }, Fatal: func(err error) { fatal <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin(entryID(1), nil); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.End(entryID(1), nil) }()
	<-g.entered // the sync of the first segment is under way
	for i := range 70 {
		if err := s.Begin(entryID(100+i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
	}
	if s.Tail().Segment < 2 {
		t.Fatal("the spool did not go on to a second segment")
	}
	if err := s.Release(s.Tail()); err != nil {
		t.Fatal(err)
	}
	close(g.leave)
	if err := <-ended; err != nil {
		t.Errorf("End: %v", err)
	}
	select {
	case err := <-fatal:
		t.Errorf("Fatal(%v) though the disk is well", err)
	default:
	}
}

func TestReaderOfClosedSpoolStops(t *testing.T) {
	t.Parallel()
	s := openDisk(t, newDisk(1), nil)
	if err := s.Begin(entryID(1), nil); err != nil {
		t.Fatal(err)
	}
	r := s.Reader(Position{})
	if _, err := r.Next(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	stops(t, r)
}

// Booked progress may lie past what a power cut left.
func TestReaderPastTheEndWaits(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	if err := openDisk(t, d, nil).Close(); err != nil {
		t.Fatal(err)
	}
	s := openDisk(t, d, func(o *Options) { o.ReadOnly = true })
	defer s.Close()
	if err := s.Begin(entryID(1), nil); err == nil {
		t.Error("Begin in a directory that is open for reading only succeeded")
	}
	at := s.Tail()
	at.Offset += 1000
	stops(t, s.Reader(at))
}

// stops fails unless Next ends with its context.
func stops(t *testing.T, r *Reader) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() {
		_, err := r.Next(ctx, 10)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("Next returned no error, and no entries")
		}
	case <-time.After(5 * time.Second):
		t.Error("Next did not end with its context")
	}
}

// Nobody asks for these syncs: with interval for none, with always for that
// of a BEGIN.
func TestEntriesAreSyncedUnasked(t *testing.T) {
	t.Parallel()
	for _, fsync := range []Fsync{Always, Interval} {
		t.Run(string(fsync), func(t *testing.T) {
			t.Parallel()
			syncedUnasked(t, fsync)
		})
	}
}

func syncedUnasked(t *testing.T, fsync Fsync) {
	d := newDisk(1)
	synced := make(chan struct{}, 100)
	s := openDisk(t, d, func(o *Options) { o.Fsync = fsync })
	defer s.Close()
	d.mu.Lock()
	d.fail = func(op, name string) error {
		if op == "sync" && strings.HasSuffix(name, suffix) {
			synced <- struct{}{}
		}
		return nil
	}
	d.mu.Unlock()
	for i := range 3 {
		if err := s.Begin(entryID(i), nil); err != nil {
			t.Fatal(err)
		}
		if fsync == Interval {
			if err := s.End(entryID(i), nil); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-synced:
		case <-time.After(10 * time.Second):
			t.Fatal("no sync within the interval")
		}
	}
}
