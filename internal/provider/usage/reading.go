package usage

import (
	"bytes"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/provider/reqscan"
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

	// cost is what the reply states, and ownKey that this leaves out what the
	// operator's own key at another provider is charged.
	cost   StatedCost
	ownKey bool

	// written and written1h are cache writes in all and those for an hour,
	// where a stream states them apart from each other.
	written, written1h int64
	// output and thinking are what a model made in all and of it without being
	// shown, where a stream states them apart from each other.
	output, thinking int64
	// apart is what comes on top of usage: iterations of the call that its own
	// figures leave out; nil is none. A later statement replaces it, and never
	// changes it in place: copies of a reading share it.
	apart *apart
	// passed are tool items that came one by one, and ids the fingerprints of
	// what is counted once however often it is named. The slice is never
	// changed in place: copies of a reading share it.
	passed tools
	ids    []uint64
	// begun and done are bits of the candidates of a reply that has several.
	begun, done uint64
}

// count reads a whole number. The bool is false where there is none: null or
// missing is not zero. A figure that cannot be a count is forced into
// 0..MaxQuantity and flaws the reading.
func (r *reading) count(v gjson.Result) (n int64, ok bool) {
	f, err := v.Num, error(nil)
	switch v.Type {
	case gjson.Null:
		return 0, false
	case gjson.Number:
	case gjson.String:
		f, err = strconv.ParseFloat(v.Str, 64)
	default:
		err = strconv.ErrSyntax
	}
	switch {
	case err != nil:
		r.flawed = true
		return 0, false
	case f > modelgate.MaxQuantity:
		n = modelgate.MaxQuantity
	case f > 0:
		n = int64(f)
	}
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

// state is set for a figure by which a reply states its usage.
func (r *reading) state(to *int64, v gjson.Result) { r.read = r.set(to, v) || r.read }

// seconds stores a duration in seconds, fractions allowed, as millionths.
func (r *reading) seconds(v gjson.Result) {
	f := v.Num
	switch v.Type {
	case gjson.String:
		var err error
		if f, err = strconv.ParseFloat(strings.TrimSpace(v.Str), 64); err != nil {
			return
		}
	case gjson.Number:
	default:
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

// maxText bounds the strings that are read, in bytes between their quotes.
const maxText = 512

// text is the content of a string; "" for a longer one and any other value.
func text(v gjson.Result) string {
	if len(v.Raw) > maxText+len(`""`) {
		return ""
	}
	return v.Str
}

// stated reports whether a value is a reason: a string that says something.
func stated(v gjson.Result) bool { return text(v) != "" && v.Str != "null" }

// word keeps a short modifier such as a service tier. It is copied, so that
// it does not hold on to the reply.
func word(to *string, v gjson.Result) {
	if v.Str != "" && len(v.Str) <= 64 && v.Str != *to {
		*to = strings.Clone(v.Str)
	}
}

// members yields the members of an object in order, or the elements of an array
// without names, and nothing of any other value.
func members(v gjson.Result) iter.Seq2[string, gjson.Result] {
	return func(yield func(string, gjson.Result) bool) {
		if v.IsObject() || v.IsArray() {
			v.ForEach(func(name, v gjson.Result) bool { return yield(text(name), v) })
		}
	}
}

// object reports whether data has a member of the name that opens an object.
// It looks at bytes only: a quote inside a JSON string is escaped, so the
// quoted name never matches within text.
func object(data, quoted []byte) bool {
	// Quotes are what such data is full of: the first is looked at last.
	name := quoted[1:]
	for at, from := 0, 0; ; {
		i := bytes.Index(data[at:], name)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(name)
		if i == from || data[i-1] != '"' {
			continue
		}
		from = at
		l := reqscan.Lexer{Text: data}
		if i = l.Space(at); i == len(data) || data[i] != ':' {
			continue
		}
		if i = l.Space(i + 1); i < len(data) && data[i] == '{' {
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
