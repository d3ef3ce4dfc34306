package usage

import (
	"bytes"
	"slices"
	"strconv"

	"modelgate"
)

const (
	// maxProjection bounds what is kept of one JSON document.
	maxProjection = 256 << 10
	// maxKept bounds what is kept of one member; deepest is the level down to
	// which it is kept, see skimmer.level.
	maxKept = 192 << 10
	deepest = 5
)

// framing is how documents stand in a body.
type framing uint8

const (
	single framing = iota // one value; an array is taken as a list of documents
	lines                 // one document after another
)

// documents meters a body of JSON documents.
type documents struct {
	counter
	framing framing
	skim    skimmer
	doc     document
}

func newDocuments(c counter, f framing) *documents {
	d := &documents{counter: c, framing: f}
	d.skim.whole, d.doc.whole = c.reader.whole, c.reader.whole
	return d
}

func (d *documents) Feed(chunk []byte) bool {
	ended, closed := d.ended, d.skim.closed
	for len(chunk) > 0 {
		if rest, ok := d.direct(chunk); ok {
			chunk = rest
			continue
		}
		rest, complete := d.skim.next(chunk)
		d.delivery.feed(chunk[:len(chunk)-len(rest)])
		if chunk = rest; complete {
			d.document()
		}
	}
	if d.framing == single {
		return d.skim.closed && !closed
	}
	return d.ended && !ended
}

func (d *documents) document() {
	if d.skim.overflow || !d.doc.read(d.skim.out) {
		d.flawed = true
		return
	}
	d.flawed = d.flawed || d.skim.lost
	d.take(&d.doc)
}

// direct reads a document that lies whole in the chunk and is valid, as most
// do: nothing of it is copied. What it does not take is the skimmer's, which
// comes to the same figures.
func (d *documents) direct(chunk []byte) (rest []byte, ok bool) {
	if len(chunk) > maxProjection || !d.skim.rests() || !closes(chunk) {
		return nil, false
	}
	end, ok := d.doc.skim(chunk)
	if !ok {
		return nil, false
	}
	d.skim.closed = true
	if !d.take(&d.doc) && !d.read {
		d.delivery.feed(chunk[:end])
	}
	return chunk[end:], true
}

// closes reports whether an object may end at the end of the chunk.
func closes(chunk []byte) bool {
	return bytes.HasSuffix(bytes.TrimRight(chunk, " \t\r\n"), []byte("}"))
}

// Result has of a body that was cut what it had stated before, as Some: a
// figure further on could have said something else.
func (d *documents) Result() (modelgate.Usage, Seen) {
	if d.framing == lines {
		return d.result(&d.reading, d.ended)
	}
	usage, seen := d.result(d.look(), d.skim.closed)
	if !d.skim.closed {
		seen = min(seen, Some)
	}
	return usage, seen
}

func (d *documents) Unstated() int64 { return d.unstated(d.look()) }

// look reads what has come of a document that lacks its end too.
func (d *documents) look() *reading {
	text := d.skim.soFar()
	if text == nil || !d.doc.read(text) {
		return &d.reading
	}
	r := d.copyOf(&d.reading)
	d.reader.read(r, &d.doc)
	return r
}

// skimmer reads JSON in pieces and keeps of each document only what a usage
// reader can ask for: texts, numbers and literals at its top, whole the few
// members that hold figures, down to a level those that hold what tools did, of
// any other array its length and of any other object nothing. So a reply of megabytes leaves some hundred bytes. It does
// not check grammar beyond brackets and quotes.
type skimmer struct {
	out      []byte // projection of the document under way
	base     int    // 1 inside an array of documents, else 0
	depth    int    // open brackets
	inString bool
	str      stringScanner
	length   int  // bytes of the string so far
	key      int  // where in out the key of the member under way begins
	isKey    bool // the next string at the top of the document is a key
	sound    int  // how much of out are members that have come whole
	kept     bool // the member under way is kept, down to the level deepest
	elements int  // of the array under way, commas counted
	filled   bool // that array has an element
	closed   bool // the outermost value is complete
	overflow bool // the projection grew too large: it is not to be read

	whole [][]byte // members that are kept down to the level deepest, quoted
	start int      // where in out the value of the member under way begins
	cut   bool     // it grew too large: nothing is left of it
	lost  bool     // so did some member of the document
}

// next takes bytes up to the end of a document; it reports whether one was
// completed, and returns what follows.
func (s *skimmer) next(chunk []byte) (rest []byte, complete bool) {
	for i := 0; i < len(chunk); {
		if s.inString {
			i += s.text(chunk[i:])
			continue
		}
		c := chunk[i]
		i++
		switch c {
		case '"':
			s.quote()
		case '{', '[':
			s.open(c)
		case '}', ']':
			if s.shut(c) {
				return chunk[i:], true
			}
		case ' ', '\t', '\r', '\n':
		default:
			s.other(c)
			if s.level() > 2 && !s.keeps() {
				// Nothing is counted here, so numbers pass at once.
				for i < len(chunk) && chunk[i] < '[' && chunk[i] != '"' {
					i++
				}
			}
		}
	}
	return nil, false
}

