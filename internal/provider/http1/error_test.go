package http1

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"syscall"
	"testing"

	"modelgate/internal/provider/http1/http1test"
)

// TestErrors tells a reply that is none from a connection that has ended.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err, is   error
		malformed bool
	}{
		{headError(io.EOF), io.ErrUnexpectedEOF, false},
		{headError(io.ErrUnexpectedEOF), io.ErrUnexpectedEOF, false},
		{headError(textproto.ProtocolError("x")), textproto.ProtocolError("x"), true},
		{headError(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), syscall.ECONNRESET, true},
		{headError(errReplyHead), errReplyHead, true},
		{errInterim, errInterim, true},
		{errChunked, errChunked, true},
	} {
		if !errors.Is(c.err, c.is) || errors.Is(c.err, ErrMalformed) != c.malformed {
			t.Errorf("%v: want %v, malformed %v", c.err, c.is, c.malformed)
		}
	}
}

// TestBodyError: the errors of a body say why it did not come, and its end is none.
func TestBodyError(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		http1test.Hello: "",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx": "malformed",
		"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhel":        "closed",
	} {
		u := http1test.NewPeer(t, func(conn net.Conn, _ *http.Request) bool {
			_, _ = io.WriteString(conn, reply)
			return false
		})
		p := newPool(t, Options{Base: parse(t, u.URL())})
		_, _, _, err := send(t.Context(), t, p, call{method: "GET", path: "/x"})
		known, ok := errors.AsType[*Unreachable](err)
		if (err != nil) != (want != "") || want != "" && (!ok || known.Cause != want) {
			t.Errorf("%q: %v, want %q", reply, err, want)
		}
	}
}
