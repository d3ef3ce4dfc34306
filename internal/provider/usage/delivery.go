package usage

import "bytes"

// delivery counts the text that a reply's JSON has delivered so far: answers,
// arguments of tools and visible reasoning, in bytes of UTF-8 and without the
// frame around them. The JSON is pushed in pieces of any size; the result does
// not depend on how it is cut, and includes what came of an incomplete value.
// Nothing is copied but the beginning of a member's name. The zero value is
// ready.
type delivery struct {
	// repeats is a member whose array or object says again what other events
	// have delivered; "" for none.
	repeats string
	again   bool // every value says all again
	any     bool // where no member is known, every text counts
	known   bool // a member was

	fresh  bool // nothing of the value under way has come
	tracks [tracks]int64
	images int64 // pictures begun

	at     spot
	name   [longestDuty + 1]byte // of the string under way or just read, as far as it fits
	length int                   // of the name; more than longestDuty: it is none
	track  track                 // where the string under way counts
	member duty                  // of the value under way
	depth  int                   // open brackets of a container that counts or is passed over
	count  bool                  // the container counts
	str    stringScanner

	textFrom, textTo int // what was left of a piece where the last text that counts began and ended
	texts            int // how many began
	textTrack        track
	last             shape
}

// shape is how the last value looked that lay in one piece and had one text that
// counts. Most events of a stream differ in that text alone: of those nothing
// else is read.
type shape struct {
	head, tail []byte // around the text; the tail begins after its closing quote
	track      track
	other      int64 // what it has of otherTrack
}

// longestShape bounds what is kept of a value.
const longestShape = 1 << 10

// spot is where in the JSON a delivery stands.
type spot uint8

const (
	betweenStrings spot = iota
	inName              // in a string that may name a member
	afterName           // a colon makes it one
	beforeValue
	inString
	inContainer // that counts or is passed over; outside its strings
)

// track is a way to say the same: of several the longest counts.
type track uint8

const (
	otherTrack  track = iota // texts of members that deliver nothing
	answerTrack              // on top of the longest reasoning
	thoughtTrack
	thoughtTooTrack
	deltaTrack // of a format that later repeats each text in full
	tracks
)

// duty is what a member of the name has to do with what a reply delivers.
type duty uint8

const (
	isFrame      duty = iota // nothing
	isText                   // a string counts
	isThought                // a string counts, unless isThoughtToo says more
	isThoughtToo             // a string counts, unless isThought says more
	isDelta                  // a string counts, unless the others say more
	isArguments              // a string counts, and so does all of an object or array
	isReplay                 // a string counts; an object or array is passed over
	isExtra                  // an object or array is passed over: no output, or told elsewhere
	isPicture                // a string is a picture, or where it lies
)

// longestDuty is the length of the longest name below.
const longestDuty = len("bytesBase64Encoded")

// dutyOf knows the names by which the formats of the table deliver.
func dutyOf(name []byte) duty {
	switch string(name) {
	case "content", "text", "thinking", "partial_json", "refusal", "transcript", "tool_plan", "generated_text", "code":
		return isText
	case "reasoning_content":
		return isThought
	case "reasoning":
		return isThoughtToo
	case "delta":
		return isDelta
	case "arguments", "args", "input", "parameters":
		return isArguments
	case "response":
		return isReplay
	case "reasoning_details", "thinking_blocks", "annotations", "citations", "citation", "documents", "web_search", "search_results",
		"chat_history", "part", "item", "tools", "segments", "words", "groundingMetadata", "citationMetadata", "logprobs":
		return isExtra
	case "b64_json", "url", "bytesBase64Encoded":
		return isPicture
	}
	return isFrame
}

// track is where a string counts that is the value of a member with the duty.
func (m duty) track() track {
	switch m {
	case isText, isArguments, isReplay:
		return answerTrack
	case isThought:
		return thoughtTrack
	case isThoughtToo:
		return thoughtTooTrack
	case isDelta:
		return deltaTrack
	}
	return otherTrack
}

// bytes is how much text there was.
func (d *delivery) bytes() int64 {
	n := max(d.tracks[answerTrack]+max(d.tracks[thoughtTrack], d.tracks[thoughtTooTrack]), d.tracks[deltaTrack])
	if !d.known && d.any {
		return d.tracks[otherTrack]
	}
	return n
}

// covered forgets the text: the provider has stated its tokens.
func (d *delivery) covered() { d.tracks = [tracks]int64{} }

// restart begins a new JSON value, wherever the last one stopped.
func (d *delivery) restart() {
	d.at, d.depth, d.str, d.fresh = betweenStrings, 0, stringScanner{}, true
}

