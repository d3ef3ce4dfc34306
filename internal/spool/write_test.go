package spool

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
)

// A BEGIN that fails in the middle of its write was refused: it must not be
// found later, nor be taken for damage, whatever is written behind it.
func TestFailedBeginLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, bytesWritten := range []int{0, 1, frameHeader, 700, frameHeader + 1000} {
		for _, roll := range []bool{false, true} {
			d := newDisk(1)
			s := openDisk(t, d, nil)
			if err := s.Begin(entryID(1), nil); err != nil {
				t.Fatal(err)
			}
			d.faulty("write", partialWrite{bytesWritten, syscall.EIO})
			if err := s.Begin(entryID(2), bytes.Repeat([]byte{7}, 1000)); !errors.Is(err, syscall.EIO) {
				t.Fatalf("Begin on a faulty disk: %v, want EIO", err)
			}
			d.faulty("", nil)
			want := 3
			if roll {
				for s.Tail().Segment == 1 { // leaves the failed bytes at the end of the first segment, or covers them
					if err := s.Begin(entryID(want), make([]byte, 15000)); err != nil {
						t.Fatal(err)
					}
					want++
				}
			}
			if err := s.End(entryID(1), nil); err != nil {
				t.Fatalf("End after a failed Begin: %v", err)
			}
			before := readAll(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := openDisk(t, d, nil)
			got := readAll(t, again)
			if len(got) != len(before) {
				t.Errorf("%d bytes through, roll %t: %d entries after reopening, want %d", bytesWritten, roll, len(got), len(before))
			}
			for _, e := range got {
				if e.ID == *entryID(2) {
					t.Errorf("%d bytes through, roll %t: the refused BEGIN is there", bytesWritten, roll)
				}
			}
			if n := again.Stats().Quarantined; n != 0 {
				t.Errorf("%d bytes through, roll %t: %d places quarantined, want 0", bytesWritten, roll, n)
			}
			again.Close()
		}
	}
}

