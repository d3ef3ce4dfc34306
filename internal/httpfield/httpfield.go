// Package httpfield judges the names and values of header fields.
package httpfield

import "strings"

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
