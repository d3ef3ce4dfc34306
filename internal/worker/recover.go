package worker

import (
	"context"
	"fmt"

	"modelgate"
	"modelgate/internal/spool"
	"modelgate/internal/store"
)

// Recover books what earlier lives left: entries not shipped, and for every
// call without an END a row that says it was interrupted. It waits for the
// database as long as the context allows. It fails where the directory is an
// older copy of what the database has booked, because new entries could then
// not be told from booked ones.
func (s *Shipper) Recover(ctx context.Context) error {
	var err error
	if s.booked, err = s.progress(ctx); err != nil {
		return err
	}
	start := s.spool.Start()
	if start.Before(s.booked) {
		return fmt.Errorf("spool of instance %s ends in segment %d, but the database has booked it up to segment %d: "+
			"the directory is an older copy, all of which is booked; move its files away, the one named instance too, and start again",
			s.spool.Instance(), start.Segment, s.booked.Segment)
	}
	for s.reader.At().Before(start) {
		entries, err := s.reader.Poll(shipRows)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		s.decode(entries)
		if err := s.ship(ctx); err != nil {
			return err
		}
	}
	if err := s.bookInterrupted(ctx); err != nil {
		return err
	}
	s.advance(start)
	return s.spool.Release(start)
}

// bookInterrupted books the calls that earlier lives began and did not end.
func (s *Shipper) bookInterrupted(ctx context.Context) error {
	var lost []modelgate.UsageRow
	for _, id := range s.order {
		if c := s.open[id]; c != nil {
			lost = append(lost, modelgate.Row(c.begin, modelgate.InterruptedEnd(&c.begin, c.mark)))
			delete(s.open, id)
		}
	}
	s.order = nil
	if len(lost) > 0 {
		s.log.Warn("calls were interrupted when the process last ended", "calls", len(lost))
	}
	for len(lost) > 0 {
		n := min(len(lost), shipRows)
		if err := s.record(ctx, lost[:n], s.position()); err != nil {
			return err
		}
		lost = lost[n:]
	}
	return nil
}

// progress asks the database where this spool's earlier life stopped.
func (s *Shipper) progress(ctx context.Context) (spool.Position, error) {
	var at store.Position
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		at, _, err = s.ledger.SpoolProgress(ctx, s.spool.Instance())
		return err
	})
	return spool.Position(at), err
}
