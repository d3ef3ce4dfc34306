package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/store/billing"
)

// outbox is one queue with some events.
type outbox struct {
	mu      sync.Mutex
	due     []billing.Sending
	settled []billing.Settled
	rest    time.Time
	done    chan struct{} // gets a token for each queue that is given back
	claimed bool
}

func newOutbox(events int) *outbox {
	o := &outbox{done: make(chan struct{}, 100)}
	for i := range events {
		o.due = append(o.due, billing.Sending{UsageID: modelgate.UsageID(fmt.Sprint("u", i)), Value: 1, CreatedAt: noon, Attempts: 1})
	}
	return o
}

func (o *outbox) FreeQueues(context.Context, string) error { return nil }

func (o *outbox) ClaimQueues(_ context.Context, holder string, most int, _ time.Duration) ([]billing.Queue, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.due) == 0 || most == 0 || o.claimed {
		return nil, nil
	}
	o.claimed = true
	l := aQueue()
	l.Holder = holder
	return []billing.Queue{l}, nil
}

func (o *outbox) BeginSending(_ context.Context, _ billing.Queue, _ int64, most int) ([]billing.Sending, int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(most, len(o.due))
	out := o.due[:n]
	o.due = o.due[n:]
	return out, 0, nil
}

func (o *outbox) FinishSending(_ context.Context, _ billing.Queue, s []billing.Settled, rest time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claimed = false
	o.settled, o.rest = append(o.settled, s...), rest
	o.done <- struct{}{}
	return nil
}

// outcomes are what became of the events.
func (o *outbox) outcomes() (all []string) {
	for _, s := range o.settled {
		all = append(all, fmt.Sprint(s.UsageID, " ", s.Status, " ", s.Attempts))
	}
	return all
}

// aQueue is claimed at noon.
func aQueue() billing.Queue {
	return billing.Queue{ClientID: "c", CustomerID: "cus", Until: noon.Add(exportLease)}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// exporter sends the outbox's events with a report of the test's own.
func exporter(o *outbox, report func(n int) error) *Exporter {
	n := 0
	return &Exporter{
		Ledger: o, Holder: "me", Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler), Count: func(string) {},
		Key: func(context.Context, modelgate.ClientID) (ExportKey, error) { return ExportKey{"sk", 1}, nil },
		Report: func(context.Context, string, processor.Event) error {
			n++
			return report(n)
		},
		rate: rate.NewLimiter(rate.Every(exportGap), 1),
	}
}

// answers makes the errors that the processor's client makes.
func answers(t *testing.T, status int, body string) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	return processor.New(processor.Options{BaseURL: server.URL, Meter: "m"}).Report(t.Context(), "sk", processor.Event{ID: "u"})
}

func absent(t *testing.T) error {
	t.Helper()
	return processor.New(processor.Options{BaseURL: "http://127.0.0.1:1", Meter: "m"}).Report(t.Context(), "sk", processor.Event{ID: "u"})
}

