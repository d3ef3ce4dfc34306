package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Fsync says when entries become safe from a power cut. A death of the
// process alone loses nothing in either case.
type Fsync string

// The choices.
const (
	Always   Fsync = "always"   // End waits for the sync that covers it
	Interval Fsync = "interval" // a sync at least every syncInterval
)

const (
	syncInterval = 100 * time.Millisecond
	// DefaultSegment and DefaultBound are sizes in bytes.
	DefaultSegment = 64 << 20
	DefaultBound   = 4 << 30
	// endRoom is set aside for the END of every open call: the longest END
	// that AppendEnd makes, and its frame.
	endRoom int64 = frameHeader + int64(maxEnd)
)

// ErrFull refuses a BEGIN for which there is no room, neither within the bound
// nor on the disk.
var ErrFull = errors.New("spool: full")

// ErrClosed answers whatever is asked of a spool after Close.
var ErrClosed = errors.New("spool: closed")

// Options are what Open needs; zero fields have defaults but FS, Log and
// Fatal.
type Options struct {
	FS    FS
	Log   *slog.Logger
	Fsync Fsync // default Always
	// Segment is the size of one file, at least 64 KiB; Bound that of all
	// together, at least two of them.
	Segment, Bound int64
	// Fatal is called once when a sync, or the write of an END, fails; the
	// process must end. It must not call Close.
	Fatal func(error)
	// NewInstance makes the id of a directory that has none yet.
	NewInstance func() string
	// ReadOnly takes over a directory to ship it: nothing can be appended.
	ReadOnly bool
}

// Spool is an open spool directory. It is safe for concurrent use.
type Spool struct {
	Options
	instance string
	unlock   func() error
	start    Position // of this life

	mu       sync.Mutex
	segments []*segment // ascending; the last one is written to unless it has no room
	spares   []*segment // allocated for later
	// nextNumber is what the next segment is called; numbers are never used
	// twice.
	nextNumber int64
	open       int64 // calls begun and not ended in this life
	scratch    []byte
	failed     error // once set, nothing is accepted any more
	dead       bool  // failed for good, and Fatal knows

	spareAsked bool
	attempts   int64 // to allocate a segment, whatever came of them
	noRoom     error // why the last of them failed; nil when it did not
	roomAsked  sync.Cond
	roomMade   sync.Cond // attempts, or failed, has changed

	// syncing says that files are being synced. Those of segments released
	// meanwhile are closed after it: a sync of a closed file fails as that of a
	// broken disk does, or is one of another file.
	syncing  bool
	released []File

	next  *batch        // what was appended since the last sync began
	asked chan struct{} // a token when somebody waits for the next sync
	due   bool          // tick will ask for it within the interval
	tick  *time.Timer

	closed  chan struct{}
	loops   sync.WaitGroup
	changed chan struct{} // a token when something was appended and a reader waits
	waiting atomic.Bool
	stats   counters
}

// segment is one file. Everything but its number and file is guarded by
// Spool.mu.
type segment struct {
	number int64
	file   File
	end    int64 // of what is written
	limit  int64 // of what may be: end in a segment of an earlier life
	size   int64 // of the file
	dirty  bool  // written since the last sync began
	// remains is up to where a failed write may have left bytes behind end.
	remains int64
	// damage is where unreadable bytes that are kept aside begin, and the next
	// entry behind them.
	damage map[int64]int64
}

type counters struct {
	fsyncs, quarantined atomic.Int64
	lastSync            atomic.Int64 // nanoseconds
}

// Stats are figures about a spool.
type Stats struct {
	Segments    int
	Bytes       int64 // allocated, spare segments included
	Open        int64 // calls begun and not ended
	Fsyncs      int64
	LastSync    time.Duration
	Quarantined int64 // damaged places found
}

