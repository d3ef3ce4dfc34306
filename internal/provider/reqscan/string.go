package reqscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// str checks the string whose first byte after the quote is at i and
// returns the offset after the closing quote.
func (l *Lexer) str(i int) (int, error) {
	for {
		i = l.plain(i)
		if i >= len(l.Text) {
			return 0, jsonErrorf("a string is not closed")
		}
		switch c := l.Text[i]; c {
		case '"':
			return i + 1, nil
		case '\\':
			n := escapeLength(l.Text[i:])
			if n == 0 {
				return 0, jsonErrorf("illegal escape in a string at byte %d", i)
			}
			l.escaped = true
			i += n
		default:
			return 0, jsonErrorf("control byte 0x%02x in a string at byte %d: write it as an escape", c, i)
		}
	}
}

// Byte-parallel masks: one byte value in each of eight lanes.
const (
	laneOnes  = 0x0101010101010101
	laneHigh  = 0x80 * laneOnes
	laneTwo   = 0x02 * laneOnes
	lane21    = 0x21 * laneOnes
	laneSlash = '\\' * laneOnes
)

// special marks, with the high bit of their lane, the bytes of w that end a
// run of plain string bytes: controls, quote, backslash. Exchanging 0x20
// with 0x22 puts the quote next to the controls, so one subtraction finds
// both. Lanes above the lowest mark may be marked wrongly by its borrow.
func special(w uint64) uint64 {
	return (((w ^ laneTwo) - lane21) | ((w ^ laneSlash) - laneOnes)) &^ w & laneHigh
}

// suspect has a high bit in some lane if w holds a special byte or one that
// is not ASCII. It costs less than special.
func suspect(w uint64) uint64 {
	return ((w ^ laneTwo) - lane21) | ((w ^ laneSlash) - laneOnes) | w
}

// plain is the first offset from i on that holds a quote, a control byte, or a
// backslash that is not passed over as a short escape.
func (l *Lexer) plain(i int) int {
	text := l.Text
	high := uint64(0)
	for len(text)-i >= 32 {
		run := text[i : i+32 : i+32]
		w0, w1 := binary.LittleEndian.Uint64(run), binary.LittleEndian.Uint64(run[8:])
		w2, w3 := binary.LittleEndian.Uint64(run[16:]), binary.LittleEndian.Uint64(run[24:])
		if (suspect(w0)|suspect(w1)|suspect(w2)|suspect(w3))&laneHigh == 0 {
			i += 32
			continue
		}
		high |= w0 | w1 | w2 | w3
		m0, m1, m2, m3 := special(w0), special(w1), special(w2), special(w3)
		if m0|m1|m2|m3 == 0 {
			i += 32
			continue
		}
		switch {
		case m0 != 0:
			i += bits.TrailingZeros64(m0) / 8
		case m1 != 0:
			i += 8 + bits.TrailingZeros64(m1)/8
		case m2 != 0:
			i += 16 + bits.TrailingZeros64(m2)/8
		default:
			i += 24 + bits.TrailingZeros64(m3)/8
		}
		// Line ends and quotes are what most escapes in a text stand for.
		if text[i] == '\\' && i+1 < len(text) && (text[i+1] == 'n' || text[i+1] == '"') {
			l.escaped = true
			i += 2
			continue
		}
		l.high |= high
		return i
	}
	for ; i < len(text); i++ {
		c := text[i]
		high |= uint64(c)
		if c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	l.high |= high
	return i
}

// escapeLength is the length of the escape that b begins with, 0 if it is
// none that JSON knows.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hexUnit(b); ok {
			return 6
		}
	}
	return 0
}

// hexUnit is the UTF-16 code unit of the escape \uXXXX that b begins with.
func hexUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range b[2:6] {
		digit, ok := HexDigit(c)
		if !ok {
			return 0, false
		}
		unit = unit<<4 | rune(digit)
	}
	return unit, true
}

// HexDigit is the value of a hexadecimal digit, in either letter case; false for any
// other byte.
func HexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// utf8Error is the complaint about text that is not UTF-8, nil when it is.
func (l *Lexer) utf8Error() error {
	if l.high&laneHigh == 0 || utf8.Valid(l.Text) {
		return nil
	}
	i := 0
	for i < len(l.Text) {
		r, size := utf8.DecodeRune(l.Text[i:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	return jsonErrorf("it is not UTF-8 at byte %d", i)
}

// unescape appends the decoded contents of a checked JSON string to dst. It
// reports false when an escape names half a surrogate pair, for which it
// appends U+FFFD.
func unescape(dst, raw []byte) (decoded []byte, whole bool) {
	whole = true
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), whole
		}
		dst = append(dst, raw[:i]...)
		r, size := escapedRune(raw[i:])
		if r == utf8.RuneError && size == 6 && !bytes.EqualFold(raw[i:i+6], []byte(`\ufffd`)) {
			whole = false
		}
		dst = utf8.AppendRune(dst, r)
		raw = raw[i+size:]
	}
}

// escapedRune is the character of the escape, or of the pair of surrogate
// escapes, that b begins with, and how many bytes that takes. Half a pair
// is utf8.RuneError.
func escapedRune(b []byte) (rune, int) {
	if b[1] != 'u' {
		const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		return rune(meanings[bytes.IndexByte([]byte(letters), b[1])]), 2
	}
	unit, _ := hexUnit(b)
	if !utf16.IsSurrogate(unit) {
		return unit, 6
	}
	if low, ok := hexUnit(b[6:]); ok {
		if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
			return r, 12
		}
	}
	return utf8.RuneError, 6
}
