package http1server

import (
	"bytes"
	"net/http"
	"strings"

	"modelgate/internal/httpfield"
)

const (
	// maxHead bounds the head of a plain request, in bytes; the buffer of a
	// connection has this size.
	maxHead = 4 << 10
	// maxBody bounds its body. It is also how much of a body that nobody wanted
	// is read so that the connection can go on.
	maxBody = 256 << 10
	// maxDigits of a Content-Length that is in question.
	maxDigits = 6
)

// head is the head of a plain request. Its texts stand in one allocation.
type head struct {
	target string
	host   string
	length int64
	header http.Header // as net/http would give it, without Host and Content-Length
}

// known is the head before on a connection. Most clients send the same one time
// and again, but for the length of the body. The zero value knows none.
type known struct {
	head   head
	before string // up to the digits of the length
	after  string // from behind them
}

// remember keeps a head that was parsed from text.
func (k *known) remember(h head, text string) {
	*k = known{}
	at := lengthIn(text)
	if at < 0 {
		return // a spelling that is seldom
	}
	end := at
	for isDigit(text[end]) { // a line end follows
		end++
	}
	*k = known{h, text[:at], text[end:]}
}

// lengthIn is where the digits of a Content-Length begin, -1 where that is not
// seen at once.
func lengthIn(text string) int {
	for _, name := range [...]string{"\r\nContent-Length: ", "\r\ncontent-length: "} {
		if at := strings.Index(text, name); at >= 0 && isDigit(text[at+len(name)]) {
			return at + len(name)
		}
	}
	return -1
}

// again is the head that b is, if it is the known one but for its length. The
// header is the same map: nobody may change it.
func (k *known) again(b []byte) (h head, same bool) {
	from, to := len(k.before), len(b)-len(k.after)
	if from == 0 || to <= from || to-from > maxDigits || string(b[:from]) != k.before || string(b[to:]) != k.after {
		return h, false
	}
	h = k.head
	h.length = length(b[from:to])
	return h, h.length >= 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

const (
	method   = "POST "
	protocol = " HTTP/1.1"
	lineEnd  = "\r\n"
)

// endOfHead is behind the empty line that ends a head, 0 where b has none yet.
func endOfHead(b []byte) int {
	at := bytes.Index(b, []byte(lineEnd+lineEnd))
	if at < 0 {
		return 0
	}
	return at + len(lineEnd+lineEnd)
}

// parseHead reads a head that ends with its empty line. It is false for
// everything that is not plain.
func parseHead(text string) (h head, plain bool) {
	if !strings.HasPrefix(text, method) {
		return h, false
	}
	line, text, _ := strings.Cut(text, lineEnd)
	h.target, plain = strings.CutSuffix(line[len(method):], protocol)
	if !plain || !visible(h.target) {
		return h, false
	}
	h.length = -1
	h.header, plain = httpfield.Parse(text, h.take)
	return h, plain && h.host != "" && h.length >= 0
}

// take takes a field. It says whether the field stays in the header, and whether
// the request is still a plain one.
func (h *head) take(name, value string) (keep, plain bool) {
	switch name {
	case "Host":
		once := h.host == ""
		h.host = value
		return false, once && ordinaryHost(value)
	case "Content-Length":
		if h.length >= 0 {
			return false, false
		}
		h.length = length(value)
		return false, h.length >= 0
	case "Connection":
		return true, strings.EqualFold(value, "keep-alive")
	case "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect", "Pragma": // net/http does something about these
		return false, false
	}
	return true, true
}

// length is what a Content-Length says, -1 for what is not plain.
func length[T string | []byte](value T) int64 {
	if len(value) == 0 || len(value) > maxDigits {
		return -1
	}
	n := int64(0)
	for i := range len(value) {
		if !isDigit(value[i]) {
			return -1
		}
		n = 10*n + int64(value[i]-'0')
	}
	if n > maxBody {
		return -1
	}
	return n
}

// visible reports whether a target has nothing but visible characters.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return strings.HasPrefix(s, "/")
}

// ordinaryHost reports whether a Host names a host and maybe a port, in
// characters about which nobody disagrees.
func ordinaryHost(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_', c == ':', c == '[', c == ']':
		default:
			return false
		}
	}
	return s != ""
}
