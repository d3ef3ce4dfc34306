package http1server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"modelgate/internal/http1server"
	"modelgate/internal/yield"
)

// bound ends what should have ended by itself.
const bound = 20 * time.Second

// gate is a server of this package that serves a handler.
type gate struct {
	*http1server.Server
	addr   string
	served chan error
}

func serve(t *testing.T, h http.HandlerFunc, edit func(*http.Server)) *gate {
	t.Helper()
	rest := &http.Server{Handler: h, ReadHeaderTimeout: bound, IdleTimeout: bound, ErrorLog: silent()}
	if edit != nil {
		edit(rest)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{http1server.New(rest, yield.NewWriteBatcher()), l.Addr().String(), make(chan error, 1)}
	go func() { g.served <- g.Serve(l) }()
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// dial opens a connection that cannot hang.
func (g *gate) dial(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(bound)); err != nil {
		t.Fatal(err)
	}
	return &client{conn, bufio.NewReader(conn)}
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func (c *client) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// answer reads an answer and its body.
func (c *client) answer(t *testing.T) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("after %q: %v", body, err)
	}
	return resp, string(body)
}

// ended waits until the server has closed the connection.
func (c *client) ended(t *testing.T) {
	t.Helper()
	if b, err := io.ReadAll(c.in); err != nil || len(b) > 0 {
		t.Errorf("the connection goes on with %q, %v", b, err)
	}
}

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// who answers which server a request came by, its path and its body.
func who(w http.ResponseWriter, r *http.Request) {
	server := "http1server"
	if r.Context().Value(http.ServerContextKey) != nil {
		server = "net/http"
	}
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %s %v", server, r.Method, r.URL, body, err)
}