// soFar is the projection of a document that lacks its end, as if it ended
// after the last member that has come whole; nil where there is none.
func (s *skimmer) soFar() []byte {
	if s.level() < 1 || s.overflow || s.sound == 0 {
		return nil
	}
	return append(bytes.Clone(s.out[:s.sound]), '}')
}

// rests reports whether the skimmer stands before a document that is no
// element of an array.
func (s *skimmer) rests() bool { return s.depth == 0 && s.base == 0 && !s.inString }

// level is how deep in a document the skimmer stands: 0 outside, 1 among its
// members, 2 inside a member's value.
func (s *skimmer) level() int { return s.depth - s.base }

func (s *skimmer) keeps() bool {
	return s.level() == 1 || s.kept && s.level() <= deepest
}

func (s *skimmer) put(c ...byte) {
	switch {
	case s.cut:
		return
	case s.kept && len(s.out)+len(c)-s.start > maxKept:
		s.out, s.kept, s.cut, s.lost = append(s.out[:s.start], '0'), false, true, true
		return
	}
	if len(s.out)+len(c) > maxProjection {
		s.overflow = true
		return
	}
	s.out = append(s.out, c...)
}

func (s *skimmer) quote() {
	s.inString, s.length = true, 0
	if s.level() == 1 && s.isKey {
		s.key = len(s.out)
	}
	if s.keeps() {
		s.put('"')
	}
	s.filled = s.filled || s.level() == 2
}

// text takes bytes of a string, its closing quote included, and returns how
// many.
func (s *skimmer) text(b []byte) int {
	n, closed, _ := s.str.next(b)
	s.inString = !closed
	if s.keeps() {
		s.keepText(b[:n])
	}
	return n
}

// keepText copies the beginning of a string. A text that is longer than
// maxText keeps its quotes only, so that no half escape is left.
func (s *skimmer) keepText(b []byte) {
	content := b
	if !s.inString {
		content = b[:len(b)-1]
	}
	if s.length <= maxText {
		if s.length+len(content) > maxText {
			s.out = s.out[:len(s.out)-s.length]
			s.length = maxText + 1
		} else {
			s.put(content...)
			s.length += len(content)
		}
	}
	if !s.inString {
		s.put('"')
	}
}

func (s *skimmer) open(c byte) {
	s.depth++
	if s.depth == 1 && c == '[' {
		s.base = 1
		return
	}
	switch s.level() {
	case 1:
		s.out, s.overflow, s.lost, s.isKey, s.sound = append(s.out[:0], c), false, false, true, 0
		return
	case 2:
		name, named := bytes.CutSuffix(s.out[min(s.key, len(s.out)):], []byte(":"))
		s.kept = !s.overflow && named && keeps(s.whole, name)
		s.start = len(s.out)
		s.elements, s.filled = 0, false
	default:
		s.filled = true
	}
	switch level := s.level(); {
	case s.kept && level <= deepest:
		s.put(c)
	case s.kept && level == deepest+1:
		s.put('0') // stands for what is deeper
	}
}

// shut takes a closing bracket and reports whether it ends a document.
func (s *skimmer) shut(c byte) bool {
	level := s.level()
	s.depth = max(s.depth-1, 0)
	switch {
	case level == 1:
		s.put(c)
		s.closed = s.depth == 0
		return true
	case level <= 0:
		s.closed, s.base = true, 0
	case s.cut:
		s.cut = level > 2
	case s.kept:
		if level <= deepest {
			s.put(c)
		}
		if level == 2 {
			s.kept, s.cut, s.sound = false, false, len(s.out)
		}
	case level == 2:
		n := s.elements
		if s.filled {
			n++
		}
		s.put(strconv.AppendInt(nil, int64(n), 10)...)
	}
	return false
}

func (s *skimmer) other(c byte) {
	switch {
	case s.level() == 1:
		s.isKey = c == ',' || s.isKey && c != ':'
		if c == ',' {
			s.sound = len(s.out)
		}
		s.put(c)
	case s.keeps():
		s.put(c)
	case s.kept:
	case c == ',' && s.level() == 2:
		s.elements++
	default:
		s.filled = true
	}
}

// keeps reports whether a key, with its quotes, names a member that is kept whole.
func keeps(whole [][]byte, key []byte) bool {
	return slices.ContainsFunc(whole, func(name []byte) bool { return bytes.Equal(name, key) })
}
