package fuzzing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"unicode"
)

const (
	// maxText is the longest text that mutation makes, unless a committed seed is
	// longer. What is longer costs time and says little more.
	maxText = 2048

	maxTokens = 4096
	maxSteps  = 6
)

// mutator makes inputs out of others. It is for one goroutine, and the input
// it returns is valid until the next.
type mutator struct {
	corpus  []input
	tokens  [][]byte // words and marks of the corpus
	rand    *rand.Rand
	shape   shape
	texts   []int // the arguments that are text
	longest int   // bytes of a text that mutation makes
	current input
	spare   []byte
}

// newMutator starts from the committed seeds, of which there is at least one,
// and from those of the others that are not too long.
func newMutator(seeds, others []input, r *rand.Rand, s shape) *mutator {
	m := &mutator{rand: r, shape: s, corpus: seeds, longest: maxText, current: make(input, len(seeds[0]))}
	for _, in := range seeds {
		m.longest = max(m.longest, in.size())
	}
	for _, in := range others {
		if in.size() <= m.longest {
			m.corpus = append(m.corpus, in)
		}
	}
	for i, t := range s {
		if isText(t) {
			m.texts = append(m.texts, i)
		}
	}
	m.collectTokens()
	return m
}

// collectTokens cuts the texts of the corpus into words and single marks.
func (m *mutator) collectTokens() {
	seen := make(map[string]bool)
	add := func(word []byte) {
		if len(word) > 0 && len(word) <= 32 && len(m.tokens) < maxTokens && !seen[string(word)] {
			seen[string(word)] = true
			m.tokens = append(m.tokens, slices.Clone(word))
		}
	}
	for _, number := range []string{"0", "-1", "1e999", "0.1", "9223372036854775807", "18446744073709551616", "00", "\x00", "\xff", "\u017f", "\ufeff", "%2e", `\u0000`, "\r\n"} {
		add([]byte(number))
	}
	for _, in := range m.corpus {
		for _, i := range m.texts {
			word := 0
			for at, c := range in[i].text {
				if c < 0x80 && !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)) && c != '_' {
					add(in[i].text[word:at])
					add(in[i].text[at : at+1])
					word = at + 1
				}
			}
			add(in[i].text[word:])
		}
	}
}

// pick is one of the corpus, the shorter of two as often as any.
func (m *mutator) pick() input {
	a := m.corpus[m.rand.IntN(len(m.corpus))]
	if b := m.corpus[m.rand.IntN(len(m.corpus))]; m.rand.IntN(2) == 0 && b.size() < a.size() {
		return b
	}
	return a
}

// next is another input.
func (m *mutator) next() input {
	for i, v := range m.pick() {
		m.current[i].bits = v.bits
		m.current[i].text = append(m.current[i].text[:0], v.text...)
	}
	for range 1 + m.rand.IntN(maxSteps) {
		if i := m.rand.IntN(len(m.shape)); !isText(m.shape[i]) {
			m.current[i].bits = m.number(m.current[i].bits)
		} else {
			m.current[i].text = m.text(m.current[i].text)
		}
	}
	return m.current
}

// number is near to another, or a border, or any.
func (m *mutator) number(n uint64) uint64 {
	switch m.rand.IntN(5) {
	case 0:
		return n + uint64(m.rand.IntN(9)) - 4
	case 1:
		return n ^ 1<<m.rand.IntN(64)
	case 2:
		return 1<<m.rand.IntN(64) - uint64(m.rand.IntN(3))
	case 3:
		return uint64(m.rand.IntN(256))
	default:
		return m.rand.Uint64()
	}
}

// text changes one thing in a text.
func (m *mutator) text(b []byte) []byte {
	at, end := m.span(len(b))
	switch m.rand.IntN(13) {
	case 0: // a bit
		if len(b) > 0 {
			b[m.rand.IntN(len(b))] ^= 1 << m.rand.IntN(8)
		}
	case 1: // a byte
		if len(b) > 0 {
			b[m.rand.IntN(len(b))] = byte(m.rand.IntN(256))
		}
	case 2: // a stretch gone
		return slices.Delete(b, at, end)
	case 3: // a stretch twice
		return m.replace(b, end, end, b[at:end])
	case 4, 5: // a word put in
		return m.replace(b, at, at, m.token())
	case 6, 7: // a word for a stretch
		return m.replace(b, at, end, m.token())
	case 8: // the end of another text
		other := m.other()
		from, _ := m.span(len(other))
		return m.replace(b, at, len(b), other[from:])
	case 9: // a stretch of another text
		other := m.other()
		from, to := m.span(len(other))
		return m.replace(b, at, end, other[from:to])
	case 10: // a letter in the other case
		if at < len(b) && unicode.IsLetter(rune(b[at])) {
			b[at] ^= 0x20
		}
	case 11: // a byte in another spelling
		if at < len(b) {
			form := []string{"%%%02x", "%%%02X", `\u%04x`, `\x%02x`}[m.rand.IntN(4)]
			return m.replace(b, at, at+1, fmt.Appendf(nil, form, b[at]))
		}
	default: // cut off
		return b[:at]
	}
	return b
}

// span is a stretch of a text of n bytes, mostly a short one.
func (m *mutator) span(n int) (from, to int) {
	if n == 0 {
		return 0, 0
	}
	from = m.rand.IntN(n + 1)
	most := min(n-from, 8)
	if m.rand.IntN(4) == 0 {
		most = n - from
	}
	return from, from + m.rand.IntN(most+1)
}

func (m *mutator) token() []byte { return m.tokens[m.rand.IntN(len(m.tokens))] }

// other is a text of the corpus.
func (m *mutator) other() []byte {
	return m.pick()[m.texts[m.rand.IntN(len(m.texts))]].text
}

// replace puts a text in place of b[from:to], as far as there is room.
func (m *mutator) replace(b []byte, from, to int, with []byte) []byte {
	if len(b)+len(with) > m.longest {
		return b
	}
	m.spare = append(m.spare[:0], with...)
	return slices.Replace(b, from, to, m.spare...)
}
