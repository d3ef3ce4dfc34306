//go:build failpoint

package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"modelgate"
	"modelgate/internal/gateway"
	"modelgate/internal/processor"
	"modelgate/internal/spool"
	"modelgate/internal/store"
	"modelgate/internal/store/billing"
	"modelgate/internal/worker"
)

// What a test may set in the environment of a build with failpoints.
const (
	// failpointFile names a file that says name:count. The process kills
	// itself when it comes to that place for the count-th time, and removes
	// the file before, so that its next life goes on.
	failpointFile = "MODELGATE_FAILPOINT"
	// failpointSegment and failpointBound make a spool smaller than the
	// configuration allows; in bytes.
	failpointSegment = "MODELGATE_FAILPOINT_SEGMENT"
	failpointBound   = "MODELGATE_FAILPOINT_BOUND"
	// failpointPause is the first pause of a billing event that is sent again,
	// in milliseconds, doubled each time. Events are not spaced then.
	failpointPause = "MODELGATE_FAILPOINT_EXPORT_PAUSE"
)

// failpoints are places in the life of a call at which the process can be
// made to die: wrappers around what the parts are given, so that the parts
// know nothing of it.
type failpoints struct {
	lookup func(string) (string, bool)
	file   string
	name   string // of the armed place; "" is none
	left   *atomic.Int64
}

func newFailpoints(lookup func(string) (string, bool)) failpoints {
	f := failpoints{lookup: lookup, left: new(atomic.Int64)}
	f.file, _ = lookup(failpointFile)
	armed, err := os.ReadFile(f.file)
	if err != nil {
		return f
	}
	name, count, _ := strings.Cut(strings.TrimSpace(string(armed)), ":")
	if n, err := strconv.ParseInt(count, 10, 64); err == nil {
		f.name = name
		f.left.Store(n)
	}
	return f
}

// due reports whether this is the armed place, for the count-th time.
func (f failpoints) due(name string) bool { return f.name == name && f.left.Add(-1) == 0 }

// at ends the process here if it is to end here.
func (f failpoints) at(name string) {
	if f.due(name) {
		f.die()
	}
}

// around does something between the places name.before and name.after.
func around[T any](f failpoints, name string, do func() (T, error)) (T, error) {
	f.at(name + ".before")
	v, err := do()
	f.at(name + ".after")
	return v, err
}

// aroundError is around for what returns nothing else.
func aroundError(f failpoints, name string, do func() error) error {
	f.at(name + ".before")
	err := do()
	f.at(name + ".after")
	return err
}

func (f failpoints) die() {
	_ = os.Remove(f.file)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // nothing may happen between the signal's sending and its effect
}

func (f failpoints) number(name string, usual int64) int64 {
	text, _ := f.lookup(name)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return usual
}

// spool: write.before, write.torn, write.after, sync.before, sync.after,
// sync.fail, create.before, create.after, delete.before, delete.after.
func (f failpoints) spool(o spool.Options) spool.Options {
	o.Segment, o.Bound = f.number(failpointSegment, o.Segment), f.number(failpointBound, o.Bound)
	o.FS = failingDisk{o.FS, f}
	return o
}

type failingDisk struct {
	spool.FS
	fail failpoints
}

func (d failingDisk) Create(name string, size int64) (spool.File, error) {
	file, err := around(d.fail, "create", func() (spool.File, error) { return d.FS.Create(name, size) })
	return failingFile{file, d.fail}, err
}

func (d failingDisk) Open(name string) (spool.File, error) {
	file, err := d.FS.Open(name)
	return failingFile{file, d.fail}, err
}

func (d failingDisk) Remove(name string) error {
	return aroundError(d.fail, "delete", func() error { return d.FS.Remove(name) })
}

type failingFile struct {
	spool.File
	fail failpoints
}

func (f failingFile) WriteAt(b []byte, off int64) (int, error) {
	f.fail.at("write.before")
	if f.fail.due("write.torn") {
		_, _ = f.File.WriteAt(b[:len(b)/2], off)
		f.fail.die()
	}
	n, err := f.File.WriteAt(b, off)
	f.fail.at("write.after")
	return n, err
}