func TestExporterJudges(t *testing.T) {
	t.Parallel()
	before := noon.Add(-time.Hour)
	for _, c := range []struct {
		name   string
		err    error
		unsure time.Time // before the try
		want   billing.Settled
	}{
		{"sent", nil, before, billing.Settled{Status: modelgate.ExportSent, At: noon}},
		{"refused", answers(t, 404, ""), time.Time{}, billing.Settled{Status: modelgate.ExportFailed, LastError: "the processor answered 404"}},
		{"refused, but maybe counted before", answers(t, 404, ""), before,
			billing.Settled{Sending: billing.Sending{UnsureAt: before}, Status: modelgate.ExportFailed, LastError: "the processor answered 404"}},
		{"throttled", answers(t, 429, ""), time.Time{}, billing.Settled{Status: modelgate.ExportPending, At: noon.Add(20 * time.Second), LastError: "the processor answered 429"}},
		{"broken", answers(t, 500, ""), time.Time{},
			billing.Settled{Sending: billing.Sending{UnsureAt: noon}, Status: modelgate.ExportPending, At: noon.Add(20 * time.Second), LastError: "the processor answered 500"}},
		{"cut, the second time", answers(t, 0, ""), before,
			billing.Settled{Sending: billing.Sending{UnsureAt: before}, Status: modelgate.ExportPending, At: noon.Add(20 * time.Second), LastError: "the processor did not answer"}},
		{"absent", absent(t), time.Time{}, billing.Settled{Status: modelgate.ExportPending, At: noon.Add(20 * time.Second), LastError: awayText}},
		{"something else", errors.New("x"), time.Time{}, billing.Settled{Sending: billing.Sending{UnsureAt: noon}, Status: modelgate.ExportPending, At: noon.Add(20 * time.Second), LastError: "x"}},
	} {
		e := exporter(newOutbox(0), func(int) error { return c.err })
		e.Pause = modelgate.ExportPause
		c.want.Attempts = 3
		got := e.try(t.Context(), billing.Queue{}, ExportKey{}, billing.Sending{Attempts: 3, UnsureAt: c.unsure})
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Once the processor is away, the rest of a batch is put back untried.
func TestExporterRestsWhileTheProcessorIsAway(t *testing.T) {
	t.Parallel()
	o := newOutbox(4)
	away := absent(t)
	tries := 0
	e := exporter(o, func(n int) error {
		tries = n
		if n == 2 {
			return away
		}
		return nil
	})
	e.Pause = modelgate.ExportPause
	e.send(t.Context(), aQueue(), time.Now())
	got := o.outcomes()
	want := []string{"u0 sent 1", "u1 pending 1", "u2 pending 0", "u3 pending 0"}
	if !slices.Equal(got, want) || tries != 2 || !o.rest.Equal(noon.Add(5*time.Second)) {
		t.Errorf("%d tries, settled %q, rest %v; want %q", tries, got, o.rest, want)
	}
}

// What was judged fit to be sent is so only while the claim lasts: where the
// machine sleeps in the middle of a batch, or the database has taken its time,
// the rest has to be judged again.
func TestExporterStopsWithItsClaim(t *testing.T) {
	t.Parallel()
	want := []string{"u0 sent 1", "u1 pending 0", "u2 pending 0"}
	o := newOutbox(3)
	at := noon
	e := exporter(o, func(int) error { at = at.Add(25 * time.Hour); return nil })
	e.Now = func() time.Time { return at }
	e.send(t.Context(), aQueue(), time.Now())
	if got := o.outcomes(); !slices.Equal(got, want) {
		t.Errorf("a clock that jumps: %q, want %q", got, want)
	}
	o = newOutbox(1)
	e = exporter(o, func(int) error { t.Error("sent under a claim that is as good as over"); return nil })
	e.send(t.Context(), aQueue(), time.Now().Add(-exportLease/2-time.Second))
	if got := o.outcomes(); !slices.Equal(got, []string{"u0 pending 0"}) {
		t.Errorf("a slow database: %q", got)
	}
}

func TestExporterRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(120)
		e := exporter(o, func(int) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		began := time.Now()
		go func() { e.Run(ctx); close(ended) }()
		for range 3 { // batches, none of which waits for the next look
			<-o.done
		}
		took := time.Since(began)
		cancel()
		<-ended
		if len(o.settled) != 120 || took != 119*exportGap {
			t.Errorf("%d events are settled after %v, want 120, at 400 a second", len(o.settled), took)
		}
	})
}

// Lanes share the pace of their instance.
func TestExporterSpacesCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const queues, events = 8, 10
		e := exporter(newOutbox(0), func(int) error { return nil })
		began := time.Now()
		var senders sync.WaitGroup
		var mu sync.Mutex
		at := map[time.Duration]int{}
		e.Report = func(context.Context, string, processor.Event) error {
			mu.Lock()
			defer mu.Unlock()
			at[time.Since(began)]++
			return nil
		}
		for range queues {
			senders.Go(func() {
				due := newOutbox(events).due
				e.tryAll(t.Context(), aQueue(), ExportKey{}, due, func() bool { return false })
			})
		}
		senders.Wait()
		for i := range queues * events {
			if n := at[time.Duration(i)*exportGap]; n != 1 {
				t.Errorf("%d calls after %v, want 1", n, time.Duration(i)*exportGap)
			}
		}
	})
}

// Without a key nothing is tried, and nothing is lost.
func TestExporterWaitsForAKey(t *testing.T) {
	t.Parallel()
	o := newOutbox(1)
	e := exporter(o, func(int) error { t.Error("sent without a key"); return nil })
	e.Pause = modelgate.ExportPause
	var log strings.Builder
	e.Log = slog.New(slog.NewTextHandler(&log, nil))
	e.Key = func(context.Context, modelgate.ClientID) (ExportKey, error) {
		return ExportKey{}, errors.New("no master key")
	}
	e.send(t.Context(), aQueue(), time.Now())
	if len(o.due) != 1 || len(o.settled) != 0 || !o.rest.After(noon) || !strings.Contains(log.String(), "no master key") {
		t.Errorf("due %v, settled %v, rest %v, log %s", o.due, o.settled, o.rest, log.String())
	}
}
