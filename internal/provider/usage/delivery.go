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

	fresh    bool // nothing of the value under way has come
	channels [channels]int64
	before   int64 // bytes that figures of the reply cover
	images   int64 // images begun

	at      deliveryState
	name    [longestMemberName + 1]byte // of the string under way or just read, as far as it fits
	length  int                         // of the name; more than longestMemberName: it is none
	channel channel                     // where the string under way counts
	member  memberKind                  // of the value under way
	depth   int                         // open brackets of a container that counts or is passed over
	count   bool                        // the container counts
	str     stringScanner

	textFrom, textTo int // what was left of a piece where the last text that counts began and ended
	texts            int // how many began
	textChannel      channel
	last             shape
}

// shape is how the last value looked that lay in one piece and had one text that
// counts. Most events of a stream differ in that text alone: of those nothing
// else is read.
type shape struct {
	head, tail []byte // around the text; the tail begins after its closing quote
	channel    channel
	other      int64 // what it has of otherChannel
}

// longestShape bounds what is kept of a value.
const longestShape = 1 << 10

// deliveryState is where in the JSON a delivery stands.
type deliveryState uint8

const (
	betweenStrings deliveryState = iota
	inName                       // in a string that may name a member
	afterName                    // a colon makes it one
	beforeValue
	inString
	inContainer // that counts or is passed over; outside its strings
)

// channel is where a text counts. Formats may send the same text on several
// channels: of those the longest counts.
type channel uint8

const (
	otherChannel  channel = iota // texts of members that deliver nothing
	answerChannel                // on top of the longest reasoning
	reasoningChannel
	reasoningChannel2
	deltaChannel // of a format that later repeats each text in full
	channels
)

// memberKind says how the value of a member counts as delivered text.
type memberKind uint8

const (
	isOther      memberKind = iota // nothing
	isText                         // a string counts
	isReasoning                    // a string counts, unless isReasoning2 says more
	isReasoning2                   // a string counts, unless isReasoning says more
	isDelta                        // a string counts, unless the others say more
	isArguments                    // a string counts, and so does all of an object or array
	isRepeated                     // a string counts; an object or array is passed over
	isSkipped                      // an object or array is passed over: no output, or told elsewhere
	isImage                        // a string is an image, or where it lies
)

// longestMemberName is the length of the longest name below.
const longestMemberName = len("bytesBase64Encoded")

// memberKindOf is one list for all formats, because they imitate each other: a
// name that delivers text in one of them does so wherever it occurs.
func memberKindOf(name []byte) memberKind {
	switch string(name) {
	case "content", "text", "thinking", "partial_json", "refusal", "transcript", "tool_plan", "generated_text", "code":
		return isText
	case "reasoning_content":
		return isReasoning
	case "reasoning":
		return isReasoning2
	case "delta":
		return isDelta
	case "arguments", "args", "input", "parameters":
		return isArguments
	case "response":
		return isRepeated
	case "reasoning_details", "thinking_blocks", "annotations", "citations", "citation", "documents", "web_search", "search_results",
		"chat_history", "part", "item", "tools", "segments", "words", "groundingMetadata", "citationMetadata", "logprobs":
		return isSkipped
	case "b64_json", "url", "bytesBase64Encoded":
		return isImage
	}
	return isOther
}

// channel is where a string counts that is the value of a member of the kind.
func (m memberKind) channel() channel {
	switch m {
	case isText, isArguments, isRepeated:
		return answerChannel
	case isReasoning:
		return reasoningChannel
	case isReasoning2:
		return reasoningChannel2
	case isDelta:
		return deltaChannel
	}
	return otherChannel
}

// bytes is how much text there was.
func (d *delivery) bytes() int64 {
	n := max(d.channels[answerChannel]+max(d.channels[reasoningChannel], d.channels[reasoningChannel2]), d.channels[deltaChannel])
	if !d.known && d.any {
		return d.channels[otherChannel]
	}
	return n
}

// covered forgets the text: the provider has stated its tokens.
func (d *delivery) covered() {
	d.before += d.bytes()
	d.channels = [channels]int64{}
}

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
	before.channels[d.textChannel] += size
	other := d.channels[otherChannel] - before.channels[otherChannel]
	before.channels[otherChannel] += other
	if before.channels == d.channels { // nothing but the text has been counted
		d.last.head, d.last.tail = append(d.last.head[:0], head...), append(d.last.tail[:0], tail...)
		d.last.channel, d.last.other = d.textChannel, other
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
	d.channels[last.channel] += size
	d.channels[otherChannel] += last.other
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
	if d.length <= longestMemberName {
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
		d.at, d.member = beforeValue, isOther
		if name := d.name[:d.length]; d.repeats != "" && string(name) == d.repeats {
			d.member = isSkipped
		} else if d.length <= longestMemberName {
			d.member = memberKindOf(name)
		}
		d.known = d.known || d.member != isOther
	case d.at == afterName:
		d.at = betweenStrings
		return b // it was a value, and this may begin the next
	case c == '"':
		d.at, d.channel = inString, d.member.channel()
		if d.member == isImage {
			d.images++
		}
		if d.channel != otherChannel {
			d.texts++
			d.textFrom, d.textChannel = len(b)-1, d.channel
		}
	case (c == '{' || c == '[') && (d.member == isArguments || d.member == isSkipped || d.member == isRepeated):
		d.at, d.depth, d.count = inContainer, 1, d.member == isArguments
		if d.count {
			d.channels[answerChannel]++
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
	if d.depth == 0 && d.channel != otherChannel {
		d.textTo = len(b) - n
	}
	d.channels[d.channel] += size
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
			d.at, d.channel = inString, otherChannel
			if d.count {
				d.channel = answerChannel
			}
		}
		if d.count {
			d.channels[answerChannel]++
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
