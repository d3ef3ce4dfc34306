package usage

import (
	"bytes"

	"github.com/tidwall/gjson"

	"modelgate"
)

// maxEvent bounds what the parser keeps of one line or event. A longer one is
// passed over and flaws the reading; the relay is not concerned.
const maxEvent = 8 << 20

// events splits a stream of server-sent events, pushed in pieces of any size,
// by the rules of the HTML standard (https://html.spec.whatwg.org/#server-sent-events):
// lines end with LF, CR or both, an empty line ends an event. Its result does
// not depend on how the stream is cut.
type events struct {
	lines lineScanner
	line  []byte // the beginning of a line whose end has not come
	name  []byte // of the event under way
	// data of the event under way: borrowed from the piece at hand while it
	// is one line of it, else collected in own.
	data     []byte
	own      []byte
	has      bool // there was a data line, perhaps an empty one
	begun    bool // not the first line any more: no byte order mark to expect
	skipping bool // the rest of a line that is too long
	overlong bool // something was passed over
	// text is told of the data as it comes; nil for nobody. Told is how much of
	// the line under way it knows.
	text *delivery
	told int
}

// push takes the next bytes and calls event for each event they complete.
// The arguments are good until event returns.
func (e *events) push(chunk []byte, event func(name, data []byte)) {
	for len(chunk) > 0 {
		text, rest, ended := e.lines.next(chunk)
		if !ended {
			e.hold(text)
			break
		}
		e.complete(text, event)
		chunk = rest
	}
	if e.has && len(e.own) == 0 && len(e.data) > 0 {
		e.own = append(e.own[:0], e.data...)
		e.data = e.own
	}
}

func (e *events) hold(part []byte) {
	if e.skipping || len(e.line)+len(part) > maxEvent {
		if e.told > 0 && e.text != nil {
			e.text.feed(part)
		}
		e.skipping, e.overlong = true, true
		e.line = nil
		return
	}
	e.line = append(e.line, part...)
	if e.text != nil && bytes.HasPrefix(e.line, []byte(dataField)) {
		e.text.feed(e.line[max(e.told, len(dataField)):])
		e.told = len(e.line)
	}
}

// dataField begins a line of data.
const dataField = "data:"

// complete takes the end of a line.
func (e *events) complete(tail []byte, event func(name, data []byte)) {
	line := tail
	if len(e.line) > 0 || e.skipping {
		e.hold(tail)
		line = e.line
	}
	if e.skipping {
		e.skipping, e.told = false, 0
		return
	}
	if !e.begun {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		e.begun = true
	}
	held := len(e.line) > 0
	if len(line) > 0 {
		e.field(line, held)
	} else {
		if e.has {
			event(e.name, e.data)
		}
		e.name, e.data, e.own, e.has = e.name[:0], nil, e.own[:0], false
		if e.text != nil {
			e.text.restart()
		}
	}
	e.line, e.told = e.line[:0], 0
}

// field takes one line. Held says that it lies in the parser's own memory,
// which the next line overwrites.
func (e *events) field(line []byte, held bool) {
	key, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(key) {
	case "event":
		e.name = append(e.name[:0], value...)
	case "data":
		if e.text != nil && e.told == 0 {
			e.text.value(value)
		}
		switch {
		case !e.has && !held:
			e.data = value
		case len(e.data)+len(value) > maxEvent:
			e.overlong = true
		default:
			if e.has && len(e.own) == 0 {
				e.own = append(e.own, e.data...)
			}
			if e.has {
				e.own = append(e.own, '\n')
			}
			e.own = append(e.own, value...)
			e.data = e.own
		}
		e.has = true
	}
}

// unfinished is the event that would be complete if the stream went on with
// an empty line: some servers leave out the last one.
func (e *events) unfinished() (name, data []byte, ok bool) {
	tail := events{name: bytes.Clone(e.name), data: bytes.Clone(e.data), has: e.has, begun: e.begun}
	if len(e.line) > 0 && !e.skipping {
		if len(tail.data) > 0 {
			tail.own = tail.data
		}
		tail.field(e.line, true)
	}
	return tail.name, tail.data, tail.has
}

// stream meters a stream of events.
type stream struct {
	counter
	events events
	doc    document
	on     func(name, data []byte) // s.event, bound once
}

func newStream(c counter) *stream {
	s := &stream{counter: c}
	s.on = s.event
	s.delivery.repeats, s.delivery.again, s.delivery.fresh = c.reader.repeats, c.reader.again, true
	s.events.text = &s.delivery
	return s
}

func (s *stream) Feed(chunk []byte) bool {
	ended := s.ended
	s.events.push(chunk, s.on)
	return s.ended && !ended
}

func (s *stream) event(name, data []byte) {
	before := s.progress()
	s.reading.event(s.reader, &s.doc, name, data)
	if s.covers(before) {
		s.delivery.covered()
	}
	s.delivery.images = min(s.delivery.images, 1) // the rest were drafts
}

// event reads one event.
func (r *reading) event(reader *Reader, doc *document, name, data []byte) {
	if string(data) == "[DONE]" {
		r.ended = true
		return
	}
	if reader.items && isToolItem(name, data) {
		if !doc.read(data) {
			r.flawed = true
			return
		}
		reader.read(r, doc)
		return
	}
	for _, member := range reader.members {
		if object(data, member) {
			if !doc.read(data) {
				r.flawed = true
				return
			}
			reader.read(r, doc)
			break
		}
	}
	if end := ends(reader, name, data); end != "" {
		r.ended = true
		r.broken = end == "error"
	}
}

// ends is the type of an event if it is one that ends the stream, else "".
// The type is the name of the event, else the member type of its data.
func ends(reader *Reader, name, data []byte) string {
	for _, end := range reader.ends {
		if string(name) == end || len(name) == 0 && bytes.Contains(data, []byte(end)) && gjson.GetBytes(data, "type").Str == end {
			return end
		}
	}
	return ""
}

// Result counts an event that lacks its closing empty line if its data is
// complete JSON. A stream that was cut keeps the figures it had, as Some.
func (s *stream) Result() (modelgate.Usage, Seen) {
	s.flawed = s.flawed || s.events.overlong
	r := s.look()
	usage, seen := s.result(r, r.ended && !r.broken)
	if s.final && !s.ended && s.delivery.bytes() > 0 {
		seen = min(seen, Some) // there was more after the last word
	}
	return usage, seen
}

func (s *stream) Unstated() int64 { return s.unstated(s.look()) }

// look reads what has come of an event that lacks its end too.
func (s *stream) look() *reading {
	name, data, ok := s.events.unfinished()
	if !ok || string(data) != "[DONE]" && !gjson.ValidBytes(data) {
		return &s.reading
	}
	r := s.copyOf(&s.reading)
	r.event(s.reader, &s.doc, name, data)
	return r
}
