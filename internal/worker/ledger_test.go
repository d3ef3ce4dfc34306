package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"modelgate"
	"modelgate/internal/spool"
	"modelgate/internal/store"
)

var errDown = errors.New("the database does not answer")

// ledger is a database with the rules of store.Record: all of a batch or
// nothing, each id once, progress that never goes back.
type ledger struct {
	mu       sync.Mutex
	rows     map[modelgate.UUID]modelgate.UsageRow
	order    []modelgate.UUID // as inserted
	batches  []int            // rows of each committed batch
	progress store.Position
	known    bool
	poisoned map[modelgate.UUID]bool
	// fault is asked before each batch: the error to give, and whether the
	// batch is committed all the same, as when an answer is lost.
	fault func() (err error, committed bool)
	// gate, where set, is received from before each batch.
	gate chan struct{}
}

func newLedger() *ledger {
	return &ledger{rows: map[modelgate.UUID]modelgate.UsageRow{}, poisoned: map[modelgate.UUID]bool{}}
}

func (l *ledger) Record(ctx context.Context, b store.Batch) (int, error) {
	if l.gate != nil {
		select {
		case <-l.gate:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var fault error
	if l.fault != nil {
		err, committed := l.fault()
		if err != nil && !committed {
			return 0, err
		}
		fault = err
	}
	at, was := spool.Position(b.Progress), spool.Position(l.progress)
	if l.known && at.Before(was) {
		return 0, store.ErrBehind
	}
	for _, r := range b.Rows {
		if l.poisoned[r.ID] {
			return 0, &pgconn.PgError{Code: "23514", Message: "check constraint"}
		}
	}
	l.progress, l.known = b.Progress, true
	l.batches = append(l.batches, len(b.Rows))
	inserted := 0
	for _, r := range b.Rows {
		if _, there := l.rows[r.ID]; there {
			continue
		}
		inserted++
		l.rows[r.ID] = r
		l.order = append(l.order, r.ID)
	}
	return inserted, fault
}

func (l *ledger) SpoolProgress(context.Context, string) (store.Position, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != nil {
		if err, _ := l.fault(); err != nil {
			return store.Position{}, false, err
		}
	}
	return l.progress, l.known, nil
}

func (l *ledger) set(fault func() (error, bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = fault
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.rows)
}

func (l *ledger) row(id modelgate.UUID) (modelgate.UsageRow, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rows[id]
	return r, ok
}

// life is one life of a process: a spool, its calls and its shipper.
type life struct {
	spool   *spool.Spool
	calls   *spool.Calls
	shipper *Shipper
	pauses  []time.Duration // between tries
	log     *logged
	stop    func()
}

const segment = 256 << 10 // bytes: room for some sixty open calls

// begin opens the directory as a new process would, without recovering. No
// pause between tries takes time.
func begin(t testing.TB, dir string, l Ledger) *life {
	t.Helper()
	log := &logged{}
	s, err := spool.Open(spool.Options{
		FS: spool.Dir(dir), Log: slog.New(log), Fsync: spool.Interval, Segment: segment,
		NewInstance: func() string { return "instance" },
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &life{spool: s, calls: spool.NewCalls(s), log: log}
	f.shipper = NewShipper(s, l, slog.New(log), nil)
	f.shipper.wait = func(ctx context.Context, d time.Duration) error {
		f.pauses = append(f.pauses, d)
		return ctx.Err()
	}
	f.stop = func() {}
	t.Cleanup(f.end)
	return f
}

// run recovers and then ships in the background until end.
func (f *life) run(t testing.TB) *life {
	t.Helper()
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatalf("Recover: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.shipper.Run(ctx) }()
	f.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	return f
}

// end stops the loop and closes the spool without shipping more: a crash, as
// far as the entries are concerned.
func (f *life) end() {
	f.stop()
	f.stop = func() {}
	if f.spool != nil {
		_ = f.spool.Close()
		f.spool = nil
	}
}

func (f *life) flush(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := f.shipper.Flush(ctx); err != nil {
		t.Fatalf("Flush: %v", err)
	}
}

func (f *life) begins(t testing.TB, n int) modelgate.UUID {
	t.Helper()
	b := call(n)
	if err := f.calls.Begin(&b); err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return b.ID
}

func (f *life) ends(t testing.TB, n int) {
	t.Helper()
	e := outcome(n)
	if err := f.calls.End(call(n).ID, &e); err != nil {
		t.Fatalf("End: %v", err)
	}
}

func call(n int) modelgate.CallBegin {
	var id modelgate.UUID
	id[6], id[14], id[15], id[13] = 0x70, byte(n>>8), byte(n), byte(n>>16)
	return modelgate.CallBegin{
		ID: id, At: time.UnixMicro(int64(1_700_000_000_000_000 + n)).UTC(), ClientID: "c", KeyID: "k",
		Provider: "p", Model: "m", Door: "/v1/messages",
	}
}

func outcome(n int) modelgate.CallEnd {
	return modelgate.CallEnd{
		StatusCode: 200, ParseStatus: modelgate.ParseOK, Cost: modelgate.Nano(n),
		Usage: modelgate.Usage{Input: int64(n), Output: 7}, LatencyMS: 3,
	}
}

// logged collects what was logged as an error.
type logged struct {
	mu     sync.Mutex
	errors []string
}

func (l *logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errors = append(l.errors, r.Message)
	}
	return nil
}
func (l *logged) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logged) WithGroup(string) slog.Handler      { return l }

func (l *logged) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.errors...)
}
