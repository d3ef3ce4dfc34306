package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/provider/http1/http1test"
)

// written is a connection that keeps what is written to it and, once a header and
// a body of the expected length have been, answers. An earlier answer would
// be one to no request, which net/http refuses.
type written struct {
	net.Conn
	body   int // the length expected
	in     io.Reader
	whole  chan struct{} // closed when the request is
	closed chan struct{}
	close  sync.Once

	mu  sync.Mutex
	out bytes.Buffer
}

func newWritten(body int) *written {
	return &written{body: body, in: strings.NewReader(http1test.Hello), whole: make(chan struct{}), closed: make(chan struct{})}
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.out.Write(b)
	if _, body, ended := bytes.Cut(w.out.Bytes(), []byte("\r\n\r\n")); ended && len(body) >= w.body {
		select {
		case <-w.whole:
		default:
			close(w.whole)
		}
	}
	return n, err
}

func (w *written) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

func (w *written) Read(b []byte) (int, error) {
	select {
	case <-w.whole:
		return w.in.Read(b)
	case <-w.closed:
		return 0, net.ErrClosed
	}
}

func (w *written) Close() error {
	w.close.Do(func() { close(w.closed) })
	return nil
}

func (w *written) SetReadDeadline(time.Time) error  { return nil }
func (w *written) SetWriteDeadline(time.Time) error { return nil }
func (w *written) SetDeadline(time.Time) error      { return nil }
func (w *written) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (w *written) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// overOwn writes as the gateway's own connections do, overHTTP as net/http does.
func overOwn(to *written) transport {
	p := newPooled(&url.URL{Scheme: "http", Host: "h"}, func(context.Context, string, string) (net.Conn, error) { return to, nil }, nil, Timeouts{FirstByte: time.Minute})
	p.close() // it keeps no connection
	return p
}

func overHTTP(to *written) transport {
	return unpooled{&http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return to, nil }}}
}

// leave sends a request, whoever made it, over a transport and returns what was
// written.
func leave(t *testing.T, via func(*written) transport, req *http.Request, body []byte) (string, error) {
	t.Helper()
	to := newWritten(len(body))
	p := &Provider{transport: via(to)}
	resp, sent, err := p.Send(&Attempt{Request: req.WithContext(t.Context()), body: body})
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err != nil && (sent || to.text() != "") {
		t.Errorf("%v, although %q was written", err, to.text())
	}
	return to.text(), err
}

func transports() map[string]func(*written) transport {
	return map[string]func(*written) transport{"own": overOwn, "net/http": overHTTP}
}

// checkOne fails where what was written is not one request with the target, the
// header and the body.
func checkOne(t *testing.T, text string, req *http.Request, body string) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(text))
	got, err := http.ReadRequest(in)
	if err != nil {
		t.Fatalf("%q left: %v", text, err)
	}
	b, err := io.ReadAll(got.Body)
	rest, _ := io.ReadAll(in)
	if err != nil || string(b) != body || len(rest) > 0 || got.Method != req.Method || got.RequestURI != req.URL.RequestURI() || got.Host != req.Host {
		t.Fatalf("%q left: method %q, target %q, host %q, body %q, %v, then %q", text, got.Method, got.RequestURI, got.Host, b, err, rest)
	}
	for name, values := range req.Header {
		for i, v := range values {
			if name = textproto.CanonicalMIMEHeaderKey(name); name != "User-Agent" && got.Header[name][i] != strings.Trim(v, " \t") {
				t.Fatalf("%q left: %s is %q", text, name, got.Header[name])
			}
		}
	}
	if n := len(got.Header) - len(req.Header); n > 3 { // Content-Length, Connection, User-Agent
		t.Fatalf("%q left: header %v", text, got.Header)
	}
}

