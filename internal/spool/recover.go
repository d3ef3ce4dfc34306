package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

const instanceFile = "instance"

// recover reads the directory: its id, its segments, and what in them is
// valid.
func (s *Spool) recover() error {
	if err := s.identify(); err != nil {
		return err
	}
	numbers, err := s.numbers()
	if err != nil {
		return err
	}
	s.nextNumber = 1
	last := true       // no entry stands in a later segment; there may be empty ones
	var content []byte // of one segment after the other
	for _, n := range slices.Backward(numbers) {
		s.nextNumber = max(s.nextNumber, n+1)
		var seg *segment
		var empty bool
		seg, empty, content, err = s.recoverSegment(n, last, content)
		if err != nil {
			return fmt.Errorf("spool: segment %d: %w", n, err)
		}
		s.segments = append(s.segments, seg)
		last = last && empty
	}
	slices.Reverse(s.segments)
	return nil
}

// identify reads the id of the directory, or gives it one.
func (s *Spool) identify() error {
	id, err := s.FS.Read(instanceFile)
	if err == nil && len(bytes.TrimSpace(id)) > 0 {
		s.instance = strings.TrimSpace(string(id))
		return nil
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		// Another id would detach the entries from what is booked of them.
		return fmt.Errorf("spool: read the directory's id: %w", err)
	case s.ReadOnly && err == nil:
		return errors.New("spool: the directory's id is empty")
	case s.ReadOnly:
		return fmt.Errorf("spool: no instance id in the directory: %w", err)
	}
	s.instance = s.NewInstance()
	return s.FS.Keep(instanceFile, []byte(s.instance+"\n"))
}

// recoverSegment finds out where the valid part of a segment ends. Damage
// before a valid frame is quarantined here once and skipped by every reader.
// Empty says that nothing was ever appended. The buffer is for the content of
// the file; it is returned for the next one.
func (s *Spool) recoverSegment(number int64, last bool, buf []byte) (seg *segment, empty bool, content []byte, err error) {
	file, err := s.FS.Open(fileName(number))
	if err != nil {
		return nil, false, nil, err
	}
	content, size, err := readInto(buf, file)
	if err != nil {
		return nil, false, nil, errors.Join(err, file.Close())
	}
	seg = &segment{number: number, file: file, size: size, end: min(segmentHeader, size), damage: map[int64]int64{}}
	if size >= segmentHeader && !blank(content[:segmentHeader]) {
		version, sound := readHeader(content, number)
		if sound && version > formatVersion {
			return nil, false, nil, errors.Join(fmt.Errorf("written by a newer version (format %d)", version), file.Close())
		}
		if !sound {
			s.quarantine(number, 0, content[:segmentHeader])
		}
	}
	scan(content, number, func(e Entry) { seg.end = e.Next.Offset }, func(from, to int64) {
		s.quarantine(number, from, content[from:to])
		seg.damage[from] = to
	})
	// A new life never writes behind an old one: what a shipper has booked may
	// reach further than what a power cut left.
	seg.limit = seg.end
	empty = blank(content[min(segmentHeader, size):])
	if err := s.clearTail(seg, content, last); err != nil {
		return nil, false, nil, errors.Join(err, file.Close())
	}
	return seg, empty, content, nil
}

// readInto reads a file as far as it holds anything but zeros, and the
// longest frame further, because a payload may end in zeros. The buffer is used
// where it is large enough. Size is that of the file: most of the newest one is
// room, and to read that into memory would take longer than all else of a start.
func readInto(buf []byte, file File) (content []byte, size int64, err error) {
	if size, err = file.Size(); err != nil {
		return nil, 0, err
	}
	end, err := dataEnd(file, size)
	if err != nil {
		return nil, 0, err
	}
	length := min(size, max(end, segmentHeader)+frameHeader+MaxPayload)
	if int64(cap(buf)) < length {
		buf = make([]byte, length)
	}
	return buf[:length], size, readFull(file, buf[:length], 0)
}

