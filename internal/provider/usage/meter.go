package usage

import (
	"bytes"
	"mime"
	"net/http"
	"strings"

	"modelgate"
)

// Seen says how much of a reply's usage a meter has read.
type Seen uint8

// The values, from least to most.
const (
	Nothing Seen = iota // no figure at all
	Some                // figures, but not the last word or not all believable
	All                 // the reply's own final figures, or all that the request alone decides
)

// Meter reads the usage out of one reply while it passes. It never changes a
// byte and never fails: a reply it cannot read yields Nothing. A meter serves
// one reply and one goroutine.
type Meter interface {
	// Feed takes the next bytes of the reply, in pieces of any size. It
	// reports whether they hold the end of the reply: the last event of a
	// stream, or the closing bracket of a JSON value. What was charged must be
	// durable before these bytes reach the client. The meter keeps no
	// reference to chunk.
	Feed(chunk []byte) (terminal bool)
	// Result is the usage as far as it is known. It may be asked for at any
	// time and again after more bytes.
	Result() (modelgate.Usage, Seen)
	// Output is how many tokens of output have come: those that were stated,
	// and an estimate of the text since. It is cheap, and may leave out what an
	// event or document under way states.
	Output() int64
	// Unstated is the text that has come and that the figures of Result do not
	// cover, in bytes.
	Unstated() int64
	// Delivered is all text that has come, in bytes; 0 for what is no text in JSON.
	Delivered() int64
	// StatedCost is what the reply says that the call costs.
	StatedCost() StatedCost
	// Close releases what the meter holds. Result stays valid.
	Close()
}

// Reply is what is known of a reply before its body.
type Reply struct {
	Status          int
	ContentType     string // with or without parameters
	ContentEncoding string // "" and identity are plain
	Requested       RequestedUnits
	Header          http.Header // of the reply; nil for none
}

// Reader knows the shape in which a family of replies states usage, both as
// one JSON value and as a stream. Readers are immutable.
type Reader struct {
	name string
	// members are quoted names of which one must open an object in an event of a
	// stream; other events are not parsed.
	members [][]byte
	// ends are types of events that end a stream, besides [DONE].
	ends []string
	// read takes one JSON document: a whole body (see skimmer for what is
	// left of it) or the data of an event.
	read func(*reading, *document)
	// states are the forms of a reply, in the words of response_format, in which
	// one about a recording states its usage; empty for other replies.
	states []string
	// finish completes the usage of a successful reply from what was asked;
	// nil does nothing.
	finish func(*reading, RequestedUnits)
	// head completes the reading of a successful reply from its header; whole says
	// that the reply came to its end. Nil does nothing.
	head func(r *reading, h http.Header, whole bool)
	// whole are quoted names of members at the top of a document, objects that
	// hold figures and lists of what tools of the provider's did: these are read
	// with all that is in them. Of any other array only the length is.
	whole [][]byte
	// items: events named response.output_item.done hold what a tool of the
	// provider's did.
	items bool
	// repeats is a member of a stream's events that says again what other
	// events have said; "" for none.
	repeats string
	// anyText: a reply in which no member that delivers is known delivers by all.
	anyText bool
	// again: every event of a stream says all of the text so far.
	again bool
	// begun reads what a successful reply that was cut has delivered beside
	// text; nil does nothing.
	begun func(*reading, *delivery)
}

// Transcribes reports whether replies are to recordings, which are charged by
// their length where a reply states no usage.
func (r *Reader) Transcribes() bool { return r != nil && len(r.states) > 0 }

// StatesIn are the values of response_format in which a reply about a recording
// states its usage. The caller must not change them.
func (r *Reader) StatesIn() []string { return r.states }

// String names the reader in messages.
func (r *Reader) String() string { return r.name }

// Meter makes the meter for one reply. A nil reader meters nothing.
func (r *Reader) Meter(reply Reply) Meter {
	if r == nil {
		return new(opaque)
	}
	m := r.plain(reply)
	switch strings.ToLower(strings.TrimSpace(reply.ContentEncoding)) {
	case "", "identity":
		return m
	}
	return newDecoder(reply.ContentEncoding, m)
}

// counter is the part that the meters of all framings share.
type counter struct {
	reader    *Reader
	requested RequestedUnits
	header    http.Header
	good      bool // the status says success
	reading
	outlook  *reading // what look and result make of it; nil until they need one
	delivery delivery
}

// take reads a document whose text has been delivered. It reports whether its
// figures cover that.
func (c *counter) take(doc *document) (covered bool) {
	before := c.progress()
	c.reader.read(&c.reading, doc)
	if covered = c.covers(before); covered {
		c.delivery.covered()
	}
	return covered
}

// progress is how far a reading states the output of a reply.
type progress struct {
	output int64
	final  bool
}

func (r *reading) progress() progress { return progress{r.ownOutput(), r.final} }