// TestRequestsLeave: plain requests stay in the server, the first other one
// takes the connection to net/http with all that has been sent.
func TestRequestsLeave(t *testing.T) {
	t.Parallel()
	g := serve(t, who, nil)
	for name, c := range map[string]struct{ send, want []string }{
		"plain": {[]string{post("/a?b=c", "x"), post("/a?b=c", ""), post("/d", "yy")},
			[]string{"http1server POST /a?b=c x <nil>", "http1server POST /a?b=c  <nil>", "http1server POST /d yy <nil>"}},
		"a get": {[]string{post("/a", "x"), "GET /b HTTP/1.1\r\nHost: a\r\n\r\n", post("/c", "z")},
			[]string{"http1server POST /a x <nil>", "net/http GET /b  <nil>", "net/http POST /c z <nil>"}},
		"chunks": {[]string{"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
			[]string{"net/http POST /a x <nil>"}},
		"a long body": {[]string{post("/a", strings.Repeat("x", 300<<10))}, []string{"net/http POST /a " + strings.Repeat("x", 300<<10) + " <nil>"}},
		"a large body": {[]string{post("/a", strings.Repeat("x", 256<<10)), post("/b", "y")},
			[]string{"http1server POST /a " + strings.Repeat("x", 256<<10) + " <nil>", "http1server POST /b y <nil>"}},
		"a long head": {[]string{"POST /a HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 4<<10) + "\r\nContent-Length: 1\r\n\r\ny"},
			[]string{"net/http POST /a y <nil>"}},
		"all at once": {[]string{post("/a", "1") + post("/b", "22") + "GET /c HTTP/1.1\r\nHost: a\r\n\r\n" + post("/d", "4")},
			[]string{"http1server POST /a 1 <nil>", "http1server POST /b 22 <nil>", "net/http GET /c  <nil>", "net/http POST /d 4 <nil>"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := g.dial(t)
			go func() {
				for _, text := range c.send {
					_, _ = io.WriteString(conn, text) // what does not arrive is not answered
				}
			}()
			for _, want := range c.want {
				if _, got := conn.answer(t); got != want {
					t.Errorf("answer %.100q, want %.100q", got, want)
				}
			}
		})
	}
}

// TestSameHeadAgain: what differs between the heads of two requests is seen, the
// length of the body among it.
func TestSameHeadAgain(t *testing.T) {
	t.Parallel()
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d %s %v", r.URL, r.Header["X-A"], r.ContentLength, body, err)
	}, nil)
	conn := g.dial(t)
	for _, c := range []struct{ target, value, body string }{
		{"/a", "1", "x"}, {"/a", "1", "x"}, {"/a", "1", "xyz"}, {"/a", "1", strings.Repeat("x", 12)}, {"/a", "1", ""},
		{"/a", "2", "x"}, {"/a", "1", "x"}, {"/b", "1", "x"}, {"/b", "1", "xy"},
	} {
		conn.send(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nX-A: %s\r\n\r\n%s", c.target, len(c.body), c.value, c.body))
		want := fmt.Sprintf("%s [%s] %d %s <nil>", c.target, c.value, len(c.body), c.body)
		if _, got := conn.answer(t); got != want {
			t.Errorf("answer %q, want %q", got, want)
		}
	}
}

// TestRequestsInPieces sends a request cut at every byte.
func TestRequestsInPieces(t *testing.T) {
	t.Parallel()
	g := serve(t, who, nil)
	text := post("/path", "body")
	conn := g.dial(t)
	if err := conn.Conn.(*net.TCPConn).SetNoDelay(true); err != nil {
		t.Fatal(err)
	}
	for at := 1; at < len(text); at++ {
		conn.send(t, text[:at])
		conn.send(t, text[at:])
		if _, got := conn.answer(t); got != "http1server POST /path body <nil>" {
			t.Fatalf("cut at %d: %q", at, got)
		}
	}
	for i := range len(text) {
		conn.send(t, text[i:i+1])
	}
	if _, got := conn.answer(t); got != "http1server POST /path body <nil>" {
		t.Errorf("byte by byte: %q", got)
	}
}

// TestHeadsThatBreakOff get the answer that net/http has for them.
func TestHeadsThatBreakOff(t *testing.T) {
	t.Parallel()
	g := serve(t, who, nil)
	for text, status := range map[string]int{"POST /a HTTP/1.1\r\nHost: a\r\nContent-Le": 0, "POST /a HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n": 400, "\x16\x03\x01": 0, "": 0} {
		conn := g.dial(t)
		conn.send(t, text)
		if err := conn.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if status > 0 {
			if resp, _ := conn.answer(t); resp.StatusCode != status {
				t.Errorf("%q: status %d, want %d", text, resp.StatusCode, status)
			}
			continue
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestSlowHeads: who does not finish a head in time is cut off.
func TestSlowHeads(t *testing.T) {
	t.Parallel()
	g := serve(t, who, func(s *http.Server) { s.ReadHeaderTimeout = 300 * time.Millisecond })
	for _, text := range []string{"", "POST /a HTTP/1.1\r\nHost:"} {
		conn := g.dial(t)
		conn.send(t, text)
		conn.ended(t)
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	g := serve(t, who, func(s *http.Server) { s.IdleTimeout = 50 * time.Millisecond })
	conn := g.dial(t)
	conn.send(t, post("/a", "x"))
	conn.answer(t)
	conn.ended(t)
}

// TestClientLeaves: the call's context ends when its client goes, and only
// then.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	entered := make(chan struct{})
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if r.URL.Path == "/short" {
			return
		}
		close(entered)
		select {
		case <-r.Context().Done():
			ended <- r.Context().Err()
		case <-time.After(bound):
			ended <- nil
		}
	}, nil)
	conn := g.dial(t)
	conn.send(t, post("/short", "x"))
	conn.answer(t)
	conn.send(t, post("/a", "x"))
	<-entered
	conn.Close()
	if err := <-ended; err != context.Canceled {
		t.Errorf("the context ended with %v", err)
	}
}

// TestWatchedConnectionGoesOn: a call that was watched leaves the connection as
// it was, also where the client sends its next request early.
func TestWatchedConnectionGoesOn(t *testing.T) {
	t.Parallel()
	var g *gate
	watched := make(chan struct{}, 1)
	g = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) != "early" {
			await(t, func() bool { return http1server.Watching(g.Server) == 1 })
			watched <- struct{}{}
		}
		if string(body) == "slower" { // until the watch has seen the next request
			await(t, func() bool { return http1server.Watching(g.Server) == 0 })
		}
		fmt.Fprintf(w, "%s %v", body, r.Context().Err())
	}, nil)
	conn := g.dial(t)
	for range 3 {
		conn.send(t, post("/a", "slow"))
		<-watched
		if _, got := conn.answer(t); got != "slow <nil>" {
			t.Errorf("answer %q", got)
		}
	}
	conn.send(t, post("/a", "slower"))
	<-watched
	conn.send(t, post("/b", "early"))
	for _, want := range []string{"slower <nil>", "early <nil>"} {
		if _, got := conn.answer(t); got != want {
			t.Errorf("answer %q, want %q", got, want)
		}
	}
}

// await returns once a condition holds.
func await(t *testing.T, holds func() bool) {
	for deadline := time.Now().Add(bound); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Error("what was waited for did not come")
			return
		}
	}
}

// TestShutdown waits for calls under way, and closes connections at rest.
func TestShutdown(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-leave
		}
		who(w, r)
	}, nil)
	rests, busy, other := g.dial(t), g.dial(t), g.dial(t)
	rests.send(t, post("/a", "x"))
	rests.answer(t)
	other.send(t, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
	other.answer(t)
	busy.send(t, post("/slow", "x"))
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- g.Shutdown(t.Context()) }()
	rests.ended(t)
	other.ended(t)
	if err := <-g.served; err != http.ErrServerClosed {
		t.Errorf("Serve returned %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("Shutdown returned %v with a call under way", err)
	default:
	}
	close(leave)
	if resp, got := busy.answer(t); got != "http1server POST /slow x <nil>" || !resp.Close {
		t.Errorf("answer %q, to be closed %v", got, resp.Close)
	}
	busy.ended(t)
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// TestShutdownGivesUp with its context; Close then cuts.
func TestShutdownGivesUp(t *testing.T) {
	t.Parallel()
	entered, gone := make(chan struct{}), make(chan struct{})
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(entered)
		<-r.Context().Done()
		close(gone)
	}, nil)
	conn := g.dial(t)
	conn.send(t, post("/a", "x"))
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Shutdown(ctx); err == nil {
		t.Error("Shutdown did not say that a call is under way")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	<-gone
}
