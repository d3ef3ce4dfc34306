package usage

import (
	"bytes"

	"modelgate/internal/provider/reqscan"
)

// lineScanner finds the ends of lines in a text that comes in pieces. A line
// ends with LF, CR or CR LF. The zero value is ready.
type lineScanner struct {
	afterCR bool // a piece ended with a CR, to which an LF would belong
}

// next returns what b has of the current line, without its end, and what
// follows the line. ended is false where the end of the line has not come.
func (l *lineScanner) next(b []byte) (text, rest []byte, ended bool) {
	b = l.skipLF(b)
	end := bytes.IndexByte(b, '\n')
	if cr := bytes.IndexByte(b[:until(end, len(b))], '\r'); cr >= 0 {
		end = cr
	}
	if end < 0 {
		return b, nil, false
	}
	l.afterCR = b[end] == '\r'
	return b[:end], l.skipLF(b[end+1:]), true
}

// skipLF is b without the LF of the CR before it.
func (l *lineScanner) skipLF(b []byte) []byte {
	if !l.afterCR || len(b) == 0 {
		return b
	}
	l.afterCR = false
	return bytes.TrimPrefix(b, []byte("\n"))
}

// until is i, or end where i says that nothing was found.
func until(i, end int) int {
	if i < 0 {
		return end
	}
	return i
}

// stringScanner follows a JSON string, and its escapes, that comes in pieces.
// The zero value is ready; it is after each string.
type stringScanner struct {
	escaped bool   // after a backslash
	digits  uint8  // how many hexadecimal digits of \u are still to come
	code    uint16 // of those that have come
}

// next takes bytes of a string up to its end, and says how many belong to it,
// the closing quote included, and how many bytes of UTF-8 they stand for.
func (s *stringScanner) next(b []byte) (n int, closed bool, size int64) {
	for n < len(b) {
		if s.escaped || s.digits > 0 && b[n] != '"' && b[n] != '\\' {
			size += s.resolve(b[n])
			n++
			continue
		}
		i := bytes.IndexByte(b[n:], '"')
		j := bytes.IndexByte(b[n:n+until(i, len(b)-n)], '\\')
		switch {
		case j >= 0:
			s.escaped, s.digits = true, 0
			size += int64(j)
			n += j + 1
		case i < 0:
			return len(b), false, size + int64(len(b)-n)
		default:
			s.digits = 0
			return n + i + 1, true, size + int64(i)
		}
	}
	return n, false, size
}

// resolve takes a byte of an escape and returns the size of what it says once
// it is complete. Each half of a surrogate pair counts as half of it.
func (s *stringScanner) resolve(c byte) int64 {
	if s.escaped {
		s.escaped = false
		if c != 'u' {
			return 1
		}
		s.digits, s.code = 4, 0
		return 0
	}
	s.digits--
	v, _ := reqscan.HexDigit(c)
	s.code = s.code<<4 | uint16(v)
	switch {
	case s.digits > 0:
		return 0
	case s.code < 0x80:
		return 1
	case s.code < 0x800, s.code >= 0xd800 && s.code < 0xe000:
		return 2
	}
	return 3
}
