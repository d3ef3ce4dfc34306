// Package httpx is what every surface of the gateway shares: the request id,
// the panic fence, the bounds of headers and bodies, the error envelope, and
// the reading and writing of JSON, query parameters and cursors.
package httpx

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"modelgate"
)

// RequestIDHeader carries the request id; it is on every response.
const RequestIDHeader = "X-Gateway-Request-Id"

// maxHeader bounds the request line and the header lines together, in bytes.
const maxHeader = 32 << 10

// Options are what Wrap needs; all fields down to MaxBody are required.
type Options struct {
	IDs     *modelgate.IDs
	Log     *slog.Logger
	MaxBody int64 // bytes; a body of exactly this length passes
	// Stall is how long a client may take nothing of what is written to it; 0
	// means a minute.
	Stall time.Duration
	// Proxies are the trusted reverse proxies. The first forwarding header of
	// another peer is logged as a warning.
	Proxies Proxies
	// CrossOrigin sets the headers of a response to a page of another site, also
	// where the request is refused. It reports whether it has written the whole
	// response; nil sets none.
	CrossOrigin func(http.ResponseWriter, *http.Request) (answered bool)
}

// Wrap is the first step of every request. It draws the request id and puts
// it on the response, refuses headers over 32 KiB (431) and a declared body
// over the bound (413) before anything is read, bounds how slowly a body may
// come and an answer be taken, and answers a panic of next with 500, or cuts the connection where the response has already begun.
func Wrap(o Options, next http.Handler) http.Handler {
	ignored := sync.OnceFunc(func() {
		o.Log.Warn("X-Forwarded-For and X-Forwarded-Proto are ignored where they do not come from one of server.trusted_proxies; add the address of the proxy in front of the gateway")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(RequestIDHeader, o.IDs.New().String())
		t := &tracker{ResponseWriter: w, http2: r.ProtoMajor > 1, bounded: SurfaceOf(r) == Management, stall: cmp.Or(o.Stall, stall)}
		if kept, ok := w.(interface{ WriteDeadline() time.Time }); ok {
			t.until = kept.WriteDeadline() // of an earlier answer on the connection
		}
		defer t.boundRest()
		defer o.fence(t, r)
		if !t.http2 { // there nothing is written yet
			t.beginWrite()
		}
		t.paceBody(r)
		if o.Proxies.Ignored(r) {
			ignored()
		}
		switch {
		case o.CrossOrigin != nil && o.CrossOrigin(t, r):
		case headerSize(r) > maxHeader:
			WriteError(t, r, modelgate.Errorf(modelgate.HeadersTooLarge, "request headers too large"), SurfaceOf(r))
		case r.ContentLength > o.MaxBody:
			WriteError(t, r, modelgate.ErrBodyTooLarge, SurfaceOf(r))
		default:
			next.ServeHTTP(t, r)
		}
		t.linger()
	})
}

// RequestID is the id that Wrap drew; the zero UUID without Wrap. It is read
// from the response, so it is always the one that the client is sent.
func RequestID(w http.ResponseWriter) modelgate.UUID {
	id, _ := modelgate.ParseUUID(requestIDText(w))
	return id
}

func requestIDText(w http.ResponseWriter) string {
	if v := w.Header()[RequestIDHeader]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// fence ends a request that panicked. http.ErrAbortHandler goes through: it
// is how a handler asks for the connection to be cut.
func (o *Options) fence(t *tracker, r *http.Request) {
	reason := recover()
	if reason == nil {
		return
	}
	if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	o.Log.Error("panic in a handler", "request_id", requestIDText(t), "method", r.Method,
		"panic", describe(reason), "stack", stack())
	if t.wrote {
		panic(http.ErrAbortHandler)
	}
	WriteError(t, r, modelgate.ErrInternal, SurfaceOf(r))
}

// describe says what a panic was without repeating values that may hold a
// secret: the text of the runtime's own errors, else the type.
func describe(reason any) string {
	if err, ok := reason.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", reason)
}

// stack lists functions and lines, without the arguments that debug.Stack
// would print.
func stack() string {
	var pcs [48]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var b strings.Builder
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&b, "%s:%d ", frame.Function, frame.Line)
		if !more {
			return strings.TrimSuffix(b.String(), " ")
		}
	}
}

// headerSize is what the request line and header lines take on the wire.
func headerSize(r *http.Request) int {
	size := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	return size
}

// Send writes all of b and flushes it, in one step where the response has one. A
// response that cannot be flushed takes it as a Write.
func Send(w http.ResponseWriter, b []byte) error {
	if s, ok := w.(interface{ Send(b []byte) error }); ok {
		return s.Send(b)
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// tracker notes whether a response has begun, and bounds how long its client
// may take nothing of it.
type tracker struct {
	http.ResponseWriter
	wrote   bool
	http2   bool
	bounded bool          // on HTTP/2 too
	stall   time.Duration // for a write
	until   time.Time     // see beginWrite

	body      *pacedBody // still unread when the response begins, see unread
	lingering *pacedBody // its rest is read after the response
}

// begin is called before anything of the response leaves but a 1xx.
func (t *tracker) begin() {
	if !t.wrote {
		t.wrote = true
		t.unread()
	}
}

// WriteHeader notes the final status; a 1xx is not one.
func (t *tracker) WriteHeader(status int) {
	if status >= 200 {
		t.begin()
	}
	t.beginWrite()
	defer t.endWrite()
	t.ResponseWriter.WriteHeader(status)
}

// Write notes that the body has begun.
func (t *tracker) Write(b []byte) (int, error) {
	t.begin()
	t.beginWrite()
	defer t.endWrite()
	return t.ResponseWriter.Write(b)
}

// Send is Write, and Flush of it, at the cost of one of them.
func (t *tracker) Send(b []byte) error {
	t.begin()
	t.beginWrite()
	defer t.endWrite()
	return Send(t.ResponseWriter, b)
}

// Flush sends what is buffered, headers included.
func (t *tracker) Flush() { _ = t.FlushError() }

// FlushError is Flush for http.ResponseController.
func (t *tracker) FlushError() error {
	t.begin()
	t.beginWrite()
	defer t.endWrite()
	if w, ok := t.ResponseWriter.(interface{ FlushError() error }); ok {
		return w.FlushError()
	}
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap gives http.ResponseController the connection's own writer.
func (t *tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }
