package http1

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate/internal/provider/http1/http1test"
)

// scripted is a connection that gives bytes in pieces of one size, and then ends.
type scripted struct {
	net.Conn
	text     []byte
	piece    int
	deadline time.Time
	set      int // how often
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.piece)], s.text)
	s.text = s.text[n:]
	return n, nil
}

func (s *scripted) SetReadDeadline(at time.Time) error {
	s.deadline, s.set = at, s.set+1
	return nil
}

// outcome is all that a reader makes of one reply.
type outcome struct {
	head   *http.Response
	body   string
	bad    bool
	left   int  // bytes that were not used
	closes bool // the connection is not to serve another call
}

// ours reads a reply as a connection does; plain says that net/http had no part in
// it.
func ours(text []byte, piece int, method string) (o outcome, plain bool) {
	conn := &scripted{text: text, piece: piece}
	c := newConn(&Pool{firstByte: time.Minute}, conn, conn)
	req := &http.Request{Method: method}
	r := &connReply{}
	if plain = c.plainHead(req, r); !plain {
		return theirs(c.r, req), false
	}
	b, err := readIn(r.body.from, 3+piece)
	return outcome{head: &r.resp, body: b, bad: err != io.EOF, left: c.r.Buffered() + len(conn.text), closes: c.spoiled || c.r.Buffered() > 0}, true
}

func theirs(from *bufio.Reader, req *http.Request) outcome {
	resp, err := http.ReadResponse(from, req)
	if err != nil {
		return outcome{bad: true}
	}
	b, err := readIn(resp.Body, 512)
	left, _ := io.Copy(io.Discard, from)
	return outcome{head: resp, body: b, bad: err != io.EOF, left: int(left), closes: resp.Close}
}

func readIn(from io.Reader, piece int) (string, error) {
	var all []byte
	p := make([]byte, piece)
	for {
		n, err := from.Read(p)
		if all = append(all, p[:n]...); err != nil {
			return string(all), err
		}
	}
}

// sameReply reads a reply in both ways. Where ours is the stricter it may
// refuse, and then the reply ends the connection.
func sameReply(t *testing.T, text []byte, piece int, method string) (plain bool) {
	want := theirs(bufio.NewReaderSize(bytes.NewReader(text), wireBuffer), &http.Request{Method: method})
	got, plain := ours(text, piece, method)
	switch {
	case (got.head == nil) != (want.head == nil):
		t.Fatalf("%q: %v, want %v", text, got, want)
	case got.head == nil:
		return plain
	case got.head.StatusCode != want.head.StatusCode || got.head.Status != want.head.Status || got.head.ContentLength != want.head.ContentLength ||
		got.head.Proto != want.head.Proto || got.head.Close != want.head.Close || !maps.EqualFunc(got.head.Header, want.head.Header, slices.Equal):
		t.Fatalf("%q: %+v, want %+v", text, got.head, want.head)
	case got.body != want.body && !(got.bad && strings.HasPrefix(want.body, got.body)):
		t.Fatalf("%q: body %q, want %q", text, got.body, want.body)
	case want.bad && !got.bad, got.bad && !want.bad && !strings.Contains(strings.ReplaceAll(string(text), "\r\n", ""), "\n"):
		t.Fatalf("%q in pieces of %d: bad %v, want %v", text, piece, got.bad, want.bad)
	case !got.bad && plain && got.left != want.left && !got.closes:
		t.Fatalf("%q in pieces of %d: %d bytes left, want %d", text, piece, got.left, want.left)
	}
	return plain
}

