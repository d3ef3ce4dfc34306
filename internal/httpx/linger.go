package httpx

import (
	"io"
	"net/http"
	"time"

	"modelgate"
)

// How a request on HTTP/1.1 ends that is answered before its body has come.
const (
	// A rest of at most smallRest bytes that comes within lateBody is read before
	// the answer, so that the connection can be used again: most clients write
	// head and body at once. For anything else the answer does not wait.
	smallRest = 256 << 10
	lateBody  = 50 * time.Millisecond
	// Behind the answer the rest is read and dropped: a connection that is
	// closed with unread bytes is reset, by which a client may lose the answer.
	// That ends when nothing comes for lingerPause, and in any case after
	// lingerTime and lingerMost bytes.
	lingerPause = time.Second
	lingerTime  = 5 * time.Second
	lingerMost  = 64 << 20
)

// unread prepares the answer to a request of net/http's whose body has not been
// read to its end. The server would read on before it sends the answer.
func (t *tracker) unread() {
	b := t.body
	if t.body = nil; b == nil || b.ended || b.short() {
		return
	}
	t.lingering = b
	t.Header().Set("Connection", "close")
}

// short reads the rest of a small body, and reports whether that was all.
func (b *pacedBody) short() bool {
	// To read would ask a client that waits for it to send its body, and a
	// chunked body that was waited for in vain cannot be read any more.
	if b.waits || b.length < 0 || b.length-b.received > smallRest {
		return false
	}
	_ = b.control.SetReadDeadline(time.Now().Add(lateBody))
	if _, err := io.Copy(io.Discard, b.ReadCloser); err != nil {
		return false
	}
	_ = b.control.SetReadDeadline(time.Time{})
	return true
}

// linger sends the answer and reads on until the client has taken it, as far
// as one can tell.
func (t *tracker) linger() {
	b := t.lingering
	if b == nil || t.FlushError() != nil {
		return
	}
	end := time.Now().Add(lingerTime)
	buffer := make([]byte, 16<<10)
	for dropped := 0; dropped < lingerMost; {
		now := time.Now()
		if now.After(end) {
			break
		}
		_ = b.control.SetReadDeadline(now.Add(lingerPause))
		n, err := b.ReadCloser.Read(buffer)
		if dropped += n; err != nil {
			break
		}
	}
	_ = b.control.SetReadDeadline(time.Unix(1, 0)) // net/http would read on
}

// SkipBody reads a request body that the route takes none of. One that is
// chunked and longer than limit is request_too_large, and one that breaks off
// bad_request; a declared length has been judged by Wrap.
func SkipBody(r *http.Request, limit int64) error {
	if r.Body == nil || r.ContentLength >= 0 {
		return nil
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r.Body, limit+1))
	if err != nil {
		return errBrokenBody
	}
	if n > limit {
		return modelgate.ErrBodyTooLarge
	}
	return nil
}