// TestWriterRefuses hands the writers what must not stand in a request, as any
// code of the gateway could by mistake.
func TestWriterRefuses(t *testing.T) {
	t.Parallel()
	good := func() *http.Request {
		return &http.Request{Method: "POST", URL: &url.URL{Scheme: "http", Host: "h", Path: "/x", RawQuery: "a=%20b&c=é%"}, Host: "h", Header: http.Header{"Accept": {"a b"}}, ContentLength: 2}
	}
	bad := map[string]func(*http.Request){
		"a line in the query":  func(r *http.Request) { r.URL.RawQuery = "a=b HTTP/1.1\r\nHost: h\r\n\r\nPOST /y" },
		"a line feed":          func(r *http.Request) { r.URL.RawQuery = "a\nb" },
		"a space":              func(r *http.Request) { r.URL.RawQuery = "a b" },
		"a tab":                func(r *http.Request) { r.URL.RawQuery = "a\tb" },
		"NUL":                  func(r *http.Request) { r.URL.RawQuery = "a\x00b" },
		"DEL":                  func(r *http.Request) { r.URL.RawQuery = "a\x7fb" },
		"a fragment":           func(r *http.Request) { r.URL.RawQuery = "a#b" },
		"another form":         func(r *http.Request) { r.URL.Opaque = "//h/x y" },
		"a space in the path":  func(r *http.Request) { r.URL.Opaque = "/x y" },
		"no path":              func(r *http.Request) { r.URL.Opaque = "*" },
		"a method":             func(r *http.Request) { r.Method = "GET /y HTTP/1.1\r\n\r\nPOST" },
		"no method":            func(r *http.Request) { r.Method = "" },
		"a host":               func(r *http.Request) { r.Host = "h\r\nX: y" },
		"no host":              func(r *http.Request) { r.Host = "" },
		"a header's name":      func(r *http.Request) { r.Header["X: y\r\nZ"] = []string{"a"} },
		"a space in a name":    func(r *http.Request) { r.Header["X y"] = []string{"a"} },
		"an empty name":        func(r *http.Request) { r.Header[""] = []string{"a"} },
		"a header's value":     func(r *http.Request) { r.Header["X"] = []string{"a\r\nY: z"} },
		"a length":             func(r *http.Request) { r.Header["content-length"] = []string{"0"} },
		"a framing":            func(r *http.Request) { r.Header["Transfer-Encoding"] = []string{"chunked"} },
		"a second host":        func(r *http.Request) { r.Header["Host"] = []string{"i"} },
		"words on the hop":     func(r *http.Request) { r.Header["connection"] = []string{"close"} },
		"words on a new":       func(r *http.Request) { r.Header["Upgrade"] = []string{"h2c"} },
		"a name without bytes": func(r *http.Request) { r.Header["\x00"] = nil; r.Header["é"] = []string{"a"} },
	}
	for via, transport := range transports() {
		text, err := leave(t, transport, good(), []byte("{}"))
		if err != nil {
			t.Fatalf("%s: %v", via, err)
		}
		checkOne(t, text, good(), "{}")
		for name, spoil := range bad {
			req := good()
			spoil(req)
			if text, err := leave(t, transport, req, []byte("{}")); !errors.Is(err, ErrUnsendable) || text != "" {
				t.Errorf("%s: %s: %v, wrote %q", via, name, err, text)
			}
		}
	}
}

// FuzzWriter hands the writers any request: what leaves is exactly that one.
func FuzzWriter(f *testing.F) {
	f.Add("POST", "/v1/x", "a=b", "h:80", "Accept", "a b", "{}")
	f.Add("GET", "/v1/x y", "a=b HTTP/1.1\r\n\r\nGET /", "h", "X-A", "b\r\nc: d", "")
	f.Add("CONNECT", "//x", "%zz", "h", "transfer-encoding", "chunked", "0\r\n\r\n")
	f.Add("PRI", "*", "\x80#", "[::1", "User-Agent", "", "x")
	f.Fuzz(func(t *testing.T, method, path, query, host, name, value, body string) {
		for _, transport := range transports() {
			req := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: "h", Path: path, RawQuery: query}, Host: host,
				Header: http.Header{name: {value}}, ContentLength: int64(len(body))}
			if text, err := leave(t, transport, req, []byte(body)); err == nil {
				checkOne(t, text, req, body)
			}
		}
	})
}

// TestWireRefusesBadHeaders: nothing leaves of a call whose header cannot be written.
func TestWireRefusesBadHeaders(t *testing.T) {
	t.Parallel()
	u := http1test.NewPeer(t, http1test.Says(http1test.Hello))
	p := peered(t, u, nil)
	for name, value := range map[string]string{"Accept": "a\r\nX-Smuggled: 1", "X-Stainless-A b": "c", "X-Stainless-\r\nB": "c"} {
		_, _, sent, err := send(t.Context(), t, p, Call{Method: "GET", Path: "/x", Header: http.Header{name: {value}}})
		if !errors.Is(err, ErrUnsendable) || sent {
			t.Errorf("%q: %q: sent %v, %v", name, value, sent, err)
		}
	}
}

// TestOutboundRefusesTargets: a target that cannot be written is the caller's
// mistake, before anything begins.
func TestOutboundRefusesTargets(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "openai", Credentials: []string{"sk"}})
	for _, query := range []string{"a=b c", "a=b\r\nX: y", "a\x00", "a#b", "a\x7f"} {
		if _, err := p.Outbound(t.Context(), Call{Method: "GET", Path: "/v1/x", Query: query}); modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("query %q: %v, want a bad request", query, err)
		}
	}
}