// faults makes the next writes fail in turn.
func (d *disk) faults(errs ...error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = func(op, _ string) error {
		if op != "write" || len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

// A disk may write all of a BEGIN and fail all the same; what is behind the
// last entry then looks like one more.
func TestRefusedBeginIsNotFoundLater(t *testing.T) {
	t.Parallel()
	written := partialWrite{1 << 20, syscall.EIO}
	for name, faults := range map[string][]error{
		"overwritten at once":            {written},
		"overwritten with the last":      {written, syscall.EIO},
		"overwritten when it is leaving": {written, syscall.EIO},
	} {
		d := newDisk(1)
		s := openDisk(t, d, nil)
		for s.Behind(Position{1, 0}) < 60<<10 {
			if err := s.Begin(entryID(1), make([]byte, 500)); err != nil {
				t.Fatal(err)
			}
			if err := s.End(entryID(1), nil); err != nil {
				t.Fatal(err)
			}
		}
		d.faults(faults...)
		if err := s.Begin(entryID(2), make([]byte, 500)); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: Begin on a faulty disk: %v, want EIO", name, err)
		}
		if name == "overwritten when it is leaving" {
			if err := s.Begin(entryID(3), make([]byte, 15000)); err != nil { // does not fit behind
				t.Fatal(err)
			}
			if got := s.Tail().Segment; got != 2 {
				t.Fatalf("%s: the spool is in segment %d, want 2", name, got)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := openDisk(t, d, nil)
		for _, e := range readAll(t, again) {
			if e.ID == *entryID(2) {
				t.Errorf("%s: the refused BEGIN is there", name)
			}
		}
		if n := again.Stats().Quarantined; n != 0 {
			t.Errorf("%s: %d places quarantined, want 0", name, n)
		}
		again.Close()
	}
}

// An END that cannot be written is usage that only a replay can still book.
func TestFailedEndIsFinal(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	fatal := make(chan error, 10)
	s := openDisk(t, d, func(o *Options) { o.Fatal = func(err error) { fatal <- err } })
	for i := range 2 {
		if err := s.Begin(entryID(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	d.faulty("write", syscall.EIO)
	if err := s.End(entryID(0), nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("End on a faulty disk: %v, want EIO", err)
	}
	d.faulty("", nil)
	if err := s.End(entryID(1), nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("End after a failed END: %v, want EIO", err)
	}
	if err := s.Begin(entryID(2), nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("Begin after a failed END: %v, want EIO", err)
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close after a failed END: %v, want EIO", err)
	}
	if len(fatal) != 1 {
		t.Errorf("Fatal was called %d times, want once", len(fatal))
	}
}

// Some file systems allocate and are full all the same.
func TestFullDiskFoundByTheWriteIsErrFull(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	s := openDisk(t, d, nil)
	defer s.Close()
	d.faulty("write", syscall.ENOSPC)
	if err := s.Begin(entryID(1), nil); !errors.Is(err, ErrFull) {
		t.Errorf("Begin on a full disk: %v, want ErrFull", err)
	}
	d.faulty("", nil)
	if err := s.Begin(entryID(1), nil); err != nil {
		t.Errorf("Begin after there is room again: %v", err)
	}
}

// Entries that would take the room of others are refused and change nothing.
func TestEntriesHaveALongestSize(t *testing.T) {
	t.Parallel()
	s := openDisk(t, newDisk(1), func(o *Options) { o.Fatal = func(err error) { t.Errorf("Fatal(%v)", err) } })
	defer s.Close()
	if err := s.Begin(entryID(1), make([]byte, MaxPayload+1)); err == nil {
		t.Error("Begin took more than MaxPayload")
	}
	if err := s.Begin(entryID(1), make([]byte, MaxPayload)); err != nil {
		t.Errorf("Begin of MaxPayload: %v", err)
	}
	if err := s.End(entryID(1), make([]byte, maxEnd+1)); err == nil {
		t.Error("End took more than is set aside for it")
	}
	if err := s.End(entryID(1), make([]byte, maxEnd)); err != nil {
		t.Errorf("End of the longest payload: %v", err)
	}
	if got := len(readAll(t, s)); got != 2 {
		t.Errorf("%d entries, want 2", got)
	}
}

// A flipped bit in the format version is damage, not an upgrade.
func TestDamagedHeaderCostsNoEntry(t *testing.T) {
	t.Parallel()
	for at := range int64(segmentHeader) {
		d := newDisk(1)
		s := openDisk(t, d, nil)
		if err := s.Begin(entryID(1), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		d.files[fileName(1)].now[at] ^= 0x42
		s = openDisk(t, d, nil)
		if got := len(readAll(t, s)); got != 1 {
			t.Errorf("byte %d of the header flipped: %d entries, want 1", at, got)
		}
		if n := s.Stats().Quarantined; n != 1 {
			t.Errorf("byte %d of the header flipped: %d places quarantined, want 1", at, n)
		}
		s.Close()
	}
}

// A torn tail is no damage, but what it was is kept: nothing is ever
// overwritten in silence.
func TestTornTailIsKeptAsideAndCleared(t *testing.T) {
	t.Parallel()
	d := newDisk(1)
	s := openDisk(t, d, nil)
	for i := range 2 {
		// Not of zeros, which clearing would put back in place.
		if err := s.Begin(entryID(i), bytes.Repeat([]byte{3}, 900)); err != nil {
			t.Fatal(err)
		}
	}
	end := s.Tail().Offset
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content := d.files[fileName(1)].now
	clear(content[end-100 : end-50])
	for i := end - 50; i < end; i++ {
		content[i] = 9
	}
	// Every death during recovery leaves a spool that the next one reads.
	for left := range 20 {
		d.mu.Lock()
		d.left = left
		d.mu.Unlock()
		if s, err := Open(optionsOn(d)); err == nil {
			s.Close()
		}
		d.powerCut()
	}
	s = openDisk(t, d, nil)
	defer s.Close()
	got := readAll(t, s)
	if len(got) != 1 || got[0].ID != *entryID(0) {
		t.Errorf("%d entries, want the first only", len(got))
	}
	if n := s.Stats().Quarantined; n != 0 {
		t.Errorf("%d places quarantined, want 0", n)
	}
	if !blank(content[got[0].Next.Offset:]) {
		t.Error("the torn tail was not cleared")
	}
	kept := 0
	for name := range d.files {
		if strings.HasPrefix(name, "quarantine/torn-") {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d torn tails kept aside, want 1", kept)
	}
}

// What was cleared once stays cleared when the power goes right after the
// next life's first call.
func TestClearedTailStaysCleared(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		d := newDisk(seed)
		s := openDisk(t, d, nil)
		if err := s.Begin(entryID(1), nil); err != nil {
			t.Fatal(err)
		}
		end := s.Tail().Offset
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range int64(2000) {
			d.files[fileName(1)].now[end+i] = 0xEE
		}
		s = openDisk(t, d, nil)
		if err := s.Begin(entryID(2), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.End(entryID(2), nil); err != nil {
			t.Fatal(err)
		}
		d.powerCut()
		s.Close()
		s = openDisk(t, d, nil)
		if n := s.Stats().Quarantined; n != 0 {
			t.Errorf("seed %d: %d places quarantined, want 0", seed, n)
		}
		if got := len(readAll(t, s)); got != 3 {
			t.Errorf("seed %d: %d entries, want 3", seed, got)
		}
		s.Close()
	}
}
