package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

const readAhead = 256 << 10

// Reader hands out entries in the order they were written: in steady state
// and in recovery alike. It never sees a frame that is still being written.
// One goroutine may use it.
type Reader struct {
	spool   *Spool
	at      Position
	buf     []byte
	entries []Entry // what Poll returns, kept for the next time
}

// Reader begins at a position, which must be that of an entry, just behind
// one, or zero for the oldest.
func (s *Spool) Reader(at Position) *Reader { return &Reader{spool: s, at: at} }

// At is where the next entry will be read.
func (r *Reader) At() Position { return r.at }

// Next returns up to limit entries that are there already, or waits for one.
// They and their payloads stay good until the next call. It ends with the context's
// error, or with ErrClosed.
func (r *Reader) Next(ctx context.Context, limit int) ([]Entry, error) {
	if entries, err := r.Poll(limit); err != nil || len(entries) > 0 {
		return entries, err
	}
	r.spool.waiting.Store(true)
	defer r.spool.waiting.Store(false)
	for {
		// Once more, for what was appended before it was known that somebody
		// waits.
		if entries, err := r.Poll(limit); err != nil || len(entries) > 0 {
			return entries, err
		}
		select {
		case <-r.spool.changed:
		case <-r.spool.closed:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Poll is Next without waiting: no entries means that all have been read.
func (r *Reader) Poll(limit int) ([]Entry, error) {
	var entries []Entry
	r.buf = r.buf[:0]
	for len(entries) < limit {
		file, end, next := r.spool.extent(r.at)
		if file == nil {
			return entries, nil
		}
		if r.at.Offset < segmentHeader || r.at.Segment != next.Segment {
			r.at = next
			continue
		}
		if r.at.Offset >= end {
			if !r.spool.hasAfter(r.at.Segment) {
				return entries, nil
			}
			if len(entries) > 0 {
				return entries, nil // the buffer holds one segment at a time
			}
			r.at = Position{r.at.Segment + 1, 0}
			continue
		}
		if len(entries) > 0 {
			return entries, nil
		}
		var err error
		if entries, err = r.read(file, end, limit); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// read decodes what one look into a segment gives.
func (r *Reader) read(file File, end int64, limit int) ([]Entry, error) {
	size := min(end-r.at.Offset, readAhead)
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, readAhead)
	}
	r.buf = r.buf[:size]
	if n, err := file.ReadAt(r.buf, r.at.Offset); err != nil && !(errors.Is(err, io.EOF) && int64(n) == size) {
		return nil, fmt.Errorf("spool: read segment %d: %w", r.at.Segment, err)
	}
	entries := r.entries[:0]
	rest := r.buf
	for len(entries) < limit {
		e, ok := decodeFrame(rest, r.at)
		if !ok {
			break
		}
		entries = append(entries, e)
		rest = rest[e.Next.Offset-e.At.Offset:]
		r.at = e.Next
	}
	r.entries = entries
	if len(entries) == 0 {
		return nil, r.skip(end, file)
	}
	return entries, nil
}

// skip moves on over damage: what recovery has quarantined, or what came
// about since, which is quarantined here.
func (r *Reader) skip(end int64, file File) error {
	if next, known := r.spool.damaged(r.at); known {
		r.at.Offset = next
		return nil
	}
	content := make([]byte, end)
	if n, err := file.ReadAt(content, 0); int64(n) < end {
		return fmt.Errorf("spool: read segment %d: %w", r.at.Segment, err)
	}
	next := resync(content, r.at.Segment, r.at.Offset+1)
	if next < 0 {
		next = end
	}
	r.spool.quarantine(r.at.Segment, r.at.Offset, content[r.at.Offset:next])
	r.spool.setDamaged(r.at, next)
	r.at.Offset = next
	return nil
}

// damaged is where reading goes on behind damage that is known to begin at a
// position.
func (s *Spool) damaged(at Position) (next int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seg := s.segment(at.Segment); seg != nil {
		next, known = seg.damage[at.Offset]
	}
	return next, known
}

// setDamaged notes it, so that it is found once however often it is read.
func (s *Spool) setDamaged(at Position, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seg := s.segment(at.Segment); seg != nil {
		seg.damage[at.Offset] = next
	}
}

// segment is the one with the number, nil for none. The lock is held.
func (s *Spool) segment(number int64) *segment {
	i := slices.IndexFunc(s.segments, func(seg *segment) bool { return seg.number == number })
	if i < 0 {
		return nil
	}
	return s.segments[i]
}

// extent is the file and the written end of the segment that a position lies
// in or, when that is gone or the position is zero, of the first one behind
// it; next is the position, moved there.
func (s *Spool) extent(at Position) (file File, end int64, next Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segments {
		if seg.number >= at.Segment {
			next = Position{seg.number, segmentHeader}
			if seg.number == at.Segment {
				next.Offset = max(at.Offset, segmentHeader)
			}
			return seg.file, seg.end, next
		}
	}
	return nil, 0, at
}

func (s *Spool) hasAfter(number int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.segments) > 0 && s.segments[len(s.segments)-1].number > number
}

// Release deletes every segment that lies wholly before a position. The
// caller has booked all entries before it and needs none of them again.
func (s *Spool) Release(before Position) error {
	s.mu.Lock()
	var gone []*segment
	for len(s.segments) > 1 && s.segments[0].number < before.Segment {
		gone = append(gone, s.segments[0])
		s.segments = s.segments[1:]
		s.noRoom = nil
	}
	s.mu.Unlock()
	var errs []error
	for _, seg := range gone {
		errs = append(errs, s.closeReleased(seg.file), s.FS.Remove(fileName(seg.number)))
	}
	return errors.Join(errs...)
}

// closeReleased closes the file of a released segment, at once or after the
// sync that may be using it.
func (s *Spool) closeReleased(file File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.syncing {
		s.released = append(s.released, file)
		return nil
	}
	return file.Close()
}

// Behind is how many bytes of entries lie behind a position.
func (s *Spool) Behind(at Position) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes := int64(0)
	for _, seg := range s.segments {
		switch {
		case seg.number == at.Segment:
			bytes += seg.end - max(at.Offset, segmentHeader)
		case seg.number > at.Segment:
			bytes += seg.end - segmentHeader
		}
	}
	return bytes
}