// feed takes the next bytes.
func (d *delivery) feed(b []byte) {
	if d.fresh && d.again {
		d.covered()
	}
	d.fresh = false
	for len(b) > 0 {
		switch d.at {
		case betweenStrings:
			i := bytes.IndexByte(b, '"')
			if i < 0 {
				return
			}
			b, d.at, d.length = b[i+1:], inName, 0
		case inName:
			b = d.readName(b)
		case afterName, beforeValue:
			b = d.step(b)
		case inString:
			b = d.readText(b)
		case inContainer:
			b = d.walk(b)
		}
	}
}

// value takes a value that lies whole in one piece.
func (d *delivery) value(b []byte) {
	if d.alike(b) {
		d.fresh = false
		return
	}
	fit := d.fresh && !d.again && len(b) <= longestShape && d.at == betweenStrings
	before := *d
	d.feed(b)
	if !fit || d.at != betweenStrings || d.texts != before.texts+1 || d.images != before.images {
		return
	}
	head, text, tail := b[:len(b)-d.textFrom], b[len(b)-d.textFrom:len(b)-d.textTo], b[len(b)-d.textTo:]
	_, _, size := new(stringScanner).next(text)
	before.tracks[d.textTrack] += size
	other := d.tracks[otherTrack] - before.tracks[otherTrack]
	before.tracks[otherTrack] += other
	if before.tracks == d.tracks { // nothing but the text has been counted
		d.last.head, d.last.tail = append(d.last.head[:0], head...), append(d.last.tail[:0], tail...)
		d.last.track, d.last.other = d.textTrack, other
	}
}

// alike counts a value that has the shape of the last one, and reports whether it
// has.
func (d *delivery) alike(b []byte) bool {
	last := &d.last
	if !d.fresh || len(last.head) == 0 || !bytes.HasPrefix(b, last.head) {
		return false
	}
	text := b[len(last.head):]
	n, closed, size := new(stringScanner).next(text)
	if !closed || !bytes.Equal(text[n:], last.tail) {
		return false
	}
	d.tracks[last.track] += size
	d.tracks[otherTrack] += last.other
	return true
}

// readName takes bytes of a string that may be a name.
func (d *delivery) readName(b []byte) []byte {
	n, closed, _ := d.str.next(b)
	part := b[:n]
	if closed {
		part = b[:n-1]
		d.at = afterName
	}
	if d.length <= longestDuty {
		d.length += copy(d.name[d.length:], part)
	}
	return b[n:]
}

// step takes what stands around the colon after a name.
func (d *delivery) step(b []byte) []byte {
	c := b[0]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
	case d.at == afterName && c == ':':
		d.at, d.member = beforeValue, isFrame
		if name := d.name[:d.length]; d.repeats != "" && string(name) == d.repeats {
			d.member = isExtra
		} else if d.length <= longestDuty {
			d.member = dutyOf(name)
		}
		d.known = d.known || d.member != isFrame
	case d.at == afterName:
		d.at = betweenStrings
		return b // it was a value, and this may begin the next
	case c == '"':
		d.at, d.track = inString, d.member.track()
		if d.member == isPicture {
			d.images++
		}
		if d.track != otherTrack {
			d.texts++
			d.textFrom, d.textTrack = len(b)-1, d.track
		}
	case (c == '{' || c == '[') && (d.member == isArguments || d.member == isExtra || d.member == isReplay):
		d.at, d.depth, d.count = inContainer, 1, d.member == isArguments
		if d.count {
			d.tracks[answerTrack]++
		}
	default:
		d.at = betweenStrings
		return b
	}
	return b[1:]
}

// readText takes bytes of a string.
func (d *delivery) readText(b []byte) []byte {
	n, closed, size := d.str.next(b)
	if d.depth == 0 && d.track != otherTrack {
		d.textTo = len(b) - n
	}
	d.tracks[d.track] += size
	switch {
	case closed && d.depth > 0:
		d.at = inContainer
	case closed:
		d.at = betweenStrings
	}
	return b[n:]
}

// walk takes bytes of a container outside its strings.
func (d *delivery) walk(b []byte) []byte {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '{', '[':
			d.depth++
		case '}', ']':
			d.depth--
		case '"':
			d.at, d.track = inString, otherTrack
			if d.count {
				d.track = answerTrack
			}
		}
		if d.count {
			d.tracks[answerTrack]++
		}
		if d.depth == 0 {
			d.at = betweenStrings
		}
		if d.at != inContainer {
			return b[i+1:]
		}
	}
	return nil
}
