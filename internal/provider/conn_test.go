package provider

import (
	"context"
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
)

// TestWireFraming: every way in which a reply can say where it ends, and
// whether the connection is used again afterwards.
func TestWireFraming(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		for _, c := range []struct {
			name, reply string
			method      string
			body        string
			bad         bool
			conns       int64 // for two calls
		}{
			{name: "length", reply: hello, body: "hello", conns: 1},
			{name: "chunked", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", body: "hello", conns: 1},
			{name: "chunked with a trailer", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n", body: "hello", conns: 1},
			{name: "empty", reply: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", conns: 1},
			{name: "no content", reply: "HTTP/1.1 204 No Content\r\n\r\n", conns: 1},
			{name: "head", method: "HEAD", reply: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", conns: 1},
			{name: "interim", reply: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + hello, body: "hello", conns: 1},
			{name: "to be closed", reply: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", body: "hello", conns: 2},
			{name: "version 1.0", reply: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", body: "hello", conns: 2},
			{name: "more than its length", reply: hello + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", body: "hello", conns: 2},
			{name: "more than its chunks", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + hello, body: "hello", conns: 2},
			{name: "endless interim", reply: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1), bad: true, conns: 2},
			{name: "endless header", reply: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxReplyHead) + "\r\n\r\n", bad: true, conns: 2},
			{name: "two lengths", reply: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", bad: true, conns: 2},
			{name: "no HTTP", reply: "SSH-2.0-x\r\n\r\n", bad: true, conns: 2},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				u := over.peer(t, says(c.reply))
				p := u.provider(t, nil)
				if c.method == "" {
					c.method = http.MethodPost
				}
				for range 2 {
					_, body, sent, err := send(t.Context(), t, p, Call{Method: c.method, Path: "/x", Body: []byte("{}")})
					if (err != nil) != c.bad || body != c.body || !sent {
						t.Errorf("body %q, sent %v, %v", body, sent, err)
					}
				}
				if n := u.conns.Load(); n != c.conns {
					t.Errorf("%d connections for two calls, want %d", n, c.conns)
				}
			})
		}
	})
}

func TestWireEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		u := over.peer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nuntil the end")
			return false
		})
		if status, body, _, err := send(t.Context(), t, u.provider(t, nil), Call{Method: "GET", Path: "/x"}); status != 200 || body != "until the end" || err != nil {
			t.Errorf("%d %q %v", status, body, err)
		}
	})
}

// A reply that breaks off is an error, and its connection is not used again.
func TestWireCutReply(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		for _, text := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.1 200 OK\r\nX", ""} {
			u := over.peer(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.WriteString(conn, text)
				return false
			})
			if _, _, sent, err := send(t.Context(), t, u.provider(t, nil), Call{Method: "POST", Path: "/x", Body: []byte("{}")}); err == nil || !sent {
				t.Errorf("%q: sent %v, %v", text, sent, err)
			}
		}
	})
}

// A provider may answer before it has taken a long body.
func TestWireEarlyReply(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		for _, size := range []int{1, joinedBody, joinedBody + 1, asideBody, asideBody + 1, 8 << 20} {
			u := over.peer(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Long\r\nContent-Length: 2\r\n\r\nno")
				_, _ = io.Copy(io.Discard, r.Body) // a reset would overtake the answer
				return true
			})
			status, body, sent, err := send(t.Context(), t, u.provider(t, nil), Call{Method: "POST", Path: "/x", Body: make([]byte, size)})
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
	for url, ca := range map[string]string{plain.URL: "", secure.URL: caFile(t, secure)} {
		p := setup(t, Config{Format: "openai", BaseURL: url, Credentials: []string{"sk"}, CAFile: ca})
		for _, size := range []int{0, 1, joinedBody, joinedBody + 1, asideBody + 1, 1 << 20, 3} {
			want := fmt.Sprintf("%d %d <nil>", size, size)
			if _, body, _, err := send(t.Context(), t, p, Call{Method: "POST", Path: "/x", Body: make([]byte, size)}); body != want || err != nil {
				t.Errorf("%s: %q, %v; want %q", url, body, err, want)
			}
		}
	}
}

func TestWireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		for _, part := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"} {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			u := over.peer(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.WriteString(conn, part)
				cancel()
				_, _ = conn.Read(make([]byte, 1)) // until the gateway closes it
				close(gone)
				return false
			})
			if _, _, sent, err := send(ctx, t, u.provider(t, nil), Call{Method: "GET", Path: "/x"}); err == nil || !sent {
				t.Errorf("after %q: sent %v, %v", part, sent, err)
			}
			<-gone
		}
	})
}

func TestWireFirstByte(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		u := over.peer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = conn.Read(make([]byte, 1))
			return false
		})
		p := u.provider(t, func(c *Config) { c.Timeouts.FirstByte = 20 * time.Millisecond })
		_, _, sent, err := send(t.Context(), t, p, Call{Method: "GET", Path: "/x"})
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
	conn := &scripted{text: []byte(hello + hello + head + "hello"), piece: len(head)}
	c := newConn(&connPool{firstByte: time.Minute}, conn, conn)
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
	conn.piece = len(hello)
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

	u := newPeer(t, says(hello))
	p := u.provider(t, nil)
	for range 3 {
		if _, body, _, err := send(t.Context(), t, p, Call{Method: "GET", Path: "/x"}); body != "hello" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		idle := p.transport.(*connPool).idle[0]
		if err := idle.expire(time.Now().Add(-time.Second)); err != nil {
			t.Error(err)
		}
	}
	if n := u.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestWireRefusesBadHeaders(t *testing.T) {
	t.Parallel()
	u := newPeer(t, says(hello))
	p := u.provider(t, nil)
	for name, value := range map[string]string{"Accept": "a\r\nX-Smuggled: 1", "X-Stainless-A b": "c", "X-Stainless-\r\nB": "c"} {
		_, _, sent, err := send(t.Context(), t, p, Call{Method: "GET", Path: "/x", Header: http.Header{name: {value}}})
		if !errors.Is(err, ErrUnsendable) || sent {
			t.Errorf("%q: %q: sent %v, %v", name, value, sent, err)
		}
	}
}

// Connections that nobody uses end, and after close none is kept.
func TestWireKeepsNoMoreThanItShould(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		u := over.peer(t, says(hello))
		p := u.provider(t, nil)
		w := p.transport.(*connPool)
		call := Call{Method: "GET", Path: "/x"}
		if _, _, _, err := send(t.Context(), t, p, call); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.idle[0].since = time.Now().Add(-idleTime)
		w.mu.Unlock()
		w.reap()
		if len(w.idle) != 0 || w.reaper != nil {
			t.Errorf("%d connections kept over their time", len(w.idle))
		}
		p.Close()
		if _, _, _, err := send(t.Context(), t, p, call); err != nil {
			t.Fatal(err)
		}
		if len(w.idle) != 0 {
			t.Errorf("%d connections kept by a closed provider", len(w.idle))
		}
	})
}

// Many calls at once each get their own answer.
func TestWireManyCalls(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
		u := over.peer(t, func(conn net.Conn, r *http.Request) bool {
			b, _ := io.ReadAll(r.Body)
			_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
			return err == nil
		})
		p := u.provider(t, nil)
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for j := range 50 {
					text := fmt.Sprintf("%d of %d", j, i)
					if _, body, _, err := send(t.Context(), t, p, Call{Method: "POST", Path: "/x", Body: []byte(text)}); body != text || err != nil {
						t.Errorf("%q, %v; want %q", body, err, text)
						return
					}
				}
			})
		}
		all.Wait()
		if n := u.conns.Load(); n > 64 {
			t.Errorf("%d connections for 32 callers", n)
		}
	})
}