// TestPlainHead: what is read without net/http, and what is not: everything
// that two readers could take in two ways.
func TestPlainHead(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	long := "X-Long: " + strings.Repeat("x", wireBuffer) + "\r\n"
	for _, c := range []struct {
		name, text string
		plain      bool
	}{
		{"length", ok + "Content-Type: application/json\r\ncontent-length: 5\r\nX-A: b\r\nx-a:c\r\n\r\nhello", true},
		{"chunks", ok + "transfer-encoding: Chunked\r\nConnection: keep-alive\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
		{"nothing", ok + "Content-Length: 0\r\n\r\n", true},
		{"error", "HTTP/1.1 529 \tOver loaded\r\nContent-Length: 1\r\n\r\nx", false},
		{"reason", "HTTP/1.1 404 Not Found Here\r\nContent-Length: 1\r\n\r\nx", true},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", true},
		{"empty reason", "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", false},
		{"two spaces", "HTTP/1.1  200 OK\r\nContent-Length: 1\r\n\r\nx", false},
		{"four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\nx", false},
		{"old version", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false},
		{"small letters", "http/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", false},
		{"interim", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", false},
		{"no content", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", false},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", false},
		{"until the end", ok + "\r\nhello", false},
		{"length twice", ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", false},
		{"two lengths", ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", false},
		{"list of lengths", ok + "Content-Length: 5, 5\r\n\r\nhello", false},
		{"signed length", ok + "Content-Length: +5\r\n\r\nhello", false},
		{"negative length", ok + "Content-Length: -5\r\n\r\nhello", false},
		{"hexadecimal length", ok + "Content-Length: 0x5\r\n\r\nhello", false},
		{"grouped length", ok + "Content-Length: 1_0\r\n\r\nhello", false},
		{"empty length", ok + "Content-Length:\r\n\r\nhello", false},
		{"endless length", ok + "Content-Length: 9223372036854775808\r\n\r\nhello", false},
		{"length and chunks", ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
		{"chunks and length", ok + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
		{"chunks twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		{"two codings", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false},
		{"identity", ok + "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", false},
		{"vertical tab", ok + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", false},
		{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello\r\n\r\n", false},
		{"bare LF in a field", ok + "X: a\nContent-Length: 5\r\n\r\nhello", false},
		{"bare CR", ok + "X: a\rContent-Length: 5\r\nContent-Length: 1\r\n\r\nhello", false},
		{"folded", ok + "X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello", false},
		{"folded length", ok + "Content-Length: 5\r\n 0\r\n\r\nhello", false},
		{"leading space", ok + " X: a\r\nContent-Length: 5\r\n\r\nhello", false},
		{"space before the colon", ok + "Content-Length : 5\r\n\r\nhello", false},
		{"space in a name", ok + "A B: 5\r\nContent-Length: 5\r\n\r\nhello", false},
		{"no name", ok + ": 5\r\nContent-Length: 5\r\n\r\nhello", false},
		{"no colon", ok + "Content-Length 5\r\n\r\nhello", false},
		{"control byte", ok + "X: \x00\r\nContent-Length: 5\r\n\r\nhello", false},
		{"letters beyond ASCII", ok + "X: \xe9\xff\r\nContent-Length: 5\r\n\r\nhello", true},
		{"long", ok + long + "Content-Length: 5\r\n\r\nhello", false},
		{"to be closed", ok + "Connection: close\r\nContent-Length: 5\r\n\r\nhello", false},
		{"named by Connection", ok + "Connection: keep-alive, X\r\nX: a\r\nContent-Length: 5\r\n\r\nhello", false},
		{"announced trailer", ok + "Trailer: X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: a\r\n\r\n", false},
		{"pragma", ok + "Pragma: no-cache\r\nContent-Length: 5\r\n\r\nhello", false},
		{"cut", ok + "Content-Length: 5\r\n", false},
		{"cut body", ok + "Content-Length: 5\r\n\r\nhell", true},
		{"another reply behind it", ok + "Content-Length: 5\r\n\r\nhello" + ok + "\r\n", true},
		{"another reply behind chunks", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + ok + "\r\n", true},
	} {
		if plain := sameReply(t, []byte(c.text), len(c.text), http.MethodPost); plain != c.plain {
			t.Errorf("%s: plain %v, want %v", c.name, plain, c.plain)
		}
		sameReply(t, []byte(c.text), 1, http.MethodPost)
		if sameReply(t, []byte(c.text), len(c.text), http.MethodHead) {
			t.Errorf("%s: plain without a body", c.name)
		}
	}
}

// chunkTexts are bodies in chunks, good and bad.
func chunkTexts() []string {
	return []string{
		"5\r\nhello\r\n0\r\n\r\n", "1\r\nh\r\n4\r\nello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0;x=\"y\"\r\n\r\n", "5 \t\r\nhello\r\n0\r\n\r\n", "5 ;a\r\nhello\r\n0\r\n\r\n",
		"0005\r\nhello\r\n000\r\n\r\n", "0000000000000005\r\nhello\r\n0\r\n\r\n", "00000000000000005\r\nhello\r\n0\r\n\r\n", "aB\r\n" + strings.Repeat("x", 0xab) + "\r\n0\r\n\r\n",
		"0\r\nX: y\r\nZ: w\r\n\r\n", "0\r\nX y\r\n\r\n", "0\r\nX: y\n\r\n", "0\r\nX: y\n\nHTTP/1.1 200 OK\r\n\r\n", "0\r\n\n", "0\r\nX: " + strings.Repeat("y", 5000) + "\r\n\r\n",
		"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello\r\n0\r\n", "5\r\nhel", "", "\r\n", "g\r\n", "-5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n",
		" 5\r\nhello\r\n0\r\n\r\n", "5\r\r\nhello\r\n0\r\n\r\n", "5;\r;\r\nhello\r\n0\r\n\r\n", ";\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n", "ffffffffffffffff\r\nhello", "5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
		"5;" + strings.Repeat("a", 4093) + "\r\nhello\r\n0\r\n\r\n", "5;" + strings.Repeat("a", 4092) + "\r\nhello\r\n0\r\n\r\n", "5;" + strings.Repeat("a", 4091) + "\r\nhello\r\n0\r\n\r\n",
		strings.Repeat("1;"+strings.Repeat("a", 2000)+"\r\nx\r\n", 12) + "0\r\n\r\n", strings.Repeat("1\r\nx\r\n", 3000) + "0\r\n\r\n",
	}
}

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestChunked(t *testing.T) {
	t.Parallel()
	for _, text := range chunkTexts() {
		for _, piece := range []int{len(chunkedHead), len(chunkedHead) + 1, len(chunkedHead) + 7, 5000} {
			if !sameReply(t, []byte(chunkedHead+text), piece, http.MethodPost) {
				t.Fatalf("%q: not plain", text)
			}
		}
	}
}

// FuzzReply reads any bytes as a reply in both ways.
func FuzzReply(f *testing.F) {
	f.Add([]byte(http1test.Hello), uint16(0))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\nx-a:\tc \r\n\r\nhello"), uint16(9))
	f.Add([]byte("HTTP/1.1 429 Too Many\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n"), uint16(70))
	f.Fuzz(func(t *testing.T, text []byte, piece uint16) {
		sameReply(t, text, 1+int(piece), http.MethodPost)
	})
}

// FuzzChunked reads any bytes as chunks in both ways.
func FuzzChunked(f *testing.F) {
	for _, text := range chunkTexts() {
		f.Add([]byte(text), uint16(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, piece uint16) {
		sameReply(t, append([]byte(chunkedHead), text...), len(chunkedHead)+int(piece%300), http.MethodPost)
	})
}
