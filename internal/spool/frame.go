package spool

import (
	"encoding/binary"
	"hash/crc32"
)

// Type says what an entry is. A type this version does not know is handed to
// the reader like any other.
type Type uint8

// The types.
const (
	Begin Type = 1 // a call is about to leave
	Mark  Type = 2 // what it has used so far
	End   Type = 3 // how it came out
)

const (
	frameHeader = 4 + 4 + 1 + 16
	// MaxPayload is the longest payload, so that a frame has at most 16 KiB.
	MaxPayload = 16<<10 - frameHeader
	// segmentHeader begins every segment: magic, format version u32, CRC-32C
	// u32 of the rest, number u64.
	segmentHeader = 24
	segmentMagic  = "MGSPOOL\x00"
	formatVersion = 1
)

// Position is a place in the spool: a byte offset in a numbered segment.
// Positions order as entries were written. The zero value is before all.
type Position struct{ Segment, Offset int64 }

// Before reports whether p lies before q.
func (p Position) Before(q Position) bool {
	return p.Segment < q.Segment || p.Segment == q.Segment && p.Offset < q.Offset
}

// Entry is one entry as it was written.
type Entry struct {
	Type    Type
	ID      [16]byte
	Payload []byte
	At      Position // of the entry
	Next    Position // just behind it
}

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends the frame of an entry that will stand at a position.
func appendFrame(dst []byte, at Position, t Type, id *[16]byte, payload []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = append(dst, 0, 0, 0, 0, byte(t))
	dst = append(dst, id[:]...)
	dst = append(dst, payload...)
	binary.LittleEndian.PutUint32(dst[start+4:], checksum(at, dst[start+8:]))
	return dst
}

// checksum is the CRC-32C of the segment, the offset, the length and the rest.
// The first three are added without a buffer, which crc32.Update would have
// allocated for every frame.
func checksum(at Position, rest []byte) uint32 {
	crc := word(^uint32(0), uint64(at.Segment))
	crc = word(crc, uint64(at.Offset))
	crc = word(crc, uint64(len(rest)))
	return crc32.Update(^crc, castagnoli, rest)
}

// word takes eight bytes, the lowest first, into a checksum.
func word(crc uint32, w uint64) uint32 {
	for range 8 {
		crc = castagnoli[byte(crc)^byte(w)] ^ crc>>8
		w >>= 8
	}
	return crc
}

// decodeFrame reads the frame at the beginning of b, which stands at a
// position. The payload is part of b. It reports false when there is none.
func decodeFrame(b []byte, at Position) (Entry, bool) {
	if len(b) < frameHeader {
		return Entry{}, false
	}
	n := binary.LittleEndian.Uint32(b)
	if n > MaxPayload || int(n)+frameHeader > len(b) || b[8] == 0 {
		return Entry{}, false
	}
	size := frameHeader + int(n)
	if binary.LittleEndian.Uint32(b[4:]) != checksum(at, b[8:size]) {
		return Entry{}, false
	}
	e := Entry{Type: Type(b[8]), ID: [16]byte(b[9:25]), Payload: b[frameHeader:size:size], At: at}
	e.Next = Position{at.Segment, at.Offset + int64(size)}
	return e, true
}

// header is the beginning of a segment.
func header(segment int64) []byte {
	b := append(make([]byte, 0, segmentHeader), segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(segment))
	binary.LittleEndian.PutUint32(b[12:], headerChecksum(b))
	return b
}

func headerChecksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:segmentHeader])
}

// readHeader reports whether the beginning of a segment is sound, and the
// format it was written in. One that is not says nothing about a version.
func readHeader(b []byte, segment int64) (version uint32, sound bool) {
	sound = string(b[:8]) == segmentMagic &&
		binary.LittleEndian.Uint32(b[12:]) == headerChecksum(b) &&
		binary.LittleEndian.Uint64(b[16:]) == uint64(segment)
	return binary.LittleEndian.Uint32(b[8:]), sound
}