// Open takes the directory, recovers what is in it, and readies it for
// appending. It fails with ErrLocked when another process has it. A spool
// that is full opens all the same, for only shipping can make room: Begin is
// then refused until Release has deleted something.
func Open(o Options) (*Spool, error) {
	if o.Fsync == "" {
		o.Fsync = Always
	}
	if o.Segment == 0 {
		o.Segment = DefaultSegment
	}
	if o.Bound == 0 {
		o.Bound = DefaultBound
	}
	if o.Segment < minSegment || o.Bound < 2*o.Segment {
		return nil, fmt.Errorf("spool: segments of %d bytes in %d bytes are too small", o.Segment, o.Bound)
	}
	unlock, err := o.FS.Lock()
	if err != nil {
		return nil, err
	}
	s := &Spool{Options: o, unlock: unlock, changed: make(chan struct{}, 1), asked: make(chan struct{}, 1), next: newBatch(), closed: make(chan struct{})}
	s.roomAsked.L, s.roomMade.L = &s.mu, &s.mu
	if err := s.recover(); err != nil {
		return nil, errors.Join(err, s.closeFiles(), unlock())
	}
	if o.ReadOnly {
		s.failed = errors.New("spool: open for reading only")
	} else if err := s.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("spool: first segment: %w", err), s.closeFiles(), unlock())
	}
	s.start = s.tail()
	return s, nil
}

// begin makes the first segment of this life and starts the loops.
func (s *Spool) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allocate()
	switch {
	case s.noRoom == nil:
		if err := s.roll(); err != nil {
			return err
		}
	case errors.Is(s.noRoom, ErrFull) && len(s.segments) > 0:
		s.Log.Warn("the spool is full; calls are refused until it is shipped", "segments", len(s.segments))
	default:
		return s.noRoom
	}
	s.loops.Go(s.allocateLoop)
	s.loops.Go(s.syncLoop)
	return nil
}

// Instance is the id of the directory. It is made once and outlives
// restarts.
func (s *Spool) Instance() string { return s.instance }

// Start is where this life of the spool begins: entries before it are of
// earlier lives.
func (s *Spool) Start() Position { return s.start }

// Stats are the figures of the moment.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Segments: len(s.segments), Bytes: s.allocated(), Open: s.open,
		Fsyncs: s.stats.fsyncs.Load(), LastSync: time.Duration(s.stats.lastSync.Load()), Quarantined: s.stats.quarantined.Load(),
	}
}

// Close refuses further entries, syncs what is written, waits for the
// spool's goroutines and releases the directory. It is called once.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.failed == nil {
		s.failed = ErrClosed
	}
	if n := len(s.segments); n > 0 {
		s.clean(s.segments[n-1])
	}
	s.roomAsked.Broadcast()
	s.roomMade.Broadcast()
	s.mu.Unlock()
	close(s.closed) // nothing is appended any more
	s.loops.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tick != nil {
		s.tick.Stop()
	}
	var err error
	if s.dead {
		err = s.failed
	}
	return errors.Join(err, s.closeFiles(), s.unlock())
}

func (s *Spool) closeFiles() error {
	var errs []error
	for _, seg := range s.segments {
		errs = append(errs, seg.file.Close())
	}
	for _, seg := range s.spares {
		errs = append(errs, seg.file.Close())
	}
	for _, file := range s.released {
		errs = append(errs, file.Close())
	}
	s.segments, s.spares, s.released = nil, nil, nil
	return errors.Join(errs...)
}

// tail is just behind the last entry.
func (s *Spool) tail() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 0 {
		return Position{}
	}
	last := s.segments[len(s.segments)-1]
	return Position{last.number, last.end}
}

// Tail is just behind the last entry appended so far.
func (s *Spool) Tail() Position { return s.tail() }

const suffix = ".wal"

func fileName(number int64) string { return fmt.Sprintf("%010d%s", number, suffix) }

// numbers lists the segments in the directory, ascending.
func (s *Spool) numbers() ([]int64, error) {
	names, err := s.FS.List()
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	var numbers []int64
	for _, name := range names {
		text, found := strings.CutSuffix(name, suffix)
		n, err := strconv.ParseInt(text, 10, 64)
		if found && err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
