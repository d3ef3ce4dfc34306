package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// object is a JSON object.
type object = map[string]any

// answer is a reply before it is sent.
type answer struct {
	status int // 0 means 200
	header http.Header
	kind   string // Content-Type
	body   []byte
	frames [][]byte // of a stream, in place of body
	usage  int      // 1 + index of the frame that states usage; 1 for a body that does; 0: none does
	fault  []byte   // the frame that states an error in the stream
}

// jsonAnswer is the answer whose body is v.
func jsonAnswer(v any) answer {
	return answer{kind: "application/json", body: encode(v)}
}

// encode is the JSON of a value of this package; none of them can fail.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":{"message":` + strconv.Quote(err.Error()) + `}}`)
	}
	return b
}

// addUsage adds usage to a reply as the directives want it: stated, null or not
// at all. It reports whether the reply states it.
func (c *call) addUsage(reply object, name string, usage any) bool {
	switch {
	case c.d.noUsage:
		return false
	case c.d.usageNull:
		reply[name] = nil
		return false
	}
	reply[name] = usage
	return true
}

// reply is the answer of a JSON object that states usage.
func (c *call) reply(o object, name string, usage any) answer {
	stated := c.addUsage(o, name, usage)
	a := jsonAnswer(o)
	if stated {
		a.usage = 1
	}
	return a
}

const eventStream = "text/event-stream; charset=utf-8"

// stream is an answer that is a stream of events.
type stream struct {
	answer
	numbered bool // events carry their number
}

// stream begins an empty stream. In OpenAI's formats its fault is an event
// without a name.
func (c *call) stream() *stream {
	return &stream{answer: answer{kind: eventStream, fault: dataFrame(c.fault(http.StatusInternalServerError, toldToFail))}}
}

// data adds an event without a name.
func (s *stream) data(o object) { s.frames = append(s.frames, dataFrame(o)) }

// event adds an event whose name is also a member of its data.
func (s *stream) event(name string, o object) {
	o["type"] = name
	if s.numbered {
		o["sequence_number"] = len(s.frames)
	}
	s.frames = append(s.frames, eventFrame(name, o))
}

// stateUsage marks the next event as the one that states usage, if it does.
func (s *stream) stateUsage(stated bool) {
	if stated {
		s.usage = len(s.frames) + 1
	}
}

func dataFrame(v any) []byte {
	return fmt.Appendf(nil, "data: %s\n\n", encode(v))
}

func eventFrame(name string, v any) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, encode(v))
}
