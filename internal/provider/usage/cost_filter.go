package usage

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// CostFilter takes members that state a cost out of a reply: out of a JSON
// value, of documents one after another, or of the data of server-sent events.
// Every other byte passes unchanged and in order, but for the comma that a
// member leaves over. It holds back no more than the beginning of a member
// that may be one of them. It serves one reply and one goroutine.
type CostFilter struct {
	members CostMembers
	framing costFraming
	lines   lineScanner
	prefix  int // bytes of dataField that the line under way begins with; notData

	at      costState
	open    []costObject // objects that a path leads through
	under   *costNode    // the member under way; nil where no path leads to it
	deep    int          // open brackets of a value that none leads through
	inText  bool         // inside a string of it
	str     stringScanner
	key     []byte // raw, of the member under way; as long as one can be that counts
	skip    bool   // the member under way is taken out
	holding bool
	held    []byte // what stands before a member whose name has not come
	comma   int    // where in held its comma is, from 1 on; 0 for none
	out     []byte
}

// costObject is an open object.
type costObject struct {
	*costNode
	filled bool // a member of it was passed on
	less   bool // a member of it was taken out
}

// costFraming is how JSON stands in the reply.
type costFraming uint8

const (
	costUnknown costFraming = iota // the first byte tells
	costJSON
	costEvents
)

// notData is the prefix of a line of an event that is not data.
const notData = -1

// costState is where in an object of open the filter stands.
type costState uint8

const (
	costTop     costState = iota // outside
	costBetween                  // members
	costInKey
	costBeforeValue
	costInScalar
	costInside // of a text, or of a value that no path leads through
)

// mostHeld bounds what is held back between members.
const mostHeld = 64 << 10

// longestCostKey is how long a name that counts can be, all of it escaped.
const longestCostKey = 6 * 32

// CostMembers are the members of a format's replies that state a cost. The zero
// value has none. It is immutable.
type CostMembers struct {
	root costNode
	// hints are in their names. A text without any of them, and
	// without an escape that could stand for one, has no such member.
	hints [][]byte
}

// costNode is a member on the path to one that states a cost, or that one.
type costNode struct {
	cut     bool // it states a cost
	watched bool // a member of it does
	members map[string]*costNode
}

// NewCostMembers takes the paths of the members, names joined by dots.
func NewCostMembers(paths []string) (m CostMembers) {
	for _, path := range paths {
		node, parent := &m.root, (*costNode)(nil)
		for name := range strings.SplitSeq(path, ".") {
			parent = node
			if parent.members == nil {
				parent.members = make(map[string]*costNode)
			}
			if node = parent.members[name]; node == nil {
				node = new(costNode)
				parent.members[name] = node
			}
		}
		node.cut, parent.watched = true, true
		hint := []byte(path[strings.LastIndexByte(path, '.')+1:])
		if !slices.ContainsFunc(m.hints, func(h []byte) bool { return bytes.Contains(hint, h) }) {
			m.hints = append(m.hints, hint)
		}
	}
	return m
}

// Any reports whether there are such members.
func (m *CostMembers) Any() bool { return len(m.hints) > 0 }

// Filter is the filter for one reply of the type; nil where there is nothing to
// take out.
func (m *CostMembers) Filter(contentType string) *CostFilter {
	if !m.Any() || recording(media(contentType)) {
		return nil
	}
	f := &CostFilter{members: *m}
	if media(contentType) == "text/event-stream" {
		f.framing = costEvents
	}
	return f
}

// mayStand reports whether one of the members may stand in a text.
func (m *CostMembers) mayStand(text []byte) bool {
	return slices.ContainsFunc(m.hints, func(hint []byte) bool { return bytes.Contains(text, hint) }) || bytes.Contains(text, []byte(`\u`))
}

// Whole is Filter for a reply that is complete: nothing is held back. It may
// share the memory of body.
func (f *CostFilter) Whole(body []byte) []byte {
	if !f.members.mayStand(body) {
		return body
	}
	return append(f.Filter(body), f.Rest()...)
}