// dataEnd is where a file holds nothing but zeros any more, a part of its
// reading too late at most.
func dataEnd(file File, size int64) (int64, error) {
	const part = 128 << 10
	buf, zeros := make([]byte, part), make([]byte, part)
	for off := (size - 1) / part * part; off >= 0 && size > 0; off -= part {
		n := min(size-off, part)
		if err := readFull(file, buf[:n], off); err != nil {
			return 0, err
		}
		if !bytes.Equal(buf[:n], zeros[:n]) {
			return off + n, nil
		}
	}
	return 0, nil
}

func readFull(file File, buf []byte, off int64) error {
	if n, err := file.ReadAt(buf, off); n < len(buf) {
		return errors.Join(err, io.ErrUnexpectedEOF)
	}
	return nil
}

// clearTail handles what lies behind the last valid frame. In the last
// segment that is what the process died in: no damage, and overwritten with
// zeros so that it never looks like it later. Anywhere else it is damage.
// Either way the bytes are kept aside first.
func (s *Spool) clearTail(seg *segment, content []byte, last bool) error {
	tail := content[seg.end:]
	tail = bytes.TrimRight(tail, "\x00")
	if len(tail) == 0 {
		return nil
	}
	kept := false
	if last {
		s.Log.Warn("the end of the spool was not written completely; it is cleared", "segment", seg.number, "offset", seg.end, "bytes", len(tail))
		kept = s.keepAside("torn", seg.number, seg.end, tail)
	} else {
		kept = s.quarantine(seg.number, seg.end, tail)
	}
	if !kept {
		return nil // then here is the only copy
	}
	if _, err := seg.file.WriteAt(make([]byte, len(tail)), seg.end); err != nil {
		return err
	}
	return seg.file.Sync()
}

func blank(b []byte) bool { return zerosEnd(b, 0) == int64(len(b)) }

// scan calls entry for every valid frame of a segment in order, and damage
// for every range of other bytes that has a valid frame behind it.
func scan(content []byte, number int64, entry func(Entry), damage func(from, to int64)) {
	off := int64(segmentHeader)
	for off+frameHeader <= int64(len(content)) {
		e, ok := decodeFrame(content[off:], Position{number, off})
		if ok {
			entry(e)
			off = e.Next.Offset
			continue
		}
		next := resync(content, number, off+1)
		if next < 0 {
			return
		}
		damage(off, next)
		off = next
	}
}

// resync is the offset of the next valid frame from an offset on, -1 when
// there is none. A false match needs a CRC-32C that fits by chance.
func resync(content []byte, number, from int64) int64 {
	for off := from; off+frameHeader <= int64(len(content)); off++ {
		if binary.LittleEndian.Uint64(content[off:]) == 0 {
			// The first byte that can be other than zero is the type, eight
			// bytes in.
			off = max(off, zerosEnd(content, off)-8)
			if off+frameHeader > int64(len(content)) {
				return -1
			}
		}
		if _, ok := decodeFrame(content[off:], Position{number, off}); ok {
			return off
		}
	}
	return -1
}

// zerosEnd is the offset of the first byte from an offset on that is not zero,
// or the length.
func zerosEnd(content []byte, off int64) int64 {
	for off+8 <= int64(len(content)) && binary.LittleEndian.Uint64(content[off:]) == 0 {
		off += 8
	}
	for off < int64(len(content)) && content[off] == 0 {
		off++
	}
	return off
}

// quarantine counts damage and keeps the bytes for a person to look at. It
// reports whether it could.
func (s *Spool) quarantine(number, offset int64, damaged []byte) bool {
	s.stats.quarantined.Add(1)
	s.Log.Error("damage in the spool", "segment", number, "offset", offset, "bytes", len(damaged))
	return s.keepAside("damage", number, offset, damaged)
}

func (s *Spool) keepAside(what string, number, offset int64, b []byte) bool {
	name := fmt.Sprintf("quarantine/%s-%010d-%010d.bin", what, number, offset)
	if err := s.FS.Keep(name, b); err != nil {
		s.Log.Error("unreadable bytes of the spool could not be kept aside", "file", name, "error", err)
		return false
	}
	s.Log.Info("unreadable bytes of the spool were kept aside", "file", name)
	return true
}
