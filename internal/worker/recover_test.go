package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

func TestRecoverBooksWhatIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLedger()
	f := begin(t, dir, l).run(t)
	f.begins(t, 1)
	f.ends(t, 1)
	f.flush(t)
	f.stop()
	f.stop = func() {}
	f.begins(t, 2) // ended, not shipped
	f.ends(t, 2)
	f.begins(t, 3) // open, nothing known
	f.begins(t, 4) // open, marked twice
	seen := outcome(40)
	f.calls.Mark(call(4).ID, &seen)
	seen = outcome(41)
	f.calls.Mark(call(4).ID, &seen)
	f.end()

	f = begin(t, dir, l)
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatalf("Recover: %v", err)
	}
	wantEnded(t, l, 1)
	wantEnded(t, l, 2)
	wantRow(t, l, modelgate.Row(call(3), modelgate.CallEnd{StatusCode: 502, ParseStatus: modelgate.ParseUnknown}))
	marked := outcome(41)
	marked.StatusCode, marked.ParseStatus = 502, modelgate.ParsePartial
	wantRow(t, l, modelgate.Row(call(4), marked))
	if l.count() != 4 || f.shipper.Stats().Rows != 3 {
		t.Errorf("%d rows, %d of them new; want 4 and 3", l.count(), f.shipper.Stats().Rows)
	}
	if got := f.spool.Stats().Segments; got != 1 {
		t.Errorf("%d segments after recovery, want only the new one", got)
	}
}

// What is booked already must not be booked again even where its row has
// been deleted since.
func TestRecoverLeavesBookedEntriesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLedger()
	f := begin(t, dir, l)
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.begins(t, 1)
	f.ends(t, 1)
	if err := f.shipper.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.end()
	clear(l.rows)
	f = begin(t, dir, l)
	if err := f.shipper.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.count() != 0 {
		t.Error("a booked entry was booked again")
	}
}

func TestRecoverRefusesAnOlderCopy(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.progress, l.known = store.Position{Segment: 9, Offset: 24}, true
	f := begin(t, t.TempDir(), l)
	err := f.shipper.Recover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "older copy") {
		t.Errorf("Recover = %v, want a refusal", err)
	}
}

func TestRecoverWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.set(func() (error, bool) { return errDown, false })
	f := begin(t, t.TempDir(), l)
	ctx, cancel := context.WithCancel(t.Context())
	f.shipper.wait = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	if err := f.shipper.Recover(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Recover = %v, want the context's error", err)
	}
}
