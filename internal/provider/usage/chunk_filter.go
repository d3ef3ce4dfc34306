package usage

import (
	"bytes"

	"github.com/tidwall/gjson"

	"modelgate/internal/provider/reqscan"
)

// maxUsageFrame bounds the event that is taken for the usage chunk; real ones
// are below a kilobyte.
const maxUsageFrame = 64 << 10

// ChunkFilter takes the usage out of a chat stream whose caller did not ask for
// it: the one chunk that has no choices and a usage object, and "usage":null of
// the chunks before it. Every other byte passes unchanged and in order. It holds
// back only the beginning of an event whose end has not come; one that outgrows
// any usage chunk is let go too. The zero value is ready. It serves one stream.
type ChunkFilter struct {
	held    []byte // the beginning of an event
	out     []byte
	passing bool // inside an event too large to be the usage chunk
	lines   lineScanner
	inLine  bool // the line under way is not empty
	done    bool // the chunk was taken out
}

// Filter returns what of the stream so far may go to the client. The result
// is good until the next call and as long as chunk is.
func (f *ChunkFilter) Filter(chunk []byte) []byte {
	if f.done {
		return f.lines.skipLF(chunk) // that of the chunk that was taken out
	}
	f.out = f.out[:0]
	for len(chunk) > 0 && !f.done {
		n, complete := f.scan(chunk)
		part := chunk[:n]
		chunk = chunk[n:]
		switch {
		case f.passing:
			f.out = append(f.out, part...)
			f.passing = !complete
		case complete:
			event := part
			if len(f.held) > 0 {
				f.held = append(f.held, part...)
				event = f.held
			}
			f.emit(event)
			f.held = f.held[:0]
		case len(f.held)+n > maxUsageFrame:
			f.out = append(append(f.out, f.held...), part...)
			f.held, f.passing = f.held[:0], true
		default:
			f.held = append(f.held, part...)
		}
	}
	f.out = append(f.out, chunk...)
	return f.out
}

// Rest returns what was held back when the stream came to its end.
func (f *ChunkFilter) Rest() []byte {
	rest := f.held
	f.held = nil
	return rest
}

// scan finds the end of the event under way: how many bytes of b belong to
// it, and whether it is complete. An LF that the cut separated from its CR is
// an event of its own, so that it does not wait.
func (f *ChunkFilter) scan(b []byte) (n int, complete bool) {
	rest := f.lines.skipLF(b)
	if len(rest) < len(b) && !f.passing && len(f.held) == 0 {
		return 1, true
	}
	for len(rest) > 0 {
		text, next, ended := f.lines.next(rest)
		blank := ended && len(text) == 0 && !f.inLine
		f.inLine, rest = !ended, next
		if blank {
			return len(b) - len(rest), true
		}
	}
	return len(b), false
}

// emit passes an event on, or, where it is the usage chunk, what of it is not
// data: comments that happen to stand with it.
func (f *ChunkFilter) emit(event []byte) {
	// An LF that completes the last CR may come in a piece of its own: it is not
	// counted, so that the result does not depend on the pieces.
	if len(bytes.TrimSuffix(event, []byte("\n"))) > maxUsageFrame || !bytes.Contains(event, []byte(`"usage"`)) {
		f.out = append(f.out, event...)
		return
	}
	f.done = object(event, []byte(`"usage"`)) && usageChunk(event)
	start := len(f.out)
	var lines lineScanner
	for len(event) > 0 {
		text, rest, _ := lines.next(event)
		line := event[:len(event)-len(rest)]
		name, _, colon := bytes.Cut(text, []byte(":"))
		switch data := string(name) == "data"; {
		case data && f.done:
		case data && colon:
			f.out = reqscan.AppendWithoutNull(append(f.out, dataField...), line[len(dataField):], "usage")
		default:
			f.out = append(f.out, line...)
		}
		event = rest
	}
	switch {
	case !f.done:
	case len(bytes.Trim(f.out[start:], "\r\n")) == 0:
		f.out = f.out[:start]
	default:
		f.lines.afterCR = false // an LF that is still to come belongs to what stays
	}
}

func usageChunk(event []byte) bool {
	found := false
	e := events{begun: true} // lines are taken out as they are, also after a byte order mark
	e.push(event, func(_, data []byte) {
		choices := gjson.GetBytes(data, "choices")
		found = gjson.ValidBytes(data) && gjson.GetBytes(data, "usage").IsObject() &&
			choices.IsArray() && len(choices.Array()) == 0
	})
	return found
}
