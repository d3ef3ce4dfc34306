package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/internal/provider/http1/http1test"
)

// TestWireFraming: every way in which a reply can say where it ends, and
// whether the connection is used again afterwards.
func TestWireFraming(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		for _, c := range []struct {
			name, reply string
			method      string
			body        string
			bad         bool
			conns       int64 // for two calls
		}{
			{name: "length", reply: http1test.Hello, body: "hello", conns: 1},
			{name: "chunked", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", body: "hello", conns: 1},
			{name: "chunked with a trailer", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n", body: "hello", conns: 1},
			{name: "empty", reply: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", conns: 1},
			{name: "no content", reply: "HTTP/1.1 204 No Content\r\n\r\n", conns: 1},
			{name: "head", method: "HEAD", reply: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", conns: 1},
			{name: "interim", reply: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + http1test.Hello, body: "hello", conns: 1},
			{name: "to be closed", reply: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", body: "hello", conns: 2},
			{name: "version 1.0", reply: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", body: "hello", conns: 2},
			{name: "more than its length", reply: http1test.Hello + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", body: "hello", conns: 2},
			{name: "more than its chunks", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + http1test.Hello, body: "hello", conns: 2},
			{name: "endless interim", reply: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1), bad: true, conns: 2},
			{name: "endless header", reply: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", MaxReplyHeader) + "\r\n\r\n", bad: true, conns: 2},
			{name: "two lengths", reply: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", bad: true, conns: 2},
			{name: "no HTTP", reply: "SSH-2.0-x\r\n\r\n", bad: true, conns: 2},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				u := over.Peer(t, http1test.Says(c.reply))
				p := poolTo(t, u)
				if c.method == "" {
					c.method = http.MethodPost
				}
				for range 2 {
					_, body, sent, err := send(t.Context(), t, p, call{method: c.method, path: "/x", body: []byte("{}")})
					if (err != nil) != c.bad || body != c.body || !sent {
						t.Errorf("body %q, sent %v, %v", body, sent, err)
					}
				}
				if n := u.Conns.Load(); n != c.conns {
					t.Errorf("%d connections for two calls, want %d", n, c.conns)
				}
			})
		}
	})
}

func TestWireEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nuntil the end")
			return false
		})
		if status, body, _, err := send(t.Context(), t, poolTo(t, u), call{method: "GET", path: "/x"}); status != 200 || body != "until the end" || err != nil {
			t.Errorf("%d %q %v", status, body, err)
		}
	})
}

// A reply that breaks off is an error, and its connection is not used again.
func TestWireCutReply(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		for _, text := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.1 200 OK\r\nX", ""} {
			u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.WriteString(conn, text)
				return false
			})
			if _, _, sent, err := send(t.Context(), t, poolTo(t, u), call{method: "POST", path: "/x", body: []byte("{}")}); err == nil || !sent {
				t.Errorf("%q: sent %v, %v", text, sent, err)
			}
		}
	})
}

// A provider may answer before it has taken a long body.
func TestWireEarlyReply(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		for _, size := range []int{1, joinedBody, joinedBody + 1, asideBody, asideBody + 1, 8 << 20} {
			u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Long\r\nContent-Length: 2\r\n\r\nno")
				_, _ = io.Copy(io.Discard, r.Body) // a reset would overtake the answer
				return true
			})
			status, body, sent, err := send(t.Context(), t, poolTo(t, u), call{method: "POST", path: "/x", body: make([]byte, size)})
			if status != 413 || body != "no" || !sent || err != nil {
				t.Errorf("%d bytes: %d %q sent %v, %v", size, status, body, sent, err)
			}
		}
	})
}

// Bodies of every size arrive whole, over TLS too, one after the other on one
// connection.
func TestWireBodies(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %d %v", n, r.ContentLength, err)
	})
	secure := httptest.NewTLSServer(handler)
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	for url, config := range map[string]*tls.Config{plain.URL: nil, secure.URL: secure.Client().Transport.(*http.Transport).TLSClientConfig} {
		p := newPool(t, Options{Base: parse(t, url), TLS: config})
		for _, size := range []int{0, 1, joinedBody, joinedBody + 1, asideBody + 1, 1 << 20, 3} {
			want := fmt.Sprintf("%d %d <nil>", size, size)
			if _, body, _, err := send(t.Context(), t, p, call{method: "POST", path: "/x", body: make([]byte, size)}); body != want || err != nil {
				t.Errorf("%s: %q, %v; want %q", url, body, err, want)
			}
		}
	}
}

func TestWireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		for _, part := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"} {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.WriteString(conn, part)
				cancel()
				_, _ = conn.Read(make([]byte, 1)) // until the gateway closes it
				close(gone)
				return false
			})
			if _, _, sent, err := send(ctx, t, poolTo(t, u), call{method: "GET", path: "/x"}); err == nil || !sent {
				t.Errorf("after %q: sent %v, %v", part, sent, err)
			}
			<-gone
		}
	})
}

func TestWireFirstByte(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = conn.Read(make([]byte, 1))
			return false
		})
		p := newPool(t, Options{Base: parse(t, u.URL()), TLS: u.ClientTLS(), FirstByte: 20 * time.Millisecond})
		_, _, sent, err := send(t.Context(), t, p, call{method: "GET", path: "/x"})
		if !errors.Is(err, os.ErrDeadlineExceeded) || !sent {
			t.Errorf("sent %v, %v; want the deadline", sent, err)
		}
	})
}

// The time for a header bounds no body, ends no connection that waits for its
// next call, and is not set anew for every call.
func TestWireDeadlines(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	conn := &scripted{text: []byte(http1test.Hello + http1test.Hello + head + "hello"), piece: len(head)}
	c := newConn(&Pool{firstByte: time.Minute}, conn, conn)
	read := func() {
		t.Helper()
		var r connReply
		if _, err := c.readHead(&http.Request{Method: http.MethodGet}, &r); err != nil {
			t.Fatal(err)
		}
		if b, err := readIn(r.body.from, 8); b != "hello" || err != io.EOF {
			t.Fatalf("%q, %v", b, err)
		}
	}
	conn.piece = len(http1test.Hello)
	read()
	first := conn.deadline
	if off := time.Until(first) - time.Minute; conn.set != 1 || off < -time.Minute/16 || off > time.Minute/16 {
		t.Errorf("deadline %v off, set %d times", off, conn.set)
	}
	if read(); conn.set != 1 || conn.deadline != first {
		t.Errorf("set %d times for two calls", conn.set)
	}
	conn.piece = len(head)
	if read(); conn.set != 2 || !conn.deadline.IsZero() {
		t.Errorf("deadline of a body: %v, set %d times", conn.deadline, conn.set)
	}

	u := http1test.NewPeer(t, http1test.Says(http1test.Hello))
	p := poolTo(t, u)
	for range 3 {
		if _, body, _, err := send(t.Context(), t, p, call{method: "GET", path: "/x"}); body != "hello" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		idle := p.idle[0]
		if err := idle.expire(time.Now().Add(-time.Second)); err != nil {
			t.Error(err)
		}
	}
	if n := u.Conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Connections that nobody uses end, and after close none is kept.
func TestWireKeepsNoMoreThanItShould(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		u := over.Peer(t, http1test.Says(http1test.Hello))
		p := poolTo(t, u)
		one := call{method: "GET", path: "/x"}
		if _, _, _, err := send(t.Context(), t, p, one); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		p.idle[0].since = time.Now().Add(-IdleTime)
		p.mu.Unlock()
		p.reap()
		if len(p.idle) != 0 || p.reaper != nil {
			t.Errorf("%d connections kept over their time", len(p.idle))
		}
		p.Close()
		if _, _, _, err := send(t.Context(), t, p, one); err != nil {
			t.Fatal(err)
		}
		if len(p.idle) != 0 {
			t.Errorf("%d connections kept by a closed pool", len(p.idle))
		}
	})
}

