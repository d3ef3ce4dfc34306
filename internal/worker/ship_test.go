package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/spool"
	"modelgate/internal/store"
)

func wantRow(t *testing.T, l *ledger, want modelgate.UsageRow) {
	t.Helper()
	got, ok := l.row(want.ID)
	if !ok {
		t.Fatalf("call %s has no row", want.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("row (-want +got):\n%s", diff)
	}
}

func wantEnded(t *testing.T, l *ledger, n int) {
	t.Helper()
	wantRow(t, l, modelgate.Row(call(n), outcome(n)))
}

func TestShipsEveryRowInOrder(t *testing.T) {
	t.Parallel()
	l := newLedger()
	f := begin(t, t.TempDir(), l).run(t)
	const calls = 2*shipRows + 3
	for n := range calls {
		f.begins(t, n)
		f.ends(t, n)
	}
	f.flush(t)
	if l.count() != calls {
		t.Fatalf("%d rows, want %d", l.count(), calls)
	}
	for n := range calls {
		wantEnded(t, l, n)
		if l.order[n] != call(n).ID {
			t.Fatalf("row %d is of another call", n)
		}
	}
	if most := slices.Max(l.batches); most > shipRows {
		t.Errorf("a batch has %d rows, want at most %d", most, shipRows)
	}
	if st := f.shipper.Stats(); st.Rows != calls || st.Quarantined != 0 || st.FailingFor != 0 {
		t.Errorf("Stats = %+v", st)
	}
	if got := f.shipper.Backlog(); got != 0 {
		t.Errorf("Backlog = %d after Flush, want 0", got)
	}
}

func TestFlushOfAnEmptySpoolReturnsAtOnce(t *testing.T) {
	t.Parallel()
	f := begin(t, t.TempDir(), newLedger())
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing ships, and there is no time to wait
	if err := f.shipper.Flush(ctx); err != nil {
		t.Errorf("Flush = %v", err)
	}
}

func TestFlushDoesNotWaitForABatchToGather(t *testing.T) {
	t.Parallel()
	l := newLedger()
	f := begin(t, t.TempDir(), l)
	f.shipper.gather = time.Hour
	f.run(t)
	for n := range 3 {
		f.begins(t, n)
		f.ends(t, n)
		f.flush(t)
		wantEnded(t, l, n)
	}
}

func TestFlushEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.gate = make(chan struct{})
	f := begin(t, t.TempDir(), l).run(t)
	f.begins(t, 1)
	f.ends(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := f.shipper.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush = %v, want the context's error", err)
	}
}

func TestBackoffDoublesToItsBound(t *testing.T) {
	t.Parallel()
	l := newLedger()
	f := begin(t, t.TempDir(), l)
	tries := 0
	l.set(func() (error, bool) {
		if tries++; tries <= 10 {
			return errDown, false
		}
		return nil, false
	})
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(f.pauses) != 10 {
		t.Fatalf("%d pauses, want 10", len(f.pauses))
	}
	full := firstRetry
	for i, d := range f.pauses {
		if d < full/2 || d >= full {
			t.Errorf("pause %d is %v, want [%v, %v)", i, d, full/2, full)
		}
		full = min(2*full, lastRetry)
	}
	if got := f.log.list(); len(got) != 1 {
		t.Errorf("logged %q, want one line for one outage", got)
	}
}

// A database that commits and then fails to say so must not be given the
// batch's successors only.
func TestOutageLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"refused": false, "answer lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			f := begin(t, t.TempDir(), l)
			tries := 0
			l.set(func() (error, bool) {
				if tries++; tries%3 != 0 && tries > 1 {
					return errDown, committed
				}
				return nil, false
			})
			f.run(t)
			for n := range 50 {
				f.begins(t, n)
				f.ends(t, n)
			}
			f.flush(t)
			if l.count() != 50 {
				t.Fatalf("%d rows, want 50", l.count())
			}
			for n := range 50 {
				wantEnded(t, l, n)
			}
		})
	}
}

// The batch under way when Run is told to end is not booked yet, although it
// has been read.
func TestDrainBooksWhatRunHadRead(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.gate = make(chan struct{})
	dir := t.TempDir()
	f := begin(t, dir, l).run(t)
	f.begins(t, 1)
	f.ends(t, 1)
	// Run is in Record, or will be, and cannot get through the gate.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	_ = f.shipper.Flush(ctx)
	cancel()
	f.stop()
	f.stop = func() {}
	f.begins(t, 2)
	f.ends(t, 2)
	close(l.gate)
	if err := f.shipper.Drain(t.Context()); err != nil {
		t.Fatalf("Drain: %v", err)
	}
	wantEnded(t, l, 1)
	wantEnded(t, l, 2)
	f.end()
	f = begin(t, dir, l).run(t)
	f.flush(t)
	if l.count() != 2 {
		t.Errorf("%d rows after another life, want 2", l.count())
	}
}

