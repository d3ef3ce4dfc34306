package spool

import (
	"bytes"
	"testing"
)

func TestFrameIsValidInItsPlaceOnly(t *testing.T) {
	t.Parallel()
	at := Position{7, 4096}
	b := appendFrame(nil, at, Begin, entryID(1), []byte("payload"))
	e, ok := decodeFrame(b, at)
	if !ok || e.Type != Begin || e.ID != *entryID(1) || string(e.Payload) != "payload" || e.Next != (Position{7, 4096 + int64(len(b))}) {
		t.Fatalf("decodeFrame = %+v, %t", e, ok)
	}
	for _, elsewhere := range []Position{{8, 4096}, {7, 4097}, {4096, 7}, {}} {
		if _, ok := decodeFrame(b, elsewhere); ok {
			t.Errorf("valid at %v too", elsewhere)
		}
	}
	for i := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			if _, ok := decodeFrame(c, at); ok {
				t.Errorf("valid with bit %d of byte %d flipped", bit, i)
			}
		}
		if _, ok := decodeFrame(b[:i], at); ok {
			t.Errorf("valid when cut to %d bytes", i)
		}
	}
}

// Whatever the bytes: no panic, entries in order and inside, ranges of damage
// apart from them; and a prefix of valid bytes gives a prefix of the entries.
func FuzzScan(f *testing.F) {
	valid := header(3)
	for i := range 4 {
		valid = appendFrame(valid, Position{3, int64(len(valid))}, Type(i+1), entryID(i), bytes.Repeat([]byte{byte(i)}, i*40))
	}
	f.Add(valid, 0)
	f.Add(valid[:len(valid)-1], 60)
	f.Add(append(bytes.Clone(valid[:90]), valid[100:]...), 30)
	f.Add(make([]byte, 300), 299)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, content []byte, cut int) {
		whole := scanAll(t, content)
		if cut < 0 || cut > len(content) {
			return
		}
		for i, e := range scanAll(t, content[:cut]) {
			if i >= len(whole) || whole[i].At != e.At || !bytes.Equal(whole[i].Payload, e.Payload) {
				t.Fatalf("entry %d at %v of the first %d bytes is not one of all", i, e.At, cut)
			}
		}
	})
}

func scanAll(t *testing.T, content []byte) []Entry {
	t.Helper()
	var entries []Entry
	behind := int64(segmentHeader)
	scan(content, 3, func(e Entry) {
		if e.At.Offset != behind || e.Next.Offset > int64(len(content)) || e.Next.Offset <= e.At.Offset {
			t.Fatalf("entry from %d to %d, %d bytes, after %d", e.At.Offset, e.Next.Offset, len(content), behind)
		}
		behind = e.Next.Offset
		entries = append(entries, e)
	}, func(from, to int64) {
		if from != behind || to <= from || to > int64(len(content)) {
			t.Fatalf("damage from %d to %d, %d bytes, after %d", from, to, len(content), behind)
		}
		behind = to
	})
	return entries
}
