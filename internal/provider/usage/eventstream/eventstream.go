// Package eventstream splits a stream of application/vnd.amazon.eventstream into its
// messages while its bytes pass. The format:
//
//	4 bytes length of all, 4 of the headers, 4 CRC-32 of both
//	headers: 1 byte length, name, 1 byte type, value
//	payload
//	4 bytes CRC-32 of all before
package eventstream

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	preludeSize = 12
	// smallest is a message without headers and payload.
	smallest = preludeSize + 4
	// maxFrame bounds the message that is held. A longer one is passed over.
	maxFrame = 8 << 20
	// maxKept bounds the memory that is kept from one message to the next.
	maxKept = 64 << 10
)

// Frame is one message. What it refers to is good until the next.
type Frame struct {
	Kind    []byte // :message-type: event, exception or error
	Name    []byte // :event-type or :exception-type
	Payload []byte
}

// Splitter finds the messages in a stream that comes in pieces of any size; what it
// finds does not depend on how the stream is cut. The zero value is ready. It serves
// one stream and one goroutine.
type Splitter struct {
	held    []byte // the beginning of a message whose end has not come
	passing int    // bytes that are still to come of a message that is too long
	lost    bool   // where the next message begins is not known
	flawed  bool
}

// Flawed reports whether some of the stream could not be read: a message was too
// long, did not match its checksum, or was none.
func (s *Splitter) Flawed() bool { return s.flawed }

// Push takes the next bytes and calls frame for each message that they complete.
func (s *Splitter) Push(chunk []byte, frame func(Frame)) {
	for len(chunk) > 0 && !s.lost {
		if s.passing > 0 {
			n := min(s.passing, len(chunk))
			s.passing -= n
			chunk = chunk[n:]
			continue
		}
		if len(s.held) == 0 && len(chunk) >= preludeSize {
			size := s.size(chunk)
			if size > 0 && size <= min(len(chunk), maxFrame) { // nothing is copied
				s.read(chunk[:size], frame)
				chunk = chunk[size:]
				continue
			}
		}
		chunk = s.hold(chunk, frame)
	}
}

// hold copies bytes up to the end of a prelude or message, and returns the others.
func (s *Splitter) hold(chunk []byte, frame func(Frame)) []byte {
	end := preludeSize
	if len(s.held) >= preludeSize {
		end = s.size(s.held)
	}
	n := min(end-len(s.held), len(chunk))
	s.held = append(s.held, chunk[:n]...)
	if len(s.held) < end {
		return nil
	}
	switch size := s.size(s.held); {
	case s.lost:
		s.held = nil
	case size > maxFrame:
		s.flawed, s.passing, s.held = true, size-len(s.held), s.held[:0]
	case size == len(s.held):
		s.read(s.held, frame)
		s.held = s.held[:0]
		if cap(s.held) > maxKept {
			s.held = nil
		}
	}
	return chunk[n:]
}

// size is the length of the message that begins with b, which has a prelude. Where
// it is none, the stream is lost.
func (s *Splitter) size(b []byte) int {
	size, headers := int64(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint32(b[4:]))
	if size < smallest || headers > size-smallest || crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		s.lost, s.flawed = true, true
		return 0
	}
	return int(size)
}

// read takes a whole message apart.
func (s *Splitter) read(b []byte, frame func(Frame)) {
	end := len(b) - 4
	if crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		s.flawed = true
		return
	}
	body := preludeSize + int(binary.BigEndian.Uint32(b[4:]))
	f := Frame{Payload: b[body:end]}
	for headers := b[preludeSize:body]; len(headers) > 0; {
		name, value, rest, ok := header(headers)
		if !ok {
			s.flawed = true
			return
		}
		switch string(name) {
		case ":message-type":
			f.Kind = value
		case ":event-type", ":exception-type":
			f.Name = value
		}
		headers = rest
	}
	frame(f)
}

// header reads the first of the headers. The value is that of a string, nil for
// other types.
func header(b []byte) (name, value, rest []byte, ok bool) {
	n := int(b[0])
	if len(b) < n+2 {
		return nil, nil, nil, false
	}
	name, kind, b := b[1:n+1], b[n+1], b[n+2:]
	size := 0
	switch kind {
	case 0, 1: // true, false
	case 2: // byte
		size = 1
	case 3: // short
		size = 2
	case 4: // integer
		size = 4
	case 5, 8: // long, timestamp
		size = 8
	case 9: // UUID
		size = 16
	case 6, 7: // bytes, string
		if len(b) < 2 {
			return nil, nil, nil, false
		}
		size, b = int(binary.BigEndian.Uint16(b)), b[2:]
	default:
		return nil, nil, nil, false
	}
	if len(b) < size {
		return nil, nil, nil, false
	}
	if kind == 7 {
		value = b[:size]
	}
	return name, value, b[size:], true
}
