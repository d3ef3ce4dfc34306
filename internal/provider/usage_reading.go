package provider

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
)

// reading is what a reader has gathered from a reply so far. It is a plain
// value: a copy can be read further without touching the original.
type reading struct {
	usage   modelgate.Usage
	read    bool // some figure was there, zero included
	final   bool // the figures are the provider's last word
	ended   bool // the event that ends the stream was seen
	refused bool // a reply of good status says that there is no result
	broken  bool // the stream ended with an error event
	flawed  bool // a figure was missing its meaning: negative, fractional, absurd, contradictory

	// written and written1h are cache writes in all and those for an hour,
	// where a stream states them apart from each other.
	written, written1h int64
	// begun and done are bits of the candidates of a reply that has several.
	begun, done uint64
}

// count reads a whole number. The bool is false where there is none: null or
// missing is not zero. A figure that cannot be a count is forced into
// 0..MaxQuantity and flaws the reading.
func (r *reading) count(v gjson.Result) (int64, bool) {
	text := v.Raw
	switch v.Type {
	case gjson.Null:
		return 0, false
	case gjson.String:
		text = v.Str
	case gjson.Number:
	default:
		r.flawed = true
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= modelgate.MaxQuantity {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && v.Type == gjson.String {
		r.flawed = true
		return 0, false
	}
	switch {
	case math.IsNaN(f) || f < 0:
		r.flawed = true
		return 0, true
	case f > modelgate.MaxQuantity:
		r.flawed = true
		return modelgate.MaxQuantity, true
	}
	n := int64(f)
	r.flawed = r.flawed || float64(n) != f
	return n, true
}

// set stores a count where there is one.
func (r *reading) set(to *int64, v gjson.Result) bool {
	n, ok := r.count(v)
	if ok {
		*to = n
	}
	return ok
}

// seconds stores a duration in seconds, fractions allowed, as millionths.
func (r *reading) seconds(v gjson.Result) {
	f := v.Num
	if v.Type == gjson.String {
		var err error
		if f, err = strconv.ParseFloat(strings.TrimSpace(v.Str), 64); err != nil {
			return
		}
	} else if v.Type != gjson.Number {
		return
	}
	r.read = true
	f = math.Round(f * 1e6)
	if !(f >= 0 && f <= modelgate.MaxQuantity) {
		r.flawed = true
		f = max(0, min(f, modelgate.MaxQuantity))
	}
	r.usage.Seconds = int64(f)
}

// word keeps a short modifier such as a service tier. It is copied, so that
// it does not hold on to the reply.
func word(to *string, v gjson.Result) {
	if v.Type == gjson.String && v.Str != "" && len(v.Str) <= 64 {
		*to = strings.Clone(v.Str)
	}
}

// object reports whether data has a member of the name that opens an object.
// It looks at bytes only: a quote inside a JSON string is escaped, so the
// quoted name never matches within text.
func object(data, quoted []byte) bool {
	for {
		i := bytes.Index(data, quoted)
		if i < 0 {
			return false
		}
		data = data[i+len(quoted):]
		rest := bytes.TrimLeft(data, " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) > 0 && rest[0] == '{' {
			return true
		}
	}
}

// quoted spells member names as they stand in JSON.
func quoted(names ...string) [][]byte {
	list := make([][]byte, len(names))
	for i, name := range names {
		list[i] = strconv.AppendQuote(nil, name)
	}
	return list
}
