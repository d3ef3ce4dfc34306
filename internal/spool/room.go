package spool

import (
	"errors"
	"fmt"
)

// waste is the most that a segment may leave unused at its end, because a
// frame never spans two.
const waste = frameHeader + MaxPayload

// minSegment is the least size of a segment.
const minSegment = 64 << 10

// free is the room that is not set aside for the ENDs of open calls. The lock
// is held.
func (s *Spool) free() int64 {
	seg := s.segments[len(s.segments)-1]
	free := seg.limit - seg.end
	if len(s.spares) > 0 {
		free = max(free-waste, 0)
	}
	for _, spare := range s.spares {
		free += spare.limit - spare.end - waste
	}
	return free - s.open*endRoom
}

// makeRoom returns once so much is free. ErrFull means that it cannot be had.
// The lock is held; it is given up while a segment is being allocated.
func (s *Spool) makeRoom(size int64) error {
	for tried := false; s.failed == nil && s.free() < size; tried = true {
		if tried && s.noRoom != nil {
			return s.noRoom
		}
		if s.allocated()+s.Segment > s.Bound {
			return ErrFull
		}
		s.askSpare()
		for n := s.attempts; n == s.attempts && s.failed == nil; {
			s.roomMade.Wait()
		}
	}
	return s.failed
}

// allocated is the size of all files. The lock is held.
func (s *Spool) allocated() int64 {
	bytes := int64(0)
	for _, seg := range s.segments {
		bytes += seg.size
	}
	for _, seg := range s.spares {
		bytes += seg.size
	}
	return bytes
}

// askSpare has the allocating goroutine make one segment, or lets the one
// stand that it is making. The lock is held.
func (s *Spool) askSpare() {
	s.spareAsked = true
	s.roomAsked.Signal()
}

// allocateLoop is the one goroutine that makes segments, so that neither
// entries nor syncs wait for it as long as there is room. It ends when nothing
// is accepted any more.
func (s *Spool) allocateLoop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for !s.spareAsked && s.failed == nil {
			s.roomAsked.Wait()
		}
		if s.failed != nil {
			return
		}
		failing := s.noRoom != nil
		s.allocate()
		s.spareAsked = false
		s.attempts++
		s.roomMade.Broadcast()
		if s.noRoom != nil && !failing {
			s.Log.Warn("no room for another spool segment", "error", s.noRoom)
		}
	}
}

// allocate makes a spare segment and notes in noRoom how it came out:
// ErrFull when the segment would pass the bound or the disk is full. The lock
// is held; it is given up while the disk works.
func (s *Spool) allocate() {
	if s.allocated()+s.Segment > s.Bound {
		s.noRoom = ErrFull
		return
	}
	number := s.nextNumber
	s.nextNumber++
	s.mu.Unlock()
	file, err := s.create(number)
	s.mu.Lock()
	s.noRoom = err
	if err == nil {
		s.spares = append(s.spares, &segment{number: number, file: file, end: segmentHeader, limit: s.Segment, size: s.Segment, damage: map[int64]int64{}})
	}
}

func (s *Spool) create(number int64) (File, error) {
	file, err := s.FS.Create(fileName(number), s.Segment)
	if err == nil {
		if _, err = file.WriteAt(header(number), 0); err != nil {
			err = errors.Join(err, file.Close(), s.FS.Remove(fileName(number)))
		}
	}
	if err == nil {
		return file, nil
	}
	if noSpace(err) {
		return nil, ErrFull
	}
	return nil, fmt.Errorf("spool: new segment: %w", err)
}

// roll goes on to a spare segment. The lock is held. What is set aside makes
// sure that there is one.
func (s *Spool) roll() error {
	if len(s.spares) == 0 {
		return ErrFull
	}
	if n := len(s.segments); n > 0 {
		s.clean(s.segments[n-1])
	}
	s.segments = append(s.segments, s.spares[0])
	s.spares = s.spares[1:]
	return nil
}
