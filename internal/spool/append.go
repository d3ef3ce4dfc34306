package spool

import (
	"errors"
	"fmt"
)

// Begin appends a BEGIN entry and sets aside the room of its END. When it
// returns nil the entry survives the death of the process. ErrFull means that
// nothing was written and the call must not be made.
func (s *Spool) Begin(id *[16]byte, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := int64(frameHeader + len(payload))
	if s.failed != nil {
		return s.failed
	}
	if s.free() < size+(s.open+1)*endRoom {
		if err := s.allocateSpare(); err != nil {
			return err
		}
		if s.free() < size+(s.open+1)*endRoom {
			return ErrFull
		}
	}
	if _, err := s.append(Begin, id, payload); err != nil {
		return err
	}
	s.open++
	return nil
}

// Mark appends a MARK entry where there is room to spare. It never waits.
func (s *Spool) Mark(id *[16]byte, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && s.free() >= int64(frameHeader+len(payload))+s.open*endRoom {
		_, _ = s.append(Mark, id, payload) // a lost mark makes a recovered row poorer, never wrong
	}
}

// End appends the END entry of a call that Begin accepted. With fsync always
// it waits for the sync that covers it; an error then means that the entry may
// not be on the disk, and that the process is about to end.
func (s *Spool) End(id *[16]byte, payload []byte) error {
	s.mu.Lock()
	if s.failed != nil {
		defer s.mu.Unlock()
		return s.failed
	}
	target, err := s.append(End, id, payload)
	if err == nil && s.open > 0 {
		s.open--
	}
	s.mu.Unlock()
	if err != nil || s.Fsync != Always {
		return err
	}
	return s.syncs.wait(target)
}

// append writes a frame and returns how many bytes this life has appended
// with it. The lock is held.
func (s *Spool) append(t Type, id *[16]byte, payload []byte) (int64, error) {
	if len(payload) > MaxPayload {
		return 0, fmt.Errorf("spool: entry of %d bytes is too long", len(payload))
	}
	size := int64(frameHeader + len(payload))
	seg := s.segments[len(s.segments)-1] // Open fails where there is none
	if seg.end+size > seg.limit {
		if err := s.roll(); err != nil {
			return 0, err
		}
		seg = s.segments[len(s.segments)-1]
	}
	s.scratch = appendFrame(s.scratch[:0], Position{seg.number, seg.end}, t, id, payload)
	if _, err := seg.file.WriteAt(s.scratch, seg.end); err != nil {
		// The bytes past end are not valid as a frame or will be overwritten by
		// the next one, so nothing is half there.
		return 0, fmt.Errorf("spool: write: %w", err)
	}
	seg.end += size
	seg.dirty = true
	s.appended += size
	s.stats.appends.Add(1)
	if s.spare == nil && seg.end > seg.limit/2 {
		s.syncs.requestSpare()
	}
	if s.waiting.Load() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return s.appended, nil
}

// free is the room in the current and the spare segment. A frame never spans
// two, so what one of them may waste at its end does not count. The lock is
// held.
func (s *Spool) free() int64 {
	const waste = frameHeader + MaxPayload
	free := int64(0)
	if len(s.segments) > 0 {
		seg := s.segments[len(s.segments)-1]
		free = seg.limit - seg.end
	}
	if s.spare != nil {
		free = max(free-waste, 0) + s.spare.limit - s.spare.end - waste
	}
	return free
}

// roll goes on to the spare segment. The lock is held, or s is not shared
// yet.
func (s *Spool) roll() error {
	if s.spare == nil {
		if err := s.allocateSpare(); err != nil {
			return err
		}
	}
	s.segments = append(s.segments, s.spare)
	s.spare = nil
	return nil
}

// allocateSpare makes the next segment; ErrFull when it would pass the bound
// or the disk is full. The lock is held, or s is not shared yet.
func (s *Spool) allocateSpare() error {
	if s.spare != nil {
		return nil
	}
	used := int64(0)
	for _, seg := range s.segments {
		used += seg.size
	}
	if used+s.Segment > s.Bound {
		return ErrFull
	}
	number := s.nextNumber
	file, err := s.FS.Create(fileName(number), s.Segment)
	if err != nil {
		if noSpace(err) {
			return ErrFull
		}
		s.nextNumber++ // whatever is left under this name must not be in the way
		return fmt.Errorf("spool: new segment: %w", err)
	}
	s.nextNumber++
	if _, err := file.WriteAt(header(number), 0); err != nil {
		err = errors.Join(err, file.Close(), s.FS.Remove(fileName(number)))
		return fmt.Errorf("spool: new segment: %w", err)
	}
	s.spare = &segment{number: number, file: file, end: segmentHeader, limit: s.Segment, size: s.Segment, dirty: true}
	return nil
}