// Filter returns what of the reply so far may go to the client. The result is
// good until the next call, and may share the memory of chunk.
func (f *CostFilter) Filter(chunk []byte) []byte {
	n := f.events(chunk)
	if n == len(chunk) {
		return chunk
	}
	f.out = append(f.out[:0], chunk[:n]...)
	chunk = chunk[n:]
	if f.framing == costUnknown {
		start := bytes.TrimLeft(chunk, " \t\r\n")
		f.out = append(f.out, chunk[:len(chunk)-len(start)]...)
		chunk = start
		f.framing = framingOf(chunk)
	}
	if f.framing == costEvents {
		f.stream(chunk)
	} else {
		f.json(chunk)
	}
	return f.out
}

// framingOf is how a reply is framed that begins with text.
func framingOf(text []byte) costFraming {
	switch {
	case len(text) == 0:
		return costUnknown
	case text[0] == '{' || text[0] == '[':
		return costJSON
	}
	return costEvents
}

// events is the length of whole events at the beginning of a chunk in which no
// member can stand.
func (f *CostFilter) events(chunk []byte) int {
	if f.framing != costEvents || f.prefix != 0 || f.at != costTop || f.holding || f.skip || f.lines.afterCR {
		return 0
	}
	const blankLine = "\n\n"
	end := bytes.LastIndex(chunk, []byte(blankLine)) + len(blankLine)
	if end < len(blankLine) || f.members.mayStand(chunk[:end]) {
		return 0
	}
	return end
}

// Rest returns what was held back when the reply came to its end.
func (f *CostFilter) Rest() []byte {
	rest := f.held
	f.held = nil
	return rest
}

// stream takes bytes of a stream of events. What is not data is kept where it
// is; within a member that is taken out, it goes with that.
func (f *CostFilter) stream(b []byte) {
	for len(b) > 0 {
		line := f.lines.skipLF(b)
		f.fill(b[:len(b)-len(line)]...)
		text, rest, ended := f.lines.next(line)
		if ended && f.prefix == 0 && len(text) == 0 {
			f.restart()
		}
		f.field(text)
		if ended {
			f.fill(line[len(text) : len(line)-len(rest)]...)
			f.prefix = 0
		}
		b = rest
	}
}

// field takes what has come of a line.
func (f *CostFilter) field(text []byte) {
	n := 0
	for ; n < len(text) && f.prefix >= 0 && f.prefix < len(dataField); n++ {
		if f.prefix++; text[n] != dataField[f.prefix-1] {
			f.prefix = notData
		}
	}
	f.fill(text[:n]...)
	if f.prefix == notData {
		f.fill(text[n:]...)
	} else {
		f.json(text[n:])
	}
}

// restart is before the next event, whatever the last one was.
func (f *CostFilter) restart() {
	f.skip = false
	f.release()
	f.at, f.open, f.deep, f.inText, f.str = costTop, f.open[:0], 0, false, stringScanner{}
}

func (f *CostFilter) emit(b ...byte) {
	switch {
	case f.skip:
	case f.holding:
		f.held = append(f.held, b...)
	default:
		f.out = append(f.out, b...)
	}
}

// fill takes what is no part of a member. Of what has no end, as white space may
// have none, no more is kept than is held at most.
func (f *CostFilter) fill(b ...byte) {
	if f.holding {
		b = b[:min(len(b), max(mostHeld-len(f.held), 0))]
	}
	f.emit(b...)
}

// release lets go of what was held.
func (f *CostFilter) release() {
	f.out = append(f.out, f.held...)
	f.hold(false)
}

func (f *CostFilter) hold(on bool) { f.holding, f.held, f.comma = on, f.held[:0], 0 }