// covers reports whether the reading states the output of all that has come,
// which it did not before.
func (r *reading) covers(before progress) bool {
	return r.ownOutput() > before.output || r.final && !before.final
}

// ownOutput are the stated output tokens of the model itself.
func (r *reading) ownOutput() int64 {
	return r.usage.Output + r.usage.Reasoning + r.usage.AudioOutput + r.usage.ImageOutput
}

// Output counts the text since the last figure on top of that.
func (c *counter) Output() int64 {
	since := EstimateTokens(c.delivery.bytes())
	if c.reader.again {
		return max(c.ownOutput(), since)
	}
	return c.ownOutput() + since
}

// Delivered is all text that has come.
func (c *counter) Delivered() int64 { return c.delivery.before + c.delivery.bytes() }

// unstated is the text, in bytes, that a reading of all that has come leaves
// uncovered.
func (c *counter) unstated(r *reading) int64 {
	if r.covers(c.progress()) {
		return 0
	}
	return c.delivery.bytes()
}

func (r *Reader) plain(reply Reply) Meter {
	c := counter{reader: r, requested: reply.Requested, header: reply.Header, good: reply.Status < 300, delivery: delivery{any: r.anyText}}
	switch media(reply.ContentType) {
	case "text/event-stream":
		return newStream(c)
	case "application/vnd.amazon.eventstream":
		return newFrames(c)
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/stream+json":
		return newDocuments(c, lines)
	case "", "text/plain":
		return &framingDetector{Meter: &opaque{counter: c}, counter: c}
	case "application/json", "text/json":
		return newDocuments(c, single)
	}
	if strings.HasSuffix(media(reply.ContentType), "+json") {
		return newDocuments(c, single)
	}
	return &opaque{counter: c, text: !recording(media(reply.ContentType))}
}

// recording reports whether a body of the type is no text.
func recording(media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	return kind == "audio" || kind == "image" || kind == "video"
}

// media is the media type without its parameters, in lower case.
func media(contentType string) string {
	switch contentType {
	case "application/json", "text/event-stream":
		return contentType
	}
	if t, _, err := mime.ParseMediaType(contentType); err == nil {
		return t
	}
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// result judges a reading; whole says that the reply came to its end.
func (c *counter) result(from *reading, whole bool) (modelgate.Usage, Seen) {
	r := from
	if c.good && !whole && !r.read && c.reader.begun != nil {
		r = c.copyOf(r)
		c.reader.begun(r, &c.delivery)
	}
	if c.good && c.reader.finish != nil && (whole || r.read) {
		r = c.copyOf(r)
		c.reader.finish(r, c.requested)
	}
	if c.good && c.reader.head != nil {
		r = c.copyOf(r)
		c.reader.head(r, c.header, whole)
	}
	u := r.usage
	r.add(&u)
	fine := u.Clamp() && !r.flawed
	switch {
	case !r.read:
		return modelgate.Usage{}, Nothing
	case fine && (r.final || whole):
		return u, All
	}
	return u, Some
}

// Close releases nothing: only decoders hold something.
func (c *counter) Close() {}

// copyOf is a reading that may be changed. There is one.
func (c *counter) copyOf(r *reading) *reading {
	if c.outlook == nil {
		c.outlook = new(reading)
	}
	if r != c.outlook {
		*c.outlook = *r
	}
	return c.outlook
}

// opaque meters a body that states no usage, such as sound: only what the
// request decides is known. The zero value meters a call that cannot cost
// anything by its reply.
type opaque struct {
	counter
	text bool
	size int64
}

func (o *opaque) Feed(chunk []byte) bool {
	if o.text {
		o.size += int64(len(chunk))
	}
	return false
}

func (o *opaque) Result() (modelgate.Usage, Seen) { return o.result(&o.reading, true) }
func (o *opaque) Output() int64                   { return EstimateTokens(o.size) }
func (o *opaque) Unstated() int64                 { return o.size }

// framingDetector chooses the framing by the first byte that is not white space, for
// replies whose Content-Type does not tell.
type framingDetector struct {
	Meter   // an opaque one without text until it is chosen
	counter counter
	chosen  bool
}

func (s *framingDetector) Feed(chunk []byte) bool {
	if s.chosen {
		return s.Meter.Feed(chunk)
	}
	start := bytes.TrimLeft(chunk, " \t\r\n")
	if len(start) == 0 {
		return false
	}
	s.chosen = true
	switch start[0] {
	case '{', '[':
		s.Meter = newDocuments(s.counter, single)
	case 'd', 'e', 'i', 'r', ':':
		s.Meter = newStream(s.counter)
	default:
		s.Meter = &opaque{counter: s.counter, text: true}
	}
	return s.Meter.Feed(start)
}

// EstimateTokens is a guess at the tokens in so many bytes of text, for
// calls whose provider reports none: one for each four bytes begun.
func EstimateTokens(bytes int64) int64 {
	bytes = max(bytes, 0)
	return bytes/4 + min(bytes%4, 1)
}
