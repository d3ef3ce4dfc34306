package http1

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"modelgate/internal/provider/http1/http1test"
)

// TestWireAttendSeesHiddenEnd: an end of a connection that comes in one packet
// with the last bytes, so that the poller tells once of both, is seen.
func TestWireAttendSeesHiddenEnd(t *testing.T) {
	t.Parallel()
	u := http1test.NewPeer(t, func(conn net.Conn, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n")
		r.Body.Close()
		raw, err := conn.(*http1test.Conn).Below.SyscallConn()
		if err != nil {
			return false
		}
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
		_, _ = io.WriteString(conn, "2\r\nl")
		return false
	})
	p := poolTo(t, u)
	var all sync.WaitGroup
	for range 32 {
		body := attended(t, t.Context(), p)
		all.Go(func() {
			if got, err := readAttended(body, func(string) {}); got != "hell" || err == nil {
				t.Errorf("body %q, %v, want hell and an error", got, err)
			}
		})
	}
	all.Wait()
}