// json takes bytes of JSON.
func (f *CostFilter) json(b []byte) {
	for len(b) > 0 {
		n := 1
		switch f.at {
		case costTop:
			if f.emit(b[0]); b[0] == '{' {
				f.enter(&f.members.root)
			}
		case costBetween:
			f.between(b[0])
		case costInKey:
			n = f.name(b)
		case costBeforeValue:
			f.value(b[0])
		case costInScalar:
			n = f.scalar(b)
		case costInside:
			n = f.inside(b)
		}
		b = b[n:]
	}
}

// between takes what stands around members.
func (f *CostFilter) between(c byte) {
	switch c {
	case '"':
		f.emit(c)
		f.at, f.key = costInKey, append(f.key[:0], c)
	case '}':
		f.release()
		f.emit(c)
		f.exit()
	case ',':
		f.emit(c)
		f.comma = len(f.held)
	default:
		f.fill(c)
	}
}

// name takes bytes of a member's name.
func (f *CostFilter) name(b []byte) int {
	n, closed, _ := f.str.next(b)
	f.emit(b[:n]...)
	f.key = append(f.key, b[:min(n, longestCostKey+1-len(f.key))]...)
	if len(f.key) > longestCostKey && f.holding {
		f.keep()
	}
	if closed {
		f.at = costBeforeValue
		f.judge()
	}
	return n
}

// keep passes on what stood before a member, without a comma that has nothing
// before it any more.
func (f *CostFilter) keep() {
	object := &f.open[len(f.open)-1]
	if object.less && !object.filled && f.comma > 0 {
		f.held = slices.Delete(f.held, f.comma-1, f.comma)
	}
	object.filled = true
	f.release()
}

// judge decides about a member whose name has come.
func (f *CostFilter) judge() {
	object := &f.open[len(f.open)-1]
	f.under = nil
	if name := f.key[1 : len(f.key)-1]; len(f.key) <= longestCostKey {
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(gjson.ParseBytes(f.key).Str)
		}
		f.under = object.members[string(name)]
	}
	switch {
	case !f.holding:
	case f.under != nil && f.under.cut:
		f.hold(false)
		f.skip, object.less = true, true
	default:
		f.keep()
	}
}

// value takes the colon and the beginning of a value.
func (f *CostFilter) value(c byte) {
	f.emit(c)
	switch c {
	case ':', ' ', '\t', '\r', '\n':
	case '"':
		f.at, f.inText = costInside, true
	case '{':
		if f.under != nil && f.under.members != nil && !f.skip {
			f.enter(f.under)
			return
		}
		f.at, f.deep = costInside, 1
	case '[':
		f.at, f.deep = costInside, 1
	default:
		f.at = costInScalar
	}
}

// scalar takes bytes of a number or literal.
func (f *CostFilter) scalar(b []byte) int {
	end := bytes.IndexAny(b, ",} \t\r\n")
	n := until(end, len(b))
	f.emit(b[:n]...)
	if end >= 0 {
		f.leave()
	}
	return n
}

// inside takes bytes of a text, or of a value that no path leads through.
func (f *CostFilter) inside(b []byte) (n int) {
	for ended := false; n < len(b) && !ended; ended = !f.inText && f.deep == 0 {
		if f.inText {
			size, closed, _ := f.str.next(b[n:])
			f.inText = !closed
			n += size
			continue
		}
		switch b[n] {
		case '"':
			f.inText = true
		case '{', '[':
			f.deep++
		case '}', ']':
			f.deep--
		}
		n++
	}
	f.emit(b[:n]...)
	if !f.inText && f.deep == 0 {
		f.leave()
	}
	return n
}

// enter begins an object that a path leads through.
func (f *CostFilter) enter(node *costNode) {
	f.open, f.at = append(f.open, costObject{costNode: node}), costBetween
	f.hold(node.watched)
}

// exit ends it.
func (f *CostFilter) exit() {
	f.open = f.open[:len(f.open)-1]
	if f.at = costTop; len(f.open) > 0 {
		f.leave()
	}
}

// leave ends a value.
func (f *CostFilter) leave() {
	f.skip, f.at = false, costBetween
	f.hold(f.open[len(f.open)-1].watched)
}
