package reqscan

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Edit replaces the bytes of Span by Text; an empty Span inserts.
type Edit struct {
	Span
	Text []byte
}

// Splice appends body to dst with the edits made and every other byte kept,
// and returns the extended slice. The edits may come in any order and must
// not overlap; of two insertions at one place the earlier argument stands
// first, and both before what is replaced there. dst must not share memory with body.
func Splice(dst, body []byte, edits ...Edit) []byte {
	size := len(body)
	for _, e := range edits {
		size += len(e.Text)
	}
	dst = slices.Grow(dst, size)
	inOrder := func(a, b Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) }
	if !slices.IsSortedFunc(edits, inOrder) {
		edits = slices.Clone(edits)
		slices.SortStableFunc(edits, inOrder)
	}
	at := 0
	for _, e := range edits {
		dst = append(dst, body[at:e.Start]...)
		dst = append(dst, e.Text...)
		at = e.End
	}
	return append(dst, body[at:]...)
}

// SpliceOwned is Splice for a body that nobody else needs as it was: an only
// edit is made in the body's own memory, where there is room, by moving the
// shorter of its sides. So a large body is neither copied nor held twice. The
// result begins or ends elsewhere in the same array; body and what was scanned
// of it are not to be used again.
func SpliceOwned(body []byte, edits ...Edit) []byte {
	if len(edits) != 1 {
		return Splice(nil, body, edits...)
	}
	e, size := edits[0], len(body)
	less := e.End - e.Start - len(e.Text)
	switch {
	case size-less > cap(body):
		return Splice(nil, body, edits...)
	case less >= 0 && e.Start <= size-e.End:
		copy(body[less:], body[:e.Start])
		copy(body[less+e.Start:], e.Text)
		return body[less:]
	}
	whole := body[:max(size, size-less)]
	copy(whole[e.End-less:], whole[e.End:size])
	copy(whole[e.Start:], e.Text)
	return whole[:size-less]
}

// AppendWithoutNull appends text to dst. Where text is an object whose member
// called name, spelt without escapes, is null, that is left out with the comma
// that parts it from its neighbour. Every other byte is kept.
func AppendWithoutNull(dst, text []byte, name string) []byte {
	l := Lexer{Text: text}
	at := l.Space(0)
	if at == len(text) || text[at] != '{' {
		return append(dst, text...)
	}
	at = l.Space(at + 1)
	for before := at; ; {
		m, err := l.Member(at, 1)
		if err != nil {
			return append(dst, text...)
		}
		next, last, err := l.NextMember(m.Value.End)
		if err == nil && string(text[m.Name.Start:m.Name.End]) == name && string(text[m.Value.Start:m.Value.End]) == "null" {
			cut := Span{at, next}
			if last {
				cut = Span{before, m.Value.End}
			}
			return Splice(dst, text, Edit{Span: cut})
		}
		if err != nil || last {
			return append(dst, text...)
		}
		before, at = m.Value.End, next
	}
}

// ModelValue is native as a JSON string, quotes included. Bytes that are not
// UTF-8 become U+FFFD.
func ModelValue(native string) []byte {
	out := make([]byte, 0, len(native)+2)
	out = append(out, '"')
	for i := range len(native) {
		if c := native[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			// Marshal cannot fail on a string.
			encoded, _ := json.Marshal(native)
			return encoded
		}
	}
	out = append(out, native...)
	return append(out, '"')
}

// IncludeUsage plans the edit that makes a streamed chat completion report
// its usage (stream_options.include_usage). It reports true when the caller
// did not ask for that: then edit must be made and the extra chunk taken out
// of the caller's stream. It reports false when the call does not stream,
// and when the caller asked. The body must have been scanned for stream and
// stream_options. A stream or stream_options of another type is a
// *SyntaxError, because some servers take 1 and "yes" for true; so is a
// repeated include_usage.
func IncludeUsage(f *Fields) (edit Edit, added bool, err error) {
	stream, _ := f.Get("stream")
	if kind := stream.Kind(); kind != JSONAbsent && kind != JSONNull && kind != JSONBool {
		return Edit{}, false, Errorf(`"stream" must be true or false`)
	}
	if !stream.IsTrue() || !f.Scanned("stream_options") {
		return Edit{}, false, nil
	}
	options, _ := f.Get("stream_options")
	switch options.Kind() {
	case JSONAbsent:
		return f.Insert(`"stream_options":{"include_usage":true}`), true, nil
	case JSONNull:
		return Edit{options.Span, []byte(`{"include_usage":true}`)}, true, nil
	case JSONObject:
		return includeUsageIn(options)
	default:
		return Edit{}, false, Errorf(`"stream_options" must be an object`)
	}
}

// includeUsageIn plans the edit inside the stream_options object.
func includeUsageIn(options Value) (edit Edit, added bool, err error) {
	asked, err := options.Member("include_usage")
	if err != nil {
		return Edit{}, false, err
	}
	first := Span{options.Start + 1, options.Start + 1}
	switch {
	case asked.IsTrue():
		return Edit{}, false, nil
	case asked.Kind() != JSONAbsent: // some servers take 0 and "no" for false
		return Edit{asked.Span, []byte("true")}, true, nil
	case isBlank(options.inner()):
		return Edit{first, []byte(`"include_usage":true`)}, true, nil
	default:
		return Edit{first, []byte(`"include_usage":true,`)}, true, nil
	}
}

// isBlank reports whether b holds nothing but JSON white space.
func isBlank(b []byte) bool {
	l := Lexer{Text: b}
	return l.Space(0) == len(b)
}
