package http1server

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const plainHead = "POST /v1/chat/completions?a=%20b HTTP/1.1\r\nHost: gateway.test:8080\r\nAuthorization: Bearer gw\r\n" +
	"content-type:  application/json \r\nContent-Length: 12\r\nAccept: */*\r\nX-A: 1\r\nx-a: 2\r\nConnection: keep-alive\r\n\r\n"

// heads are requests and whether they are plain.
var heads = []struct {
	name, text string
	plain      bool
}{
	{"plain", plainHead, true},
	{"no body", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", true},
	{"many headers", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n" + strings.Repeat("A: b\r\n", 40) + "\r\n", true},
	{"longest body", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 262144\r\n\r\n", true},
	{"empty value", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nA:\r\n\r\n", true},
	{"eighth bit", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nA: caf\xe9\r\n\r\n", true},
	{"longer body", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 262145\r\n\r\n", false},
	{"no length", "POST /x HTTP/1.1\r\nHost: a\r\n\r\n", false},
	{"two lengths", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", false},
	{"length list", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n", false},
	{"signed length", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", false},
	{"empty length", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", false},
	{"chunked", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false},
	{"no host", "POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\n", false},
	{"two hosts", "POST /x HTTP/1.1\r\nHost: a\r\nHost: a\r\nContent-Length: 3\r\n\r\n", false},
	{"odd host", "POST /x HTTP/1.1\r\nHost: a b\r\nContent-Length: 3\r\n\r\n", false},
	{"get", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", false},
	{"version 1.0", "POST /x HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\n", false},
	{"absolute target", "POST http://b/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", false},
	{"star", "POST * HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", false},
	{"space in the target", "POST /a b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", false},
	{"to be closed", "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\n", false},
	{"upgrade", "POST /x HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\n", false},
	{"expects", "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", false},
	{"folded", "POST /x HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\nContent-Length: 3\r\n\r\n", false},
	{"space before the colon", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\n", false},
	{"no colon", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nA\r\n\r\n", false},
	{"no name", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n: b\r\n\r\n", false},
	{"bare newline", "POST /x HTTP/1.1\r\nHost: a\nX: y\r\nContent-Length: 3\r\n\r\n", false},
	{"bare return", "POST /x HTTP/1.1\r\nHost: a\r\nX: y\rz\r\nContent-Length: 3\r\n\r\n", false},
	{"nul", "POST /x HTTP/1.1\r\nHost: a\r\nX: y\x00\r\nContent-Length: 3\r\n\r\n", false},
	{"line before", "\r\nPOST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", false},
}

func TestHeads(t *testing.T) {
	t.Parallel()
	for _, c := range heads {
		if _, plain := parseHead(c.text); plain != c.plain {
			t.Errorf("%s: plain %v, want %v", c.name, plain, c.plain)
		}
	}
}

// FuzzHead has net/http read whatever the server takes for plain: both must see
// the same request, with a body that begins at the same place.
func FuzzHead(f *testing.F) {
	for _, c := range heads {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end := endOfHead(b)
		if end == 0 {
			return
		}
		h, plain := parseHead(string(b[:end]))
		if !plain {
			return
		}
		in := bufio.NewReaderSize(bytes.NewReader(b), max(len(b), 16))
		r, err := http.ReadRequest(in)
		if err != nil {
			if !(&conn{}).parse(h.target) {
				return // both leave the target to net/http's answer
			}
			t.Fatalf("net/http refuses %q: %v", b[:end], err)
		}
		if in.Buffered() != len(b)-end {
			t.Errorf("%q: net/http leaves %d bytes, http1server %d", b, in.Buffered(), len(b)-end)
		}
		host := r.Host
		want := r.Header.Clone()
		want.Del("Host")
		want.Del("Content-Length")
		if r.Method != http.MethodPost || r.RequestURI != h.target || host != h.host || r.ContentLength != h.length ||
			r.Close || len(r.TransferEncoding) > 0 || !reflect.DeepEqual(want, h.header) {
			t.Errorf("%q:\nnet/http %s %q %q %d %v %v\nhttp1server %q %q %d %v", b[:end],
				r.Method, r.RequestURI, host, r.ContentLength, r.TransferEncoding, want, h.target, h.host, h.length, h.header)
		}
	})
}

// seconds are heads that come after plainHead, and whether they are taken for
// that one with another length.
var seconds = []struct {
	name     string
	old, new string // what of plainHead is replaced
	same     bool
}{
	{"same", "", "", true},
	{"other length", ": 12", ": 13", true},
	{"longer length", ": 12", ": 262144", true},
	{"shorter length", ": 12", ": 0", true},
	{"length out of bounds", ": 12", ": 262145", false},
	{"length of too many digits", ": 12", ": 0000012", false},
	{"no length", ": 12", ": ", false},
	{"signed length", ": 12", ": -1", false},
	{"length list", ": 12", ": 1,2", false},
	{"space behind the length", ": 12", ": 12 ", false},
	{"other header's value", "X-A: 1", "X-A: 2", false},
	{"other header's name", "X-A: 1", "X-B: 1", false},
	{"one header more", "X-A: 1", "X-A: 1\r\nX-B: 1", false},
	{"header within the length", ": 12", ": 1\r\nA:2", false},
	{"other target", "completions", "completion", false},
}

func TestKnownHead(t *testing.T) {
	t.Parallel()
	for _, c := range seconds {
		k := knownHead(t, plainHead)
		text := strings.Replace(plainHead, c.old, c.new, 1)
		h, same := k.again([]byte(text))
		if same != c.same {
			t.Errorf("%s: same %v, want %v", c.name, same, c.same)
		}
		if want, _ := parseHead(text); same && !reflect.DeepEqual(h, want) {
			t.Errorf("%s: %v, want %v", c.name, h, want)
		}
	}
	if _, same := new(known).again([]byte(plainHead)); same {
		t.Error("a connection knows a head from before its first")
	}
}

func knownHead(t *testing.T, text string) *known {
	t.Helper()
	k := new(known)
	if h, plain := parseHead(text); plain {
		k.remember(h, text)
	}
	return k
}

// FuzzKnownHead has a head be taken for the one before only where reading it
// gives the same.
func FuzzKnownHead(f *testing.F) {
	for _, c := range seconds {
		f.Add([]byte(plainHead), []byte(strings.Replace(plainHead, c.old, c.new, 1)))
	}
	for i := range heads {
		f.Add([]byte(heads[i].text), []byte(heads[(i+1)%len(heads)].text))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		first, second = first[:endOfHead(first)], second[:endOfHead(second)]
		h, same := knownHead(t, string(first)).again(second)
		if !same {
			return
		}
		if want, plain := parseHead(string(second)); !plain || !reflect.DeepEqual(h, want) {
			t.Errorf("after %q:\n%q taken for\n%v, is plain %v\n%v", first, second, h, plain, want)
		}
	})
}

func BenchmarkHead(b *testing.B) {
	text := []byte(plainHead)
	b.Run("http1server", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, plain := parseHead(string(text[:endOfHead(text)])); !plain {
				b.Fatal("not plain")
			}
		}
	})
	b.Run("known", func(b *testing.B) {
		c := new(conn)
		b.ReportAllocs()
		for b.Loop() {
			if _, plain := c.head(text[:endOfHead(text)]); !plain {
				b.Fatal("not plain")
			}
		}
	})
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		source := bytes.NewReader(text)
		in := bufio.NewReader(source)
		for b.Loop() {
			source.Reset(text)
			in.Reset(source)
			if _, err := http.ReadRequest(in); err != nil {
				b.Fatal(err)
			}
		}
	})
}