func (f failingFile) Sync() error {
	f.fail.at("sync.before")
	if f.fail.due("sync.fail") {
		_ = os.Remove(f.fail.file)
		return errors.New("input/output error, as asked for")
	}
	err := f.File.Sync()
	f.fail.at("sync.after")
	return err
}

// ledger: ship.before, ship.after, and ship.lost, where a batch is booked and
// the answer that says so does not come.
func (f failpoints) ledger(l worker.Ledger) worker.Ledger { return failingLedger{l, f} }

type failingLedger struct {
	worker.Ledger
	fail failpoints
}

func (l failingLedger) Record(ctx context.Context, b store.Batch) (int, error) {
	n, err := around(l.fail, "ship", func() (int, error) { return l.Ledger.Record(ctx, b) })
	if l.fail.due("ship.lost") {
		_ = os.Remove(l.fail.file)
		return 0, errors.Join(err, context.DeadlineExceeded)
	}
	return n, err
}

// exporter: report.before, report.after, settle.before, settle.after.
func (f failpoints) exporter(e *worker.Exporter) *worker.Exporter {
	if ms := f.number(failpointPause, 0); ms > 0 {
		e.Gap = time.Nanosecond
		e.Pause = func(attempts int) time.Duration {
			return time.Duration(ms) * time.Millisecond << min(max(attempts-1, 0), 5)
		}
	}
	report := e.Report
	e.Report = func(ctx context.Context, key string, event processor.Event) error {
		return aroundError(f, "report", func() error { return report(ctx, key, event) })
	}
	e.Ledger = failingExports{e.Ledger, f}
	return e
}

type failingExports struct {
	worker.ExportLedger
	fail failpoints
}

func (l failingExports) FinishSending(ctx context.Context, queue billing.Queue, settled []billing.Settled, rest time.Time) error {
	return aroundError(l.fail, "settle", func() error { return l.ExportLedger.FinishSending(ctx, queue, settled, rest) })
}

// books: begin.before, begin.panic, begin.after, mark.after, end.before,
// end.after. A panic is one of a handler: the process goes on.
func (f failpoints) books(b gateway.Books) gateway.Books { return failingBooks{b, f} }

type failingBooks struct {
	gateway.Books
	fail failpoints
}

func (b failingBooks) Begin(c *modelgate.CallBegin) error {
	b.fail.at("begin.before")
	if b.fail.due("begin.panic") {
		_ = os.Remove(b.fail.file)
		panic(c)
	}
	err := b.Books.Begin(c)
	b.fail.at("begin.after")
	return err
}

func (b failingBooks) Mark(id modelgate.UUID, e *modelgate.CallEnd) {
	b.Books.Mark(id, e)
	b.fail.at("mark.after")
}

func (b failingBooks) End(id modelgate.UUID, e *modelgate.CallEnd) error {
	return aroundError(b.fail, "end", func() error { return b.Books.End(id, e) })
}

// handler: reply.first, reply.before-last, reply.last.
func (f failpoints) handler(h http.Handler) http.Handler {
	if !strings.HasPrefix(f.name, "reply.") {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			h.ServeHTTP(w, r)
			return
		}
		reply := &failingReply{ResponseWriter: w, fail: f}
		h.ServeHTTP(reply, r)
		reply.Flush()
		f.at("reply.last")
	})
}

type failingReply struct {
	http.ResponseWriter
	fail    failpoints
	written int64
}

func (r *failingReply) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *failingReply) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

func (r *failingReply) Write(b []byte) (int, error) {
	length := strconv.FormatInt(r.written+int64(len(b)), 10)
	if r.Header().Get("Content-Length") == length || bytes.Contains(b, []byte("[DONE]")) || bytes.Contains(b, []byte("message_stop")) {
		r.fail.at("reply.before-last")
	}
	n, err := r.ResponseWriter.Write(b)
	if r.written == 0 {
		r.Flush()
		r.fail.at("reply.first")
	}
	r.written += int64(n)
	return n, err
}