// TestWireAttend: who attends to a body without reading it goes on when there
// is something to read, also the end or an error, and when its call is ended.
func TestWireAttend(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, over layout) {
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
				_ = conn.(*peerConn).below.SetLinger(0)
				_ = conn.(*peerConn).below.Close()
			}, "hel", true},
			"nothing": {nil, "hel", true}, // the call is ended
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				waiting := make(chan struct{})
				ctx, end := context.WithCancel(t.Context())
				defer end()
				p := over.peer(t, func(conn net.Conn, r *http.Request) bool {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n")
					<-waiting
					if c.then == nil {
						end()
						return false
					}
					c.then(conn)
					return true
				}).provider(t, nil)
				body := attended(t, ctx, p)
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
func attended(t *testing.T, ctx context.Context, p *Provider) *connBody {
	t.Helper()
	a, err := p.Outbound(ctx, Call{Method: "POST", Path: "/x", Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := p.Send(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.Body.(*connBody)
}

// readAttended attends to a body with little memory to its end, and tells of
// each piece that was not empty what has come so far. The error is nil for
// io.EOF.
func readAttended(body *connBody, came func(so string)) (got string, err error) {
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
	overEach(t, func(t *testing.T, over layout) {
		u := over.peer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
			return err == nil
		})
		p := u.provider(t, nil)
		for range 3 {
			if got, err := readAttended(attended(t, t.Context(), p), func(string) {}); got != "hello" || err != nil {
				t.Fatalf("body %q, %v", got, err)
			}
		}
		if n := u.conns.Load(); n != 1 {
			t.Errorf("%d connections for three calls after each other, want 1", n)
		}
		body := attended(t, t.Context(), p)
		body.Attend(func() bool { return body.Close() != nil })
		if got, err := readAttended(attended(t, t.Context(), p), func(string) {}); got != "hello" || err != nil {
			t.Fatalf("body %q, %v", got, err)
		}
		if n := u.conns.Load(); n != 2 {
			t.Errorf("%d connections after a body that was closed, want 2", n)
		}
	})
}

// TestAttemptLeft: whoever gave the body may write in it again once nobody
// reads it any more, which net/http never tells.
func TestAttemptLeft(t *testing.T) {
	t.Parallel()
	reads := newPeer(t, says(hello))
	release := make(chan struct{})
	early := newPeer(t, func(conn net.Conn, r *http.Request) bool {
		_, _ = io.WriteString(conn, hello)
		<-release
		_, _ = io.Copy(io.Discard, r.Body)
		return false
	})
	const long = 16 << 20 // more than a socket takes
	many := http2Server(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	shares := setup(t, Config{Format: "openai", BaseURL: many.URL, CAFile: caFile(t, many), Credentials: []string{"sk"}, HTTP2: true})
	for _, c := range []struct {
		name string
		peer *peer // nil for one that speaks HTTP/2
		size int
		left bool // when there is a reply
	}{
		{name: "none", peer: reads, left: true},
		{name: "joined", peer: reads, size: joinedBody, left: true},
		{name: "of its own", peer: reads, size: joinedBody + 1, left: true},
		{name: "long", peer: reads, size: long, left: true},
		{name: "long, answered early", peer: early, size: long},
		{name: "none, over HTTP/2", left: true},
		{name: "over HTTP/2", size: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := shares
			if c.peer != nil {
				p = c.peer.provider(t, nil)
			}
			a, err := p.Outbound(t.Context(), Call{Method: "POST", Path: "/x", Body: make([]byte, c.size)})
			if err != nil {
				t.Fatal(err)
			}
			resp, _, err := p.Send(a)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, own := resp.Body.(*connBody)
			if c.left && own && body.writing.aside != nil {
				if err := <-body.writing.aside; err != nil { // it may still be on its way out
					t.Fatal(err)
				}
			}
			if left := a.Left(); left != c.left {
				t.Errorf("left: %v, want %v", left, c.left)
			}
			if c.left || !own {
				return
			}
			resp.Body.Close() // which ends the connection
			<-body.writing.aside
			if !a.Left() {
				t.Error("not left although its connection has ended")
			}
			close(release)
		})
	}
}
