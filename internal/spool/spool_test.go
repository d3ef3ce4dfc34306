package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
)

func openDir(t *testing.T, dir string, change func(*Options)) *Spool {
	t.Helper()
	o := Options{FS: Dir(dir), Log: slog.New(slog.DiscardHandler), NewInstance: func() string { return "instance-1" }, Segment: 1 << 20}
	if change != nil {
		change(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func entryID(n int) *[16]byte {
	var id [16]byte
	copy(id[:], fmt.Sprintf("%016d", n))
	return &id
}

func readAll(t *testing.T, s *Spool) []Entry {
	t.Helper()
	r := s.Reader(Position{})
	var all []Entry
	for {
		entries, err := r.Poll(100)
		if err != nil {
			t.Fatalf("Poll: %v", err)
		}
		if len(entries) == 0 {
			return all
		}
		for _, e := range entries {
			e.Payload = append([]byte(nil), e.Payload...)
			all = append(all, e)
		}
	}
}

func TestEntriesSurviveReopening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir, nil)
	const calls = 3000 // several segments
	for i := range calls {
		if err := s.Begin(entryID(i), make([]byte, 300)); err != nil {
			t.Fatalf("Begin %d: %v", i, err)
		}
		if err := s.End(entryID(i), fmt.Appendf(nil, "end %d", i)); err != nil {
			t.Fatalf("End %d: %v", i, err)
		}
	}
	if got := len(readAll(t, s)); got != 2*calls {
		t.Fatalf("%d entries before closing, want %d", got, 2*calls)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	s = openDir(t, dir, nil)
	defer s.Close()
	if s.Instance() != "instance-1" {
		t.Errorf("instance %q", s.Instance())
	}
	all := readAll(t, s)
	if len(all) != 2*calls {
		t.Fatalf("%d entries after reopening, want %d", len(all), 2*calls)
	}
	for i, e := range all {
		if e.ID != *entryID(i / 2) {
			t.Fatalf("entry %d is of call %s", i, e.ID)
		}
	}
	if !all[len(all)-1].At.Before(s.Start()) {
		t.Error("the new life begins before the old one's last entry")
	}
	if st := s.Stats(); st.Quarantined != 0 {
		t.Errorf("quarantined %d places of a healthy spool", st.Quarantined)
	}
}

func TestDirectoryHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir, nil)
	defer s.Close()
	_, err := Open(Options{FS: Dir(dir), Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("second Open: %v, want ErrLocked", err)
	}
}

func TestReaderWaitsForEntries(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir(), nil)
	defer s.Close()
	r := s.Reader(Position{})
	got := make(chan error, 1)
	go func() {
		entries, err := r.Next(context.Background(), 10)
		if err == nil && (len(entries) != 1 || entries[0].Type != Begin) {
			err = fmt.Errorf("entries %+v", entries)
		}
		got <- err
	}()
	if err := s.Begin(entryID(1), nil); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Next(ctx, 10); !errors.Is(err, context.Canceled) {
		t.Fatalf("Next with nothing there: %v", err)
	}
}

func TestBoundKeepsRoomForEnds(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir(), func(o *Options) { o.Segment, o.Bound = 256<<10, 512<<10 })
	defer s.Close()
	open := 0
	for {
		err := s.Begin(entryID(open), make([]byte, 1000))
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		open++
	}
	if open < 40 {
		t.Fatalf("only %d calls fit", open)
	}
	for i := range open {
		if err := s.End(entryID(i), make([]byte, maxEnd)); err != nil {
			t.Fatalf("End %d of %d after the bound was reached: %v", i, open, err)
		}
	}
	if got := len(readAll(t, s)); got != 2*open {
		t.Errorf("%d entries, want %d", got, 2*open)
	}
}

func TestReleaseDeletesWholeSegments(t *testing.T) {
	t.Parallel()
	s := openDir(t, t.TempDir(), nil)
	defer s.Close()
	for i := range 4000 {
		if err := s.Begin(entryID(i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if err := s.End(entryID(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Stats().Segments
	if err := s.Release(s.Tail()); err != nil {
		t.Fatal(err)
	}
	if after := s.Stats().Segments; before < 4 || after != 1 {
		t.Errorf("segments %d, then %d after releasing all; want several, then 1", before, after)
	}
}
