package evidence

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf16"
)

const (
	// maxDepth bounds how deep values of a record are nested.
	maxDepth = 32
	// maxInteger is the largest integer that every JSON reader keeps exact.
	maxInteger = "9007199254740991"
)

// member is one member of an object as it is written: the name between its
// quotes, the value whole.
type member struct{ name, value []byte }

// scanObject reads a text that is one object in the form of RFC 8785 whose
// numbers are all integers, and appends its members. It is no parser of JSON
// in general: whatever could have been written in another way is refused,
// because a second reader might read it in another way too.
func scanObject(text []byte, members []member) ([]member, bool) {
	s := scanner{text: text}
	if !s.object(1, &members) || s.at != len(text) {
		return members, false
	}
	return members, true
}

// scanner reads at a position of a text of valid UTF-8.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) next(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if bytes.HasPrefix(s.text[s.at:], []byte(w)) {
		s.at += len(w)
		return true
	}
	return false
}

// value reads any value at a depth, 1 for the outermost.
func (s *scanner) value(depth int) bool {
	if s.at == len(s.text) || depth > maxDepth {
		return false
	}
	switch c := s.text[s.at]; c {
	case '{':
		return s.object(depth, nil)
	case '[':
		return s.array(depth)
	case '"':
		return s.string()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.integer()
}

// object reads an object; its members, where wanted, are appended to into.
func (s *scanner) object(depth int, into *[]member) bool {
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return true
	}
	var last []byte
	for first := true; ; first = false {
		begin := s.at
		if !s.string() {
			return false
		}
		name := s.text[begin+1 : s.at-1]
		if !first && !before(last, name) || !s.next(':') {
			return false
		}
		last, begin = name, s.at
		if !s.value(depth + 1) {
			return false
		}
		if into != nil {
			*into = append(*into, member{name, s.text[begin:s.at]})
		}
		if !s.next(',') {
			return s.next('}')
		}
	}
}

func (s *scanner) array(depth int) bool {
	s.at++
	if s.next(']') {
		return true
	}
	for {
		if !s.value(depth + 1) {
			return false
		}
		if !s.next(',') {
			return s.next(']')
		}
	}
}

func (s *scanner) string() bool {
	if !s.next('"') {
		return false
	}
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < ' ':
			return false
		default:
			s.at++
		}
	}
	return false
}

// escape reads an escape that RFC 8785 demands; every other is another way of
// writing what needs none.
func (s *scanner) escape() bool {
	rest := s.text[s.at+1:]
	if len(rest) > 0 && bytes.IndexByte([]byte(`"\bfnrt`), rest[0]) >= 0 {
		s.at += 2
		return true
	}
	if len(rest) < 5 || !bytes.HasPrefix(rest, []byte("u00")) {
		return false
	}
	high, low := rest[3], rest[4]
	short := high == '0' && bytes.IndexByte([]byte("89acd"), low) >= 0
	if high != '0' && high != '1' || bytes.IndexByte([]byte("0123456789abcdef"), low) < 0 || short {
		return false
	}
	s.at += 6
	return true
}

func (s *scanner) integer() bool {
	negative := s.next('-')
	begin := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	digits := s.text[begin:s.at]
	switch {
	case len(digits) == 0, digits[0] == '0' && (len(digits) > 1 || negative), len(digits) > len(maxInteger):
		return false
	case len(digits) == len(maxInteger):
		return string(digits) <= maxInteger
	}
	return true
}

// before reports whether a name comes before another: by UTF-16 code units,
// which is the order of bytes for ASCII without escapes.
func before(a, b []byte) bool {
	if plain(a) && plain(b) {
		return bytes.Compare(a, b) < 0
	}
	return slices.Compare(utf16.Encode([]rune(unquote(a))), utf16.Encode([]rune(unquote(b)))) < 0
}

func unquote(name []byte) string {
	var text string
	_ = json.Unmarshal(slices.Concat([]byte{'"'}, name, []byte{'"'}), &text) // string() has accepted it
	return text
}
