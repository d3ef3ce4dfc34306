// Package work holds the loops that run beside the calls.
package work

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/spool"
	"modelgate/internal/store"
)

const (
	// shipRows bounds a batch, shipPause is how long entries gather while
	// batches follow each other. Idle, an entry is shipped at once.
	shipRows  = 500
	shipPause = 50 * time.Millisecond
	// shipTimeout bounds one try; between tries the pause doubles from the
	// first to the second of these.
	shipTimeout = 15 * time.Second
	firstRetry  = 50 * time.Millisecond
	lastRetry   = time.Second
)

// Ledger is where rows are booked; *store.DB is one.
type Ledger interface {
	Record(context.Context, store.Batch) (inserted int, err error)
	SpoolProgress(ctx context.Context, instance string) (store.Position, bool, error)
}

// Shipper books what a spool holds: every END becomes a usage row, once.
// Recover runs first, then Run; Flush and the figures may be called at any
// time from anywhere.
type Shipper struct {
	spool  *spool.Spool
	ledger Ledger
	log    *slog.Logger

	reader *spool.Reader
	booked spool.Position // what the database had committed before this life
	open   map[modelgate.UUID]*openCall
	order  []modelgate.UUID // of open, as begun; ended ones drop out in front

	mu      sync.Mutex
	shipped spool.Position
	moved   chan struct{} // closed and replaced when shipped moves
	hurry   chan struct{} // a token when somebody waits in Flush

	rows        atomic.Int64
	quarantined atomic.Int64
	failing     atomic.Int64 // unix nanoseconds since when batches fail; 0: they do not
}

// openCall is a call whose END has not been read.
type openCall struct {
	begin modelgate.CallBegin
	at    spool.Position
	mark  *modelgate.CallEnd
}

// NewShipper makes the shipper of a spool.
func NewShipper(s *spool.Spool, ledger Ledger, log *slog.Logger) *Shipper {
	return &Shipper{
		spool: s, ledger: ledger, log: log, reader: s.Reader(spool.Position{}),
		open: make(map[modelgate.UUID]*openCall), moved: make(chan struct{}), hurry: make(chan struct{}, 1),
	}
}

// Backlog is how many bytes of entries are not booked yet.
func (s *Shipper) Backlog() int64 { return s.spool.Behind(s.position()) }

// ShipperStats are figures of the moment.
type ShipperStats struct {
	Rows        int64         // booked by this process
	Quarantined int64         // entries that could not be booked and were kept aside
	FailingFor  time.Duration // 0 while the database takes batches
}

// Stats are the shipper's figures.
func (s *Shipper) Stats() ShipperStats {
	st := ShipperStats{Rows: s.rows.Load(), Quarantined: s.quarantined.Load()}
	if since := s.failing.Load(); since != 0 {
		st.FailingFor = time.Duration(time.Now().UnixNano() - since)
	}
	return st
}

// Recover books what earlier lives left: entries not shipped, and for every
// call without an END a row that says it was interrupted. It waits for the
// database as long as the context allows.
func (s *Shipper) Recover(ctx context.Context) error {
	var err error
	if s.booked, err = s.progress(ctx); err != nil {
		return err
	}
	for s.reader.At().Before(s.spool.Start()) {
		entries, err := s.reader.Poll(shipRows)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		if err := s.book(ctx, s.digest(entries), s.reader.At()); err != nil {
			return err
		}
	}
	var lost []modelgate.UsageRow
	for _, id := range s.order {
		if c := s.open[id]; c != nil {
			lost = append(lost, modelgate.Row(c.begin, modelgate.InterruptedEnd(c.mark)))
		}
	}
	clear(s.open)
	s.order = nil
	if len(lost) > 0 {
		s.log.Warn("calls were interrupted when the process last ended", "calls", len(lost))
	}
	for len(lost) > 0 {
		n := min(len(lost), shipRows)
		if err := s.book(ctx, lost[:n], s.spool.Start()); err != nil {
			return err
		}
		lost = lost[n:]
	}
	return s.spool.Release(s.spool.Start())
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

// Run ships until the context ends, then once more what is there already.
func (s *Shipper) Run(ctx context.Context) error {
	for {
		entries, err := s.reader.Next(ctx, shipRows)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		rows := s.digest(entries)
		began := time.Now()
		if err := s.book(ctx, rows, s.reader.At()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := s.spool.Release(s.needed()); err != nil {
			s.log.Error("shipped spool segment could not be deleted", "error", err)
		}
		if len(rows) < shipRows {
			s.rest(ctx, shipPause-time.Since(began))
		}
	}
}

// Drain ships everything that is in the spool, for the end of a process.
func (s *Shipper) Drain(ctx context.Context) error {
	for {
		entries, err := s.reader.Poll(shipRows)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := s.book(ctx, s.digest(entries), s.reader.At()); err != nil {
			return err
		}
	}
}

// rest lets entries gather, unless somebody waits for them.
func (s *Shipper) rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.hurry:
	case <-ctx.Done():
	}
}

// Flush waits until everything that was in the spool when it was called is
// booked: reads then see the caller's own calls.
func (s *Shipper) Flush(ctx context.Context) error {
	target := s.spool.Tail()
	for {
		s.mu.Lock()
		done, moved := !s.shipped.Before(target), s.moved
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case s.hurry <- struct{}{}:
		default:
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// digest takes entries in and returns the rows that they complete.
func (s *Shipper) digest(entries []spool.Entry) []modelgate.UsageRow {
	rows := make([]modelgate.UsageRow, 0, len(entries)/2+1)
	for i := range entries {
		e := &entries[i]
		var err error
		switch e.Type {
		case spool.Begin:
			err = s.begin(e)
		case spool.Mark:
			err = s.mark(e)
		case spool.End:
			var row *modelgate.UsageRow
			if row, err = s.end(e); row != nil {
				rows = append(rows, *row)
			}
		default:
			err = fmt.Errorf("entry of unknown type %d", e.Type)
		}
		if err != nil {
			s.setAside(e, err)
		}
	}
	return rows
}

func (s *Shipper) begin(e *spool.Entry) error {
	b, err := spool.DecodeBegin(e.ID, e.Payload)
	if err != nil {
		return err
	}
	s.open[e.ID] = &openCall{begin: b, at: e.At}
	s.order = append(s.order, e.ID)
	return nil
}

func (s *Shipper) mark(e *spool.Entry) error {
	seen, err := spool.DecodeEnd(e.Payload)
	if c := s.open[e.ID]; c != nil && err == nil {
		c.mark = &seen
	}
	return err
}

// end is the row of an END, nil when it is booked already.
func (s *Shipper) end(e *spool.Entry) (*modelgate.UsageRow, error) {
	outcome, err := spool.DecodeEnd(e.Payload)
	if err != nil {
		return nil, err
	}
	c := s.open[e.ID]
	delete(s.open, e.ID)
	for len(s.order) > 0 && s.open[s.order[0]] == nil {
		s.order = s.order[1:]
	}
	switch {
	case e.At.Before(s.booked):
		return nil, nil
	case c == nil:
		return nil, errors.New("the beginning of this call is missing")
	}
	row := modelgate.Row(c.begin, outcome)
	return &row, nil
}

// needed is the oldest place that an open call or the reader still needs.
func (s *Shipper) needed() spool.Position {
	if len(s.order) > 0 {
		return s.open[s.order[0]].at
	}
	return s.reader.At()
}

// book books rows and moves on to a position, trying again as long as the
// database does not answer.
func (s *Shipper) book(ctx context.Context, rows []modelgate.UsageRow, upTo spool.Position) error {
	if len(rows) > 0 {
		if err := s.record(ctx, rows, upTo); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if s.shipped.Before(upTo) {
		s.shipped = upTo
		close(s.moved)
		s.moved = make(chan struct{})
	}
	s.mu.Unlock()
	return nil
}

// position is up to where everything is booked.
func (s *Shipper) position() spool.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shipped
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
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		pause = min(2*pause, lastRetry)
	}
}

// setAside keeps an entry that cannot be understood.
func (s *Shipper) setAside(e *spool.Entry, why error) {
	s.quarantined.Add(1)
	name := fmt.Sprintf("entry-%010d-%010d.bin", e.At.Segment, e.At.Offset)
	s.log.Error("spool entry cannot be booked; it was kept aside", "type", e.Type, "id", hex.EncodeToString(e.ID[:]), "file", name, "error", why)
	if err := s.spool.SetAside(name, e.Payload); err != nil {
		s.log.Error("spool entry could not be kept aside", "file", name, "error", err)
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
