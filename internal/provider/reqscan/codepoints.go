package reqscan

import (
	"bytes"
	"unicode/utf8"
)

// CodePoints is the number of Unicode code points of a JSON string, its
// escapes resolved, or of all the strings in an array; half a surrogate pair
// counts as one. Any other kind has none. Nothing is decoded or allocated.
func (v Value) CodePoints() int64 {
	switch v.Kind() {
	case JSONString:
		return codePoints(v.inner())
	case JSONArray:
		var sum int64
		for element := range v.Elements() {
			if element.Kind() == JSONString {
				sum += codePoints(element.inner())
			}
		}
		return sum
	default:
		return 0
	}
}

// codePoints counts in the raw contents of a checked JSON string.
func codePoints(raw []byte) int64 {
	var count int64
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return count + int64(utf8.RuneCount(raw))
		}
		_, size := escapedRune(raw[i:])
		count += int64(utf8.RuneCount(raw[:i])) + 1
		raw = raw[i+size:]
	}
}
