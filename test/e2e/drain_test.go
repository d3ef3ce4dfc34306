package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// open makes so many callers each begin a stream of a length, and returns
// when the provider has all of them. The calls come when they have ended.
func (w *world) open(streams int, length time.Duration) <-chan []*call {
	w.t.Helper()
	const gap = 50 * time.Millisecond
	arrived, all := new(atomic.Int64), make(chan struct{})
	fn := func() {
		if arrived.Add(1) == int64(streams) {
			close(all)
		}
	}
	w.upstream.arrived.Store(&fn)
	defer w.upstream.arrived.Store(nil)
	made := make(chan []*call, 1)
	l := w.load(&load{callers: streams, calls: streams, first: 1 << 30, mix: mix{
		only: streamed, directives: fmt.Sprintf(" [[words=%d]] [[gap=%v]]", length/gap, gap),
	}})
	go func() { made <- l.run(w.t.Context()) }()
	select {
	case <-all:
	case <-time.After(patience):
		w.t.Fatalf("only %d of %d streams began", arrived.Load(), streams)
	}
	return made
}

// ready is the status of the readiness probe, 0 when nobody answers.
func (w *world) ready() int {
	resp, err := http.Get(w.URL + "/readyz")
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// drainDelay sets how long the gateway goes on serving after a signal.
func (w *world) drainDelay(d time.Duration) {
	w.t.Helper()
	text, err := os.ReadFile(w.ConfigFile)
	if err != nil {
		w.t.Fatal(err)
	}
	changed := strings.Replace(string(text), "drain_delay: 0s", "drain_delay: "+d.String(), 1)
	if changed == string(text) {
		w.t.Fatalf("no drain_delay to change in\n%s", text)
	}
	if err := os.WriteFile(w.ConfigFile, []byte(changed), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.Kill()
	w.restart()
}

// TestBooksDrain ends the gateway while it serves streams and a steady load.
func TestBooksDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.GatewayOptions{})
	const delay = 5 * time.Second // a busy machine sees it while it lasts
	w.drainDelay(delay)
	streams := w.open(200, size(8*time.Second, 25*time.Second))
	ctx, stop := context.WithCancel(t.Context())
	steady, made := w.load(&load{rate: 200, reached: make(chan int64)}), make(chan []*call, 1)
	go func() { made <- steady.run(ctx) }()
	steady.until(t.Context(), 100)

	signalled := time.Now()
	w.Signal(syscall.SIGTERM)
	unready := w.eventually("readyz says no", delay, func() bool { return w.ready() == http.StatusServiceUnavailable })
	closed := w.eventually("the listener is closed", patience, func() bool { return w.ready() == 0 })
	stop()
	calls := <-made
	for _, c := range calls {
		if c.failed() && c.status != 0 { // the others came too late for the listener
			t.Errorf("a call of the steady load was cut: %d, status %d, %v", c.mark, c.status, c.err)
		}
	}
	opened := <-streams
	for _, c := range opened {
		if !c.answered() {
			t.Errorf("a stream was cut: %d, status %d, %v", c.mark, c.status, c.err)
		}
	}
	select {
	case <-w.Exited():
	case <-time.After(patience):
		t.Fatal("the gateway does not end")
	}
	ended := time.Since(signalled)
	if code := w.ExitCode(); code != 0 {
		t.Errorf("the gateway ended with %d, want 0", code)
	}
	w.upstream.close()
	v := w.verdict(append(calls, opened...))
	if v.exact != v.served || v.answered != v.served {
		t.Errorf("%d answers and %d exact rows of %d calls served", v.answered, v.exact, v.served)
	}
	v.table(t.Output(), "SIGTERM with 200 open streams and 200 calls/s", "readyz 503 after ms", fmt.Sprint(unready.Milliseconds()),
		"listener closed after s", fmt.Sprintf("%.2f", (unready+closed).Seconds()), "ended after s", fmt.Sprintf("%.2f", ended.Seconds()), "exit code", fmt.Sprint(w.ExitCode()))
}

// TestBooksSecondSignal does not wait for the streams.
func TestBooksSecondSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.GatewayOptions{})
	streams := w.open(100, 30*time.Second)
	w.Signal(syscall.SIGTERM)
	w.eventually("the listener is closed", patience, func() bool { return w.ready() == 0 })
	select {
	case <-w.Exited():
		t.Fatal("the gateway ended on the first signal, its streams open")
	default:
	}
	signalled := time.Now()
	w.Signal(syscall.SIGTERM)
	select {
	case <-w.Exited():
	case <-time.After(patience):
		t.Fatal("the gateway does not end on the second signal")
	}
	ended := time.Since(signalled)
	calls := <-streams
	w.restart()
	w.settle()
	v := w.verdictOfCut(calls)
	if v.rows != len(calls) {
		t.Errorf("%d rows of %d calls", v.rows, len(calls))
	}
	v.table(t.Output(), "second SIGTERM with 100 open streams", "ended after ms", fmt.Sprint(ended.Milliseconds()))
}

// TestBooksGraceEnds has streams outlast the grace.
func TestBooksGraceEnds(t *testing.T) {
	t.Parallel()
	if !*full {
		t.Skip("takes the whole grace of 30 s; run with -full")
	}
	w := newWorld(t, testkit.GatewayOptions{})
	streams := w.open(100, 45*time.Second)
	signalled := time.Now()
	w.Signal(syscall.SIGTERM)
	calls := <-streams
	select {
	case <-w.Exited():
	case <-time.After(patience):
		t.Fatal("the gateway does not end")
	}
	ended := time.Since(signalled)
	if code := w.ExitCode(); code != 0 {
		t.Errorf("the gateway ended with %d, want 0", code)
	}
	w.upstream.close()
	v := w.verdictOfCut(calls)
	if v.rows != len(calls) || v.partial != len(calls) {
		t.Errorf("%d rows, %d of them partial, of %d calls", v.rows, v.partial, len(calls))
	}
	v.table(t.Output(), "SIGTERM with 100 streams that outlast the grace", "ended after s", fmt.Sprintf("%.2f", ended.Seconds()), "exit code", fmt.Sprint(w.ExitCode()))
}
