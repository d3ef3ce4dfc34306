package spool

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// One flipped byte before the last entry is found wherever it lies, costs no
// other entry, and never makes a wrong one.
func TestDamageIsFoundAndCostsOneEntry(t *testing.T) {
	t.Parallel()
	full := newDisk(0)
	want, last := spooled(t, full, rand.New(rand.NewPCG(0, 3)))
	for seed := range seeds(t, 1000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := full.clone(seed)
		hit := flip(d, rng, last)
		s := openDisk(t, d, nil)
		if got := s.Stats().Quarantined; got != 1 {
			t.Errorf("seed %d: byte %d of segment %d flipped: %d places quarantined, want 1", seed, hit.Offset, hit.Segment, got)
		}
		compareDamaged(t, seed, hit, want, readAll(t, s))
		s.Close()
	}
}

// Damage that comes about while the spool is open is found by the reader.
func TestDamageWhileOpenIsFound(t *testing.T) {
	t.Parallel()
	full := newDisk(0)
	want, last := spooled(t, full, rand.New(rand.NewPCG(0, 4)))
	for seed := range seeds(t, 1000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		d := full.clone(seed)
		s := openDisk(t, d, nil)
		hit := flip(d, rng, last)
		got := readAll(t, s)
		places := int64(0) // a header, and what is unused, is not read again
		for _, e := range want {
			if !hit.Before(e.At) && hit.Before(e.Next) {
				places = 1
			}
		}
		if n := s.Stats().Quarantined; n != places {
			t.Errorf("seed %d: byte %d of segment %d flipped: %d places quarantined, want %d", seed, hit.Offset, hit.Segment, n, places)
		}
		readAll(t, s)
		if n := s.Stats().Quarantined; n != places {
			t.Errorf("seed %d: %d places quarantined after another reader, want %d", seed, n, places)
		}
		compareDamaged(t, seed, hit, want, got)
		s.Close()
	}
}

// spooled writes calls over several segments and returns their entries, the
// last of which lies at a position.
func spooled(t *testing.T, d *disk, rng *rand.Rand) ([]Entry, Position) {
	t.Helper()
	s := openDisk(t, d, nil)
	for i := range 100 {
		payload := make([]byte, rng.IntN(1500))
		for k := range payload {
			payload[k] = byte(rng.IntN(4)) // looks like lengths, often
		}
		if err := s.Begin(entryID(i), payload); err != nil {
			t.Fatal(err)
		}
		if err := s.End(entryID(i), payload[:len(payload)/3]); err != nil {
			t.Fatal(err)
		}
	}
	want := readAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return want, want[len(want)-1].At
}

// flip changes one byte before a position: of a header, an entry, or the
// unused end of a segment.
func flip(d *disk, rng *rand.Rand, before Position) Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		at := Position{1 + rng.Int64N(before.Segment), rng.Int64N(64 << 10)}
		if at.Before(before) {
			d.files[fileName(at.Segment)].now[at.Offset] ^= byte(1 + rng.IntN(255))
			return at
		}
	}
}

// compareDamaged wants every entry but the one that was hit.
func compareDamaged(t *testing.T, seed uint64, hit Position, want, got []Entry) {
	t.Helper()
	for _, w := range want {
		if w.At == hit || w.At.Before(hit) && hit.Before(w.Next) {
			continue
		}
		if len(got) == 0 {
			t.Errorf("seed %d: entries from %v on are missing", seed, w.At)
			return
		}
		if g := got[0]; g.At != w.At || g.Type != w.Type || g.ID != w.ID || !bytes.Equal(g.Payload, w.Payload) {
			t.Errorf("seed %d: entry at %v, type %d, want the one at %v, type %d", seed, g.At, g.Type, w.At, w.Type)
			return
		}
		got = got[1:]
	}
	if len(got) > 0 {
		t.Errorf("seed %d: %d entries too many", seed, len(got))
	}
}
