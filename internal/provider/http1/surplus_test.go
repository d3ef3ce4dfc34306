package http1

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"modelgate/internal/provider/http1/http1test"
)

// surplusReply is a reply with bytes after its end.
type surplusReply struct {
	name, method, path string // path "": /surplus
	head, body         string
	surplus            string // "": any
	want               string // what the caller gets of the body
}

func surplusReplies() []surplusReply {
	const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	long := strings.Repeat("x", 3*wireBuffer)
	return []surplusReply{
		{name: "length", head: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", body: "hello", want: "hello"},
		{name: "long length", head: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(long)), body: long, want: long},
		{name: "chunks", head: chunkedHead, body: "5\r\nhello\r\n0\r\n\r\n", want: "hello"},
		{name: "long chunk", head: chunkedHead, body: fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(long), long), want: long},
		{name: "chunks with a trailer", head: strings.Replace(chunkedHead, "\r\n\r\n", "\r\nTrailer: X\r\n\r\n", 1), body: "5\r\nhello\r\n0\r\nX: y\r\n\r\n", want: "hello"},
		{name: "empty", head: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		{name: "no content", head: "HTTP/1.1 204 No Content\r\n\r\n"},
		{name: "no content with a body", head: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", body: "hello"},
		{name: "not modified", head: "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"},
		{name: "head", method: "HEAD", head: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
		{name: "head with a body", method: "HEAD", head: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", body: "hello"},
		{name: "interim", head: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", body: "hello", want: "hello"},
		{name: "an early reply", path: "/early", head: "HTTP/1.1 413 Too Long\r\nContent-Length: 2\r\n\r\n", body: "no", want: "no"},
		{name: "a length in characters", head: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", body: "naïv", surplus: "e", want: "naï"},
	}
}

// standard makes the same call with net/http.
func standard(t *testing.T, client *http.Client, base string, c call) (int, string) {
	t.Helper()
	req, err := http.NewRequest(c.method, base+c.path, strings.NewReader(string(c.body)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// TestSurplusReachesNoOtherCall puts a forged reply, and less than one, behind
// every kind of reply: in its last record, in one that came with it, and in both.
// Its call gets what net/http makes of the reply, the next call its own answer.
func TestSurplusReachesNoOtherCall(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{0, tls.VersionTLS12, tls.VersionTLS13} {
		for _, c := range surplusReplies() {
			t.Run(fmt.Sprintf("%x/%s", version, c.name), func(t *testing.T) {
				t.Parallel()
				u := http1test.NewSurplusPeer(t, version)
				p := poolTo(t, u.Peer)
				transport := &http.Transport{DisableKeepAlives: true}
				if u.Secure != nil {
					transport.TLSClientConfig = p.tls
				}
				extras := []string{http1test.Forged, http1test.Forged + http1test.Forged, "H", "\r\n"}
				if c.surplus != "" {
					extras = []string{c.surplus}
				}
				for _, extra := range extras {
					for _, writes := range [][]string{
						{c.head + c.body + extra}, {c.head, c.body + extra}, {c.head, c.body, extra}, {c.head + c.body, extra},
						{c.head, c.body + extra[:1], extra[1:]}, append(strings.SplitAfter(c.head, "\n"), c.body+extra),
					} {
						u.Writes.Store(&writes)
						surplusThenMine(t, p, &http.Client{Transport: transport}, u.URL(), c)
					}
				}
			})
		}
	}
}

// call is the call that gets the reply and what follows it.
func (c *surplusReply) call() call {
	if c.method != "" {
		return call{method: c.method, path: "/surplus"}
	}
	return call{method: "POST", path: cmp.Or(c.path, "/surplus"), body: []byte("{}")}
}

func surplusThenMine(t *testing.T, p *Pool, client *http.Client, base string, c surplusReply) {
	t.Helper()
	status, body, _, err := send(t.Context(), t, p, c.call())
	if err != nil || body != c.want {
		t.Errorf("the call itself: %d %.80q, %v", status, body, err)
	}
	if wantStatus, want := standard(t, client, base, c.call()); wantStatus != status || want != body {
		t.Errorf("%d %.80q, but net/http reads %d %.80q", status, body, wantStatus, want)
	}
	for i := range 2 {
		want := fmt.Sprintf("of mine %d", i)
		status, body, _, err := send(t.Context(), t, p, call{method: "POST", path: "/mine", body: []byte(want)})
		if status != 200 || body != want || err != nil {
			t.Errorf("another tenant's call got %d %.80q, %v", status, body, err)
		}
	}
}

// TestSurplusProperty cuts replies, and what follows them, into records anywhere.
func TestSurplusProperty(t *testing.T) {
	t.Parallel()
	kinds := surplusReplies()
	peers := make(map[uint16]*http1test.SurplusPeer)
	pools := make(map[uint16]*Pool)
	versions := []uint16{0, tls.VersionTLS12, tls.VersionTLS13}
	for _, version := range versions {
		peers[version] = http1test.NewSurplusPeer(t, version)
		pools[version] = poolTo(t, peers[version].Peer)
	}
	rapid.Check(t, func(r *rapid.T) {
		c := rapid.SampledFrom(kinds).Draw(r, "reply")
		if c.surplus == "" {
			c.surplus = rapid.OneOf(rapid.Just(http1test.Forged), rapid.StringN(1, 20, -1)).Draw(r, "surplus")
		}
		text := c.head + c.body + c.surplus
		var writes []string
		for len(text) > 0 {
			n := rapid.IntRange(1, len(text)).Draw(r, "record")
			writes, text = append(writes, text[:n]), text[n:]
		}
		version := rapid.SampledFrom(versions).Draw(r, "version")
		peers[version].Writes.Store(&writes)
		p := pools[version]
		if _, body, _, err := send(context.Background(), t, p, c.call()); err != nil || body != c.want {
			r.Fatalf("%.80q, %v", body, err)
		}
		if status, body, _, err := send(context.Background(), t, p, call{method: "POST", path: "/mine", body: []byte("mine")}); status != 200 || body != "mine" || err != nil {
			r.Fatalf("another call got %d %.80q, %v", status, body, err)
		}
	})
}
