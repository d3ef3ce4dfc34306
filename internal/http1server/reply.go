package http1server

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"modelgate/internal/httpfield"
)

const (
	// outputSize is how much of an answer is gathered before it is sent.
	outputSize = 8 << 10
	unknown    = -1 // length
)

// output gathers an answer on its way out.
type output struct {
	b    []byte // goes out as it stands
	held []byte // of a body of which it is not known yet how it will be framed
}

// reply is the http.ResponseWriter of a transaction. It does what that of
// net/http does, but for trailers and taking over the connection: no handler
// of the gateway wants those.
type reply struct {
	t      *transaction
	out    *output // nil while there is nothing to send, and once it is over
	header http.Header
	status int   // 0 before WriteHeader
	length int64 // as the handler said
	wrote  int64 // bytes of the body

	framed  bool // the head is complete, in out or on its way
	chunked bool
	last    bool // the connection ends with this answer
	past    bool // the transaction is over
	err     error

	mu    sync.Mutex // for what may come from other goroutines
	ended bool
}

var errOver = errors.New("the request has been answered")

// begin makes sure of memory to gather the answer in, and reports whether the
// transaction goes on.
func (w *reply) begin() bool {
	if w.past {
		return false
	}
	if w.out == nil {
		w.out = w.t.c.s.outs.Get().(*output)
	}
	return true
}

// releaseOutput gives that memory up: between the events of a stream it serves others,
// and is in the processor's caches when its turn comes.
func (w *reply) releaseOutput() {
	out := w.out
	if w.out = nil; out == nil {
		return
	}
	out.b, out.held = out.b[:0], out.held[:0]
	if cap(out.b) <= 2*outputSize {
		w.t.c.s.outs.Put(out)
	}
}

// Header implements http.ResponseWriter.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *reply) WriteHeader(status int) {
	if w.status != 0 || !w.begin() {
		return
	}
	w.out.b = appendStatus(w.out.b, status)
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.out.b = append(w.appendHeader(w.out.b), lineEnd...)
		w.send()
		return
	}
	w.status = status
	if text := w.header.Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
	w.out.b = w.appendHeader(w.out.b)
	if _, typed := w.header["Content-Type"]; typed && w.length != unknown || !bodyAllowed(status) {
		w.frame(nil)
	}
}

// Write implements http.ResponseWriter.
func (w *reply) Write(p []byte) (int, error) {
	if !w.begin() {
		return 0, errOver
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case len(p) == 0:
		return 0, nil
	case !bodyAllowed(w.status):
		return 0, http.ErrBodyNotAllowed
	case w.length != unknown && w.wrote+int64(len(p)) > w.length:
		return 0, http.ErrContentLength
	}
	w.wrote += int64(len(p))
	if !w.framed {
		if w.length == unknown && len(w.out.held)+len(p) <= outputSize {
			w.out.held = append(w.out.held, p...)
			return len(p), nil
		}
		w.frame(w.first(p))
		w.release()
	}
	w.put(p)
	return len(p), w.err
}

// first is the beginning of the body, for guessing its type.
func (w *reply) first(p []byte) []byte {
	if len(w.out.held) > 0 {
		return w.out.held
	}
	return p
}

// release frames what was held.
func (w *reply) release() {
	if len(w.out.held) > 0 {
		w.put(w.out.held)
		w.out.held = w.out.held[:0]
	}
}

// put takes a piece of the body, as a chunk where it has to be one. A large
// piece is not copied.
func (w *reply) put(p []byte) {
	if w.chunked {
		w.out.b = append(strconv.AppendInt(w.out.b, int64(len(p)), 16), lineEnd...)
	}
	if len(w.out.b)+len(p) <= outputSize {
		w.out.b = append(w.out.b, p...)
	} else {
		w.send()
		w.sendPiece(p)
	}
	if w.chunked {
		w.out.b = append(w.out.b, lineEnd...)
	}
}

// Flush implements http.Flusher.
func (w *reply) Flush() { _ = w.FlushError() }

