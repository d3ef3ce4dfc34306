// Package worker holds the loops that run beside the calls.
package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
	"modelgate/internal/spool"
	"modelgate/internal/store"
	"modelgate/internal/yield"
)

const (
	// shipRows bounds a batch, shipPause is how long entries gather while
	// batches follow each other. Idle, an entry is shipped at once. What a
	// batch costs beside its rows grows with the keys in it, so that few large
	// ones cost less than many small ones; larger than this, one would keep
	// others waiting for the database.
	shipRows  = 4000
	shipPause = time.Second
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
// Recover runs first, then Run, then Drain, one after the other; Flush and
// the figures may be called at any time from anywhere.
type Shipper struct {
	spool   *spool.Spool
	ledger  Ledger
	log     *slog.Logger
	yielder *yield.Yielder
	gather  time.Duration                              // shipPause
	wait    func(context.Context, time.Duration) error // between tries

	reader  *spool.Reader
	decoder *spool.Decoder
	booked  spool.Position // what the database had committed before this life
	open    map[modelgate.UUID]*openCall
	order   []modelgate.UUID // of open, as begun; ended ones stay until they are in front or too many
	spare   []*openCall      // ended, to be used again
	// pending are rows that were read and are not booked. The reader is past
	// them, so they are booked before anything else is read: progress that
	// passed them would hide them from the next life.
	pending []modelgate.UsageRow

	mu      sync.Mutex
	shipped spool.Position
	moved   chan struct{} // closed and replaced when shipped moves
	hurry   chan struct{} // a token when somebody waits in Flush

	rows        atomic.Int64
	quarantined atomic.Int64
	failing     atomic.Int64 // unix nanoseconds since when batches fail; 0: they do not
}

// maxSpare bounds how many ended calls are kept to be used again.
const maxSpare = 256

// openCall is a call whose END has not been read.
type openCall struct {
	begin modelgate.CallBegin
	at    spool.Position
	mark  *modelgate.CallEnd
}

// NewShipper makes the shipper of a spool. It yields to calls; where none are
// served the yielder is nil.
func NewShipper(s *spool.Spool, ledger Ledger, log *slog.Logger, yielder *yield.Yielder) *Shipper {
	return &Shipper{
		spool: s, ledger: ledger, log: log, yielder: yielder, gather: shipPause, wait: cancelctx.Sleep, reader: s.Reader(spool.Position{}),
		decoder: spool.NewDecoder(), open: make(map[modelgate.UUID]*openCall), moved: make(chan struct{}), hurry: make(chan struct{}, 1),
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

// Run ships until the context ends. What it has read and not booked by then
// is left to Drain.
func (s *Shipper) Run(ctx context.Context) error {
	for {
		entries, err := s.next(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		began := time.Now()
		s.decode(entries)
		all, err := s.fill()
		if err == nil {
			err = s.ship(ctx)
		}
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if err := s.spool.Release(s.needed()); err != nil {
			s.log.Error("shipped spool segment could not be deleted", "error", err)
		}
		if all {
			s.rest(ctx, s.gather-time.Since(began))
		}
	}
}

// unlessEnded is nil for an error that the end of the context explains.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// next is what there is to read; it waits until there is something. Before
// it waits everything read is booked, also where nothing of it was a row.
func (s *Shipper) next(ctx context.Context) ([]spool.Entry, error) {
	entries, err := s.reader.Poll(shipRows)
	if err != nil || len(entries) > 0 {
		return entries, err
	}
	s.advance(s.reader.At())
	return s.reader.Next(ctx, shipRows)
}

// fill reads on until a batch is full, or all has been read: of the entries
// that were read at once most may have completed no row.
func (s *Shipper) fill() (all bool, err error) {
	for len(s.pending) < shipRows {
		entries, err := s.reader.Poll(shipRows - len(s.pending))
		if err != nil || len(entries) == 0 {
			return true, err
		}
		s.decode(entries)
	}
	return false, nil
}

// Drain ships everything that is in the spool, for the end of a process.
func (s *Shipper) Drain(ctx context.Context) error {
	for {
		if err := s.ship(ctx); err != nil {
			return err
		}
		entries, err := s.reader.Poll(shipRows)
		if err != nil || len(entries) == 0 {
			return err
		}
		s.decode(entries)
	}
}

// rest lets entries gather, unless somebody waits for them.
func (s *Shipper) rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
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

// position is up to where everything is booked.
func (s *Shipper) position() spool.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shipped
}

// advance notes that everything before a position is booked.
func (s *Shipper) advance(to spool.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shipped.Before(to) {
		s.shipped = to
		close(s.moved)
		s.moved = make(chan struct{})
	}
}
