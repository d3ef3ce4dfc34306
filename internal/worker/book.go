package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"modelgate"
	"modelgate/internal/spool"
	"modelgate/internal/store"
)

// ship books what has been read, trying again as long as the database does
// not answer. What it could not book stays pending.
func (s *Shipper) ship(ctx context.Context) error {
	upTo := s.reader.At()
	if len(s.pending) > 0 {
		if err := s.record(ctx, s.pending, upTo); err != nil {
			return err
		}
		clear(s.pending)
		s.pending = s.pending[:0]
	}
	s.advance(upTo)
	return nil
}

// record books a batch. One that holds a row which no database would take is
// halved until that row is alone, and it is set aside.
func (s *Shipper) record(ctx context.Context, rows []modelgate.UsageRow, upTo spool.Position) error {
	if upTo.Before(s.booked) {
		upTo = s.booked
	}
	batch := store.Batch{Instance: s.spool.Instance(), Rows: rows, Progress: store.Position(upTo)}
	inserted := 0
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		inserted, err = s.ledger.Record(ctx, batch)
		return err
	})
	switch {
	case err == nil:
		s.rows.Add(int64(inserted))
		return nil
	case !store.Poisoned(err):
		return err
	case len(rows) == 1:
		return s.setRowAside(rows[0], err)
	}
	half := len(rows) / 2
	if err := s.record(ctx, rows[:half], s.position()); err != nil {
		return err
	}
	return s.record(ctx, rows[half:], upTo)
}

// retry runs fn until it succeeds, fails for good, or the context ends.
func (s *Shipper) retry(ctx context.Context, fn func(context.Context) error) error {
	pause := firstRetry
	for {
		attempt, cancel := context.WithTimeout(ctx, shipTimeout)
		err := fn(attempt)
		cancel()
		if err == nil || store.Poisoned(err) || errors.Is(err, store.ErrBehind) {
			if since := s.failing.Swap(0); since != 0 {
				s.log.Info("usage is being booked again", "after", time.Duration(time.Now().UnixNano()-since))
			}
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.failing.CompareAndSwap(0, time.Now().UnixNano()) {
			s.log.Error("usage cannot be booked; it stays in the spool and will be tried again", "error", err)
		}
		if err := s.wait(ctx, pause/2+rand.N(pause/2)); err != nil {
			return err
		}
		pause = min(2*pause, lastRetry)
	}
}

// setRowAside keeps a row that the database refuses. It does not stop the
// rows behind it.
func (s *Shipper) setRowAside(r modelgate.UsageRow, why error) error {
	s.quarantined.Add(1)
	name := "row-" + r.ID.String() + ".bin"
	s.log.Error("usage row is refused by the database; it was kept aside", "request_id", r.ID.String(), "file", name, "error", why)
	payload := spool.AppendEnd(spool.AppendBegin(nil, &r.CallBegin), &r.CallEnd)
	if err := s.spool.SetAside(name, payload); err != nil {
		return fmt.Errorf("keep refused usage row aside: %w", err)
	}
	return nil
}