// FlushError sends what has been written so far, the head at least.
func (w *reply) FlushError() error {
	if !w.begin() {
		return errOver
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.framed {
		w.frame(w.out.held)
		w.release()
	}
	w.t.c.s.batcher.BeforeChunk()
	w.send()
	w.releaseOutput()
	return w.err
}

// Send is Write, and Flush of it.
func (w *reply) Send(p []byte) error {
	if _, err := w.Write(p); err != nil {
		return err
	}
	return w.FlushError()
}

// finish sends what is left of the answer and reports whether the connection
// can go on.
func (w *reply) finish() bool {
	w.begin()
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.framed {
		if w.length == unknown {
			w.length = w.wrote
		}
		w.frame(w.out.held)
		w.release()
	}
	if w.chunked {
		w.out.b = append(w.out.b, "0\r\n\r\n"...)
	}
	w.t.c.s.batcher.BeforeWrite()
	w.send()
	cut := w.length != unknown && bodyAllowed(w.status) && w.wrote < w.length
	// The answer does not wait for a body that nobody wanted. The connection
	// does: closed before, it would be reset, and the answer lost with it.
	return w.err == nil && w.t.body.discard() && !w.last && !cut
}

// over ends what others can do with the answer.
func (w *reply) over() {
	w.past = true
	w.releaseOutput()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

func (w *reply) send() {
	if w.err == nil && len(w.out.b) > 0 {
		_, w.err = w.t.c.raw.Write(w.out.b)
	}
	w.out.b = w.out.b[:0]
}

func (w *reply) sendPiece(p []byte) {
	if w.err == nil {
		_, w.err = w.t.c.raw.Write(p)
	}
}

// SetReadDeadline is for http.ResponseController.
func (w *reply) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errOver
	}
	w.t.deadline(t)
	return nil
}

// SetWriteDeadline is for http.ResponseController. It may be called beside a
// write. What is set stays for later answers on the connection, which look at
// WriteDeadline first.
func (w *reply) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errOver
	}
	w.t.c.writeUntil(t)
	return nil
}

// WriteDeadline is the one that is set, zero for none.
func (w *reply) WriteDeadline() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.t.c.writeBy
}

// frame ends the head: now it is known how the body, which begins with first,
// will come.
func (w *reply) frame(first []byte) {
	w.framed = true
	if w.t.c.s.closing.Load() || asksToClose(w.header["Connection"]) {
		w.last = true
	}
	b := w.out.b
	if bodyAllowed(w.status) {
		if _, typed := w.header["Content-Type"]; !typed && len(first) > 0 && w.header.Get("Content-Encoding") == "" {
			b = appendLine(b, "Content-Type", http.DetectContentType(first))
		}
		if w.chunked = w.length == unknown; w.chunked {
			b = append(b, "Transfer-Encoding: chunked\r\n"...)
		} else {
			b = append(strconv.AppendInt(append(b, "Content-Length: "...), w.length, 10), lineEnd...)
		}
	}
	if _, dated := w.header["Date"]; !dated {
		b = append(time.Now().UTC().AppendFormat(append(b, "Date: "...), http.TimeFormat), lineEnd...)
	}
	if w.last {
		b = append(b, "Connection: close\r\n"...)
	}
	w.out.b = append(b, lineEnd...)
}

// appendHeader appends the lines of the handler's header, but for those that
// frame the body.
func (w *reply) appendHeader(b []byte) []byte {
	for name, values := range w.header {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Connection", "Trailer":
			continue
		case "Content-Type":
			if w.status == http.StatusNotModified {
				continue
			}
		}
		if !httpfield.IsToken(name) {
			continue
		}
		for _, v := range values {
			b = appendLine(b, name, v)
		}
	}
	return b
}

// appendLine appends a line of a header. A value cannot begin another line.
func appendLine(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	start := len(b)
	b = append(b, value...)
	for i, c := range b[start:] {
		if c == '\r' || c == '\n' {
			b[start+i] = ' '
		}
	}
	return append(b, lineEnd...)
}

func appendStatus(b []byte, status int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = append(strconv.AppendInt(b, int64(status), 10), ' ')
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	return append(append(b, text...), lineEnd...)
}

// bodyAllowed reports whether an answer with the status may have a body (RFC
// 9110, 6.4.1).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// asksToClose reports whether a Connection field ends the connection.
func asksToClose(connection []string) bool {
	for option := range httpfield.Elements(connection) {
		if strings.EqualFold(option, "close") {
			return true
		}
	}
	return false
}
