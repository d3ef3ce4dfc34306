package worker

import (
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"modelgate"
)

// world is a random schedule under way: what was promised, and the process
// of the moment.
type world struct {
	t      *rapid.T
	tb     testing.TB
	dir    string
	ledger *ledger
	life   *life
	next   int                        // number of the next call
	open   map[int]*modelgate.CallEnd // calls of this life without END, and their last mark
	want   map[int]modelgate.CallEnd  // calls whose row is decided
	faults int                        // batches that will still fail
	losing bool                       // they fail after their commit
}

func (w *world) fault() (error, bool) {
	if w.faults == 0 {
		return nil, false
	}
	w.faults--
	return errDown, w.losing
}

// start begins a life. Whatever the last one left open was interrupted.
func (w *world) start() {
	for n, mark := range w.open {
		w.want[n] = modelgate.InterruptedEnd(new(call(n)), mark)
	}
	clear(w.open)
	w.life = begin(w.tb, w.dir, w.ledger)
	if err := w.life.shipper.Recover(w.tb.Context()); err != nil {
		w.t.Fatalf("Recover: %v", err)
	}
	for n, end := range w.want {
		w.check(n, end)
	}
	if w.ledger.count() != len(w.want) {
		w.t.Fatalf("%d rows after recovery, want %d", w.ledger.count(), len(w.want))
	}
}

func (w *world) check(n int, end modelgate.CallEnd) {
	got, ok := w.ledger.row(call(n).ID)
	if !ok {
		w.t.Fatalf("call %d has no row", n)
	}
	if got.CallEnd != end {
		w.t.Fatalf("call %d: row %+v, want %+v", n, got.CallEnd, end)
	}
}

func (w *world) anyOpen() int {
	if len(w.open) == 0 {
		w.t.Skip("no call is open")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(w.open))).Draw(w.t, "call")
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"begin": func(*rapid.T) {
			if len(w.open) > 30 {
				w.t.Skip("the spool has little room")
			}
			for range rapid.IntRange(1, 20).Draw(w.t, "calls") {
				w.life.begins(w.tb, w.next)
				w.open[w.next] = nil
				w.next++
			}
		},
		"mark": func(*rapid.T) {
			n := w.anyOpen()
			seen := outcome(rapid.IntRange(0, 1000).Draw(w.t, "seen"))
			w.life.calls.Mark(call(n).ID, &seen)
			w.open[n] = &seen
		},
		"end": func(*rapid.T) {
			n := w.anyOpen()
			w.life.ends(w.tb, n)
			delete(w.open, n)
			w.want[n] = outcome(n)
		},
		"ship": func(*rapid.T) {
			if err := w.life.shipper.Drain(w.tb.Context()); err != nil {
				w.t.Fatalf("Drain: %v", err)
			}
			if err := w.life.spool.Release(w.life.shipper.needed()); err != nil {
				w.t.Fatalf("Release: %v", err)
			}
		},
		"give up": func(*rapid.T) {
			// A batch is read and the process is told to end before it is booked.
			entries, err := w.life.shipper.reader.Poll(rapid.IntRange(1, shipRows).Draw(w.t, "entries"))
			if err != nil {
				w.t.Fatalf("Poll: %v", err)
			}
			w.life.shipper.decode(entries)
		},
		"fail": func(*rapid.T) {
			w.faults = rapid.IntRange(1, 4).Draw(w.t, "faults")
			w.losing = rapid.Bool().Draw(w.t, "losing")
		},
		"crash": func(*rapid.T) {
			w.life.end()
			w.start()
		},
	}
}

// Whatever the order of calls, crashes and failing batches: each call that
// began has one row, the exact one if it ended.
func TestAnyScheduleBooksEachCallOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "spool")
		if err != nil {
			rt.Fatal(err)
		}
		w := &world{t: rt, tb: t, dir: dir, ledger: newLedger(), open: map[int]*modelgate.CallEnd{}, want: map[int]modelgate.CallEnd{}}
		w.ledger.fault = w.fault
		w.start()
		rt.Repeat(w.actions())
		w.life.end()
		w.start()
		w.life.end()
	})
}
