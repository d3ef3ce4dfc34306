package spool

import "fmt"

// Begin appends a BEGIN entry and sets aside the room of its END. When it
// returns nil the entry survives the death of the process. ErrFull means that
// nothing was written and the call must not be made. It waits only where a
// new segment is needed that is still being allocated.
func (s *Spool) Begin(id *[16]byte, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(payload) > MaxPayload {
		return tooLong(payload)
	}
	if err := s.makeRoom(int64(frameHeader+len(payload)) + endRoom); err != nil {
		return err
	}
	if err := s.append(Begin, id, payload); err != nil {
		return err
	}
	s.open++
	return nil
}

// Mark appends a MARK entry where there is room to spare. It never waits.
func (s *Spool) Mark(id *[16]byte, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && len(payload) <= MaxPayload && s.free() >= int64(frameHeader+len(payload)) {
		_ = s.append(Mark, id, payload) // a lost mark makes a recovered row poorer, never wrong
	}
}

// End appends the END entry of a call that Begin accepted. With fsync always
// it waits for the sync that covers it. An error means that the entry may not
// be on the disk. It is final, as a failed sync is: only a replay can still
// book the call.
func (s *Spool) End(id *[16]byte, payload []byte) error {
	if len(payload) > maxEnd {
		return tooLong(payload)
	}
	s.mu.Lock()
	if s.failed != nil {
		defer s.mu.Unlock()
		return s.failed
	}
	err := s.append(End, id, payload)
	if err == nil && s.open > 0 {
		s.open--
	}
	covers := s.next
	s.mu.Unlock()
	if err != nil {
		s.die(err)
		return err
	}
	if s.Fsync != Always {
		return nil
	}
	return s.wait(covers)
}

func tooLong(payload []byte) error {
	return fmt.Errorf("spool: entry of %d bytes is too long", len(payload))
}

// append writes a frame for which there is room; it is of the next batch. The
// lock is held.
func (s *Spool) append(t Type, id *[16]byte, payload []byte) error {
	size := int64(frameHeader + len(payload))
	seg := s.segments[len(s.segments)-1] // Open fails where there is none
	if seg.end+size > seg.limit {
		if err := s.roll(); err != nil {
			return err
		}
		seg = s.segments[len(s.segments)-1]
	}
	s.scratch = appendFrame(s.scratch[:0], Position{seg.number, seg.end}, t, id, payload)
	if _, err := seg.file.WriteAt(s.scratch, seg.end); err != nil {
		seg.remains = max(seg.remains, seg.end+size)
		s.clean(seg)
		if noSpace(err) {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
		return fmt.Errorf("spool: write: %w", err)
	}
	seg.end += size
	s.wrote(seg)
	if len(s.spares) == 0 && seg.end > seg.limit/2 && s.noRoom == nil {
		s.askSpare()
	}
	if s.waiting.Load() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

// clean overwrites what a failed write may have left behind the last entry:
// it was refused, and a later Open must neither find it nor take it for
// damage. Where the disk does not let it, it is tried again later. The lock
// of the spool is held.
func (s *Spool) clean(g *segment) {
	if g.remains <= g.end {
		return
	}
	if _, err := g.file.WriteAt(make([]byte, g.remains-g.end), g.end); err == nil {
		g.remains = 0
		s.wrote(g)
	}
}
