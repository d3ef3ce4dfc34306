package evidence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxSafeInteger is the largest integer that every JSON reader keeps exact.
const maxSafeInteger = 1<<53 - 1

// appendCanonical writes a JSON value in the form of RFC 8785. A number that is no
// integer, or one that some readers would round, becomes a string of its
// digits, so that no two writers can differ in how they print it.
func appendCanonical(dst, value []byte) ([]byte, error) {
	v, err := decodeValue(value)
	if err != nil {
		return dst, err
	}
	return appendValue(dst, v), nil
}

// decodeValue decodes one JSON value, its numbers as they stand.
func decodeValue(value []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("canonical JSON: more than one value")
	}
	return v, nil
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return appendText(dst, v)
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil || n > maxSafeInteger || n < -maxSafeInteger {
			return appendText(dst, v.String())
		}
		return strconv.AppendInt(dst, n, 10)
	case []any:
		dst = append(dst, '[')
		for i, element := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, element)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range slices.SortedFunc(maps.Keys(v), compareUTF16) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, name), ':')
			dst = appendValue(dst, v[name])
		}
		return append(dst, '}')
	}
	return dst // the decoder makes nothing else
}

// compareUTF16 orders names by their UTF-16 code units, as RFC 8785 has it:
// it differs from the order of bytes for characters past U+FFFF.
func compareUTF16(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			if a[i] < utf8.RuneSelf && b[i] < utf8.RuneSelf {
				return cmp.Compare(a[i], b[i])
			}
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// plain reports whether a text is ASCII and needs no escapes, as nearly all
// are.
func plain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// appendText writes a JSON string with as few escapes as possible. What is
// not UTF-8, and NUL, become U+FFFD, as in the row that the text is of.
func appendText(dst []byte, s string) []byte {
	if plain(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		case c == 0:
			dst = append(dst, "\uFFFD"...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		default:
			const digits = "0123456789abcdef"
			dst = append(dst, `\u00`...)
			dst = append(dst, digits[c>>4], digits[c&15])
		}
	}
	return append(dst, '"')
}