// Many calls at once each get their own answer.
func TestWireManyCalls(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
			b, _ := io.ReadAll(r.Body)
			_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
			return err == nil
		})
		p := poolTo(t, u)
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for j := range 50 {
					text := fmt.Sprintf("%d of %d", j, i)
					if _, body, _, err := send(t.Context(), t, p, call{method: "POST", path: "/x", body: []byte(text)}); body != text || err != nil {
						t.Errorf("%q, %v; want %q", body, err, text)
						return
					}
				}
			})
		}
		all.Wait()
		if n := u.Conns.Load(); n > 64 {
			t.Errorf("%d connections for 32 callers", n)
		}
	})
}

// TestWireAttend: who attends to a body without reading it goes on when there
// is something to read, also the end or an error, and when its call is ended.
func TestWireAttend(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		for name, c := range map[string]struct {
			then func(conn net.Conn) // what the provider does while it is waited for
			body string
			bad  bool
		}{
			"a chunk":           {func(conn net.Conn) { _, _ = io.WriteString(conn, "2\r\nlo\r\n0\r\n\r\n") }, "hello", false},
			"the end of it":     {func(conn net.Conn) { _, _ = io.WriteString(conn, "0\r\n\r\n") }, "hel", false},
			"a part of a chunk": {func(conn net.Conn) { _, _ = io.WriteString(conn, "2\r\nl"); _ = conn.Close() }, "hell", true},
			"an end too early":  {func(conn net.Conn) { _ = conn.Close() }, "hel", true},
			"a reset": {func(conn net.Conn) {
				_ = conn.(*http1test.Conn).Below.SetLinger(0)
				_ = conn.(*http1test.Conn).Below.Close()
			}, "hel", true},
			"nothing": {nil, "hel", true}, // the call is ended
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				waiting := make(chan struct{})
				ctx, end := context.WithCancel(t.Context())
				defer end()
				u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n")
					<-waiting
					if c.then == nil {
						end()
						return false
					}
					c.then(conn)
					return true
				})
				body := attended(t, ctx, poolTo(t, u))
				got, err := readAttended(body, func(got string) {
					if got == "hel" {
						close(waiting)
					}
				})
				if got != c.body || (err != nil) != c.bad {
					t.Errorf("body %q, %v, want %q, an error %t", got, err, c.body, c.bad)
				}
				body.Attend(func() bool { // after the end there is nothing to wait for
					_, err := body.Read(make([]byte, 1))
					return err == nil
				})
			})
		}
	})
}

// attended is the body of a new call.
func attended(t *testing.T, ctx context.Context, p *Pool) *Body {
	t.Helper()
	resp, _, err := p.RoundTrip(call{method: "POST", path: "/x", body: []byte("{}")}.request(ctx, t, p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.Body.(*Body)
}

// readAttended attends to a body with little memory to its end, and tells of
// each piece that was not empty what has come so far. The error is nil for
// io.EOF.
func readAttended(body *Body, came func(so string)) (got string, err error) {
	body.Attend(func() bool {
		p := make([]byte, 3)
		n, failed := body.Read(p)
		if got += string(p[:n]); n > 0 {
			came(got)
		}
		err = failed
		return err == nil
	})
	if err == io.EOF {
		err = nil
	}
	return got, err
}

// TestWireAttendKeeps: the connection of a body that was attended to serves the
// next call, and one whose reader gave up does not.
func TestWireAttendKeeps(t *testing.T) {
	t.Parallel()
	http1test.OverEach(t, func(t *testing.T, over http1test.Layout) {
		u := over.Peer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
			return err == nil
		})
		p := poolTo(t, u)
		for range 3 {
			if got, err := readAttended(attended(t, t.Context(), p), func(string) {}); got != "hello" || err != nil {
				t.Fatalf("body %q, %v", got, err)
			}
		}
		if n := u.Conns.Load(); n != 1 {
			t.Errorf("%d connections for three calls after each other, want 1", n)
		}
		body := attended(t, t.Context(), p)
		body.Attend(func() bool { return body.Close() != nil })
		if got, err := readAttended(attended(t, t.Context(), p), func(string) {}); got != "hello" || err != nil {
			t.Fatalf("body %q, %v", got, err)
		}
		if n := u.Conns.Load(); n != 2 {
			t.Errorf("%d connections after a body that was closed, want 2", n)
		}
	})
}
