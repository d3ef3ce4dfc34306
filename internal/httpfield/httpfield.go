// Package httpfield judges and parses header fields.
package httpfield

import (
	"iter"
	"net/http"
	"net/textproto"
	"strings"
)

// IsToken reports whether a text is a token (RFC 9110, 5.6.2), as methods and the
// names of fields are.
func IsToken[T string | []byte](text T) bool {
	for i := range len(text) {
		if !IsTokenByte(text[i]) {
			return false
		}
	}
	return len(text) > 0
}

// IsTokenByte reports whether a token may contain c.
func IsTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || strings.IndexByte("_.!#$%&'*+^`|~", c) >= 0
}

// IsValue reports whether a text can be the value of a field: it has no control
// characters, tabs included.
func IsValue(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return false
		}
	}
	return true
}

// Parse reads the lines of a header, the empty one at its end included. It passes
// each field, its name canonical, to take, which says whether the field is kept in
// the header and whether the header is acceptable. Parse reports false for a line
// that is not a field, and where take does. The values share memory.
func Parse(lines string, take func(name, value string) (keep, ok bool)) (http.Header, bool) {
	n := max(strings.Count(lines, "\n")-1, 0)
	values := make([]string, n)
	header := make(http.Header, n)
	for i := range n {
		line, rest, _ := strings.Cut(lines, "\r\n")
		lines = rest
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || !IsToken(name) || !IsValue(value) {
			return nil, false
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		values[i] = value
		keep, ok := take(name, value)
		switch list := header[name]; {
		case !ok:
			return nil, false
		case !keep:
		case list != nil:
			header[name] = append(list, value)
		default:
			header[name] = values[i : i+1 : i+1]
		}
	}
	return header, lines == "\r\n"
}

// Elements yields the elements of a field that is a list (RFC 9110, 5.6.1), without
// the white space around them. Empty ones are left out.
func Elements(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, value := range values {
			for element := range strings.SplitSeq(value, ",") {
				if element = strings.Trim(element, " \t"); element != "" && !yield(element) {
					return
				}
			}
		}
	}
}
