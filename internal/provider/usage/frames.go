package usage

import (
	"bytes"
	"encoding/base64"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/provider/usage/eventstream"
)

// frames meters a stream of application/vnd.amazon.eventstream. The payload of a
// message is JSON, or has the JSON of the model's own event in base64.
type frames struct {
	counter
	split eventstream.Splitter
	doc   document
	data  []byte                  // of the message under way, decoded
	on    func(eventstream.Frame) // f.frame, bound once
}

func newFrames(c counter) *frames {
	f := &frames{counter: c}
	f.on = f.frame
	f.delivery.repeats, f.delivery.fresh = c.reader.repeats, true
	return f
}

func (f *frames) Feed(chunk []byte) bool {
	ended := f.ended
	f.split.Push(chunk, f.on)
	return f.ended && !ended
}

func (f *frames) frame(m eventstream.Frame) {
	if string(m.Kind) != "event" { // an exception or error
		f.ended, f.broken = true, true
		return
	}
	name, data := m.Name, m.Payload
	if string(name) == "chunk" {
		if data = f.chunk(data); data == nil {
			f.flawed = true
			return
		}
		name = nil
	}
	f.delivery.value(data)
	f.delivery.restart()
	before := f.progress()
	f.reading.event(f.reader, &f.doc, name, data)
	if f.covers(before) {
		f.delivery.covered()
	}
}

// chunk is what a payload has in base64; nil for nothing.
func (f *frames) chunk(payload []byte) []byte {
	var err error
	f.data, err = base64.StdEncoding.AppendDecode(f.data[:0], coded(payload))
	if err != nil || len(f.data) == 0 {
		return nil
	}
	return f.data
}

// coded is the text of the member bytes, which comes first and has no escapes in
// what AWS sends.
func coded(payload []byte) []byte {
	if rest, ok := bytes.CutPrefix(payload, []byte(`{"bytes":"`)); ok {
		if text, _, ok := bytes.Cut(rest, []byte{'"'}); ok && bytes.IndexByte(text, '\\') < 0 {
			return text
		}
	}
	return []byte(gjson.GetBytes(payload, "bytes").Str)
}

// Result has of a stream that was cut, or ended with an exception, what it had
// stated before, as Some.
func (f *frames) Result() (modelgate.Usage, Seen) {
	f.flawed = f.flawed || f.split.Flawed()
	usage, seen := f.result(&f.reading, f.ended && !f.broken)
	if f.broken {
		seen = min(seen, Some)
	}
	return usage, seen
}

func (f *frames) Unstated() int64 { return f.unstated(&f.reading) }
