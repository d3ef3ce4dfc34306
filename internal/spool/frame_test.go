package spool

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestFramesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := Position{rapid.Int64Range(1, math.MaxInt64).Draw(t, "segment"), rapid.Int64Range(segmentHeader, 1<<40).Draw(t, "offset")}
		kind := Type(rapid.IntRange(1, 255).Draw(t, "type"))
		id := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		payload := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "payload")
		if rapid.IntRange(0, 9).Draw(t, "longest") == 0 {
			payload = make([]byte, MaxPayload)
		}
		behind := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "behind")
		before := []byte("before")
		b := appendFrame(bytes.Clone(before), at, kind, &id, payload)
		if !bytes.HasPrefix(b, before) {
			t.Fatal("what was there is changed")
		}
		b = b[len(before):]
		e, ok := decodeFrame(append(bytes.Clone(b), behind...), at)
		switch {
		case !ok || e.Type != kind || e.ID != id || !bytes.Equal(e.Payload, payload):
			t.Fatalf("decodeFrame = %+v, %t", e, ok)
		case e.At != at || e.Next != (Position{at.Segment, at.Offset + int64(len(b))}):
			t.Fatalf("from %v to %v, want from %v over %d bytes", e.At, e.Next, at, len(b))
		}
	})
}

// The checksum is the plain CRC-32C of the place and the bytes, one after the
// other: what an earlier version wrote stays readable.
func TestChecksumIsThatOfTheFormat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := Position{rapid.Int64().Draw(t, "segment"), rapid.Int64().Draw(t, "offset")}
		rest := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "rest")
		all := binary.LittleEndian.AppendUint64(nil, uint64(at.Segment))
		all = binary.LittleEndian.AppendUint64(all, uint64(at.Offset))
		all = binary.LittleEndian.AppendUint64(all, uint64(len(rest)))
		if got, want := checksum(at, rest), crc32.Checksum(append(all, rest...), castagnoli); got != want {
			t.Fatalf("checksum(%v, % x) = %x, want %x", at, rest, got, want)
		}
	})
}

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
			c := append(bytes.Clone(b), make([]byte, 64<<10)...) // room for a greater length
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

// resync leaps over zeros; it must find what trying every offset finds.
func TestResyncFindsTheNextFrame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := make([]byte, segmentHeader, 1000)
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			content = append(content, make([]byte, rapid.IntRange(0, 70).Draw(t, "zeros"))...)
			content = append(content, rapid.SliceOfN(rapid.ByteRange(0, 2), 0, 5).Draw(t, "noise")...)
			if rapid.Bool().Draw(t, "frame") {
				payload := rapid.SliceOfN(rapid.ByteRange(0, 1), 0, 30).Draw(t, "payload")
				content = appendFrame(content, Position{3, int64(len(content))}, Begin, new([16]byte), payload)
			}
		}
		from := rapid.Int64Range(0, int64(len(content))).Draw(t, "from")
		want := int64(-1)
		for off := from; off < int64(len(content)) && want < 0; off++ {
			if _, ok := decodeFrame(content[off:], Position{3, off}); ok {
				want = off
			}
		}
		if got := resync(content, 3, from); got != want {
			t.Fatalf("resync from %d = %d, want %d", from, got, want)
		}
	})
}