func TestPoisonedRowsAreKeptAside(t *testing.T) {
	t.Parallel()
	l := newLedger()
	dir := t.TempDir()
	f := begin(t, dir, l)
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	const calls = 37
	bad := []int{0, 17, 18, 36}
	for _, n := range bad {
		l.poisoned[call(n).ID] = true
	}
	for n := range calls {
		f.begins(t, n)
		f.ends(t, n)
	}
	if err := f.shipper.Drain(t.Context()); err != nil {
		t.Fatalf("Drain: %v", err)
	}
	for n := range calls {
		if !slices.Contains(bad, n) {
			wantEnded(t, l, n)
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, "quarantine", "row-"+call(n).ID.String()+".bin"))
		if err != nil || len(content) == 0 {
			t.Errorf("refused row %d: %d bytes kept, %v", n, len(content), err)
		}
	}
	if l.count() != calls-len(bad) {
		t.Errorf("%d rows, want %d", l.count(), calls-len(bad))
	}
	if got := f.shipper.Stats().Quarantined; got != int64(len(bad)) {
		t.Errorf("Quarantined = %d, want %d", got, len(bad))
	}
	if got := f.log.list(); len(got) != len(bad) {
		t.Errorf("logged %q, want a line for each of %d", got, len(bad))
	}
}

func TestTwoShippersOfOneSpoolAreAFault(t *testing.T) {
	t.Parallel()
	l := newLedger()
	f := begin(t, t.TempDir(), l)
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.begins(t, 1)
	f.ends(t, 1)
	l.progress, l.known = store.Position{Segment: 1 << 40}, true
	if err := f.shipper.Drain(t.Context()); !errors.Is(err, store.ErrBehind) {
		t.Errorf("Drain = %v, want ErrBehind", err)
	}
	if l.count() != 0 {
		t.Error("a row was booked")
	}
}

func TestUnreadableEntriesAreLoud(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLedger()
	f := begin(t, dir, l)
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := outcome(1)
	good := spool.AppendEnd(nil, &end)
	id := func(n int) *[16]byte { u := [16]byte(call(n).ID); return &u }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(f.spool.Begin(id(1), []byte("no BEGIN"))) // so its END has none
	must(f.spool.End(id(1), good))
	f.begins(t, 2)
	must(f.spool.End(id(2), []byte("no END")))
	f.begins(t, 3)
	f.spool.Mark(id(3), []byte("no MARK"))
	f.ends(t, 3)
	must(f.shipper.Drain(t.Context()))

	if got := f.shipper.Stats().Quarantined; got != 4 {
		t.Errorf("Quarantined = %d, want 4", got)
	}
	if got := f.log.list(); len(got) != 4 {
		t.Errorf("logged %q, want 4 lines", got)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "quarantine", "entry-*.bin"))
	if err != nil || len(kept) != 4 {
		t.Errorf("kept %q, %v; want 4 files", kept, err)
	}
	wantRow(t, l, modelgate.Row(call(2), modelgate.CallEnd{StatusCode: 502, ParseStatus: modelgate.ParseUnknown}))
	wantEnded(t, l, 3)
	if l.count() != 2 {
		t.Errorf("%d rows, want 2", l.count())
	}
	if len(f.shipper.open) != 0 {
		t.Errorf("%d calls still hold their segments", len(f.shipper.open))
	}
}

func TestSegmentsOfOpenCallsStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLedger()
	f := begin(t, dir, l).run(t)
	f.begins(t, 0)
	n := 1
	fill := func(segments int) {
		for have := f.spool.Tail().Segment; f.spool.Tail().Segment < have+int64(segments); n++ {
			f.begins(t, n)
			f.ends(t, n)
		}
		f.flush(t)
	}
	fill(3)
	if got := f.spool.Stats().Segments; got < 4 {
		t.Fatalf("%d segments while the first call is open, want all 4", got)
	}
	if got := cap(f.shipper.order); got > 4*shipRows {
		t.Errorf("room for %d calls is kept while one is open", got)
	}
	f.ends(t, 0)
	fill(1)
	f.stop()
	f.stop = func() {}
	if got := f.spool.Stats().Segments; got > 2 {
		t.Errorf("%d segments after the call has ended", got)
	}
	for i := range n {
		wantEnded(t, l, i)
	}
}
