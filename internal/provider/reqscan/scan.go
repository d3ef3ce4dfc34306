// Package reqscan reads the bodies of requests strictly, JSON and multipart/form-data,
// and plans edits of them: it finds the members and parts that are asked for, and
// refuses a body that two parsers could read differently. Bodies are never decoded; all
// else of them stays as it came.
package reqscan

import (
	"bytes"
	"hash/maphash"
	"iter"
	"math"
	"unicode/utf8"
)

// MaxMembers is how many top-level members a request body may have. Real
// requests have fewer than 60.
const MaxMembers = 1024

// Span is the half-open range [Start, End) of byte offsets in a body.
type Span struct {
	Start, End int
}

// Fields is what a scan found in a JSON request body: where the values of
// the wanted top-level members stand. It refers to the body, which must not
// change while Fields is in use. The zero value has no members.
type Fields struct {
	body  []byte
	names *Names
	// first is the offset after the opening brace, 0 in the zero value.
	first int
	empty bool
	// marked: a member's name may be that of a reference to a stored object,
	// at any depth; identified: one may be id.
	marked, identified bool

	count int
	found [16]field
	more  []field
}

// field is one wanted member or part: its index in the Names, its value, and
// all of it: name and value of a member; the headers and content of a part.
type field struct {
	name  int
	value Span
	whole Span
}

// Scan checks that body is one JSON object in UTF-8 and nothing else, and
// locates the top-level members called names. It accepts a body only if
// every reader must see the same members in it: a repeated top-level name,
// and a name that differs from a wanted one only by letter case, are errors.
// Escapes of single surrogates are accepted inside values (RFC 8259 leaves
// them open) and refused in top-level names; so is U+0000 in a name.
//
// Every error is a *SyntaxError. Scan allocates nothing for a body with at
// most 16 wanted and 32 members whose names hold no escapes.
func Scan(body []byte, names *Names) (Fields, error) {
	if names == nil {
		names = NewNames()
	}
	if len(body) > math.MaxInt32 {
		return Fields{}, Errorf("request body is longer than 2 GiB")
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return Fields{}, jsonErrorf("it begins with a byte order mark: leave that out")
	}
	l := Lexer{Text: body, watch: true}
	i := l.Space(0)
	if i == len(body) {
		return Fields{}, Errorf("request body is empty: send a JSON object")
	}
	if body[i] != '{' {
		return Fields{}, Errorf("request body must be a JSON object: found %q at byte %d", body[i:i+1], i)
	}
	fields := Fields{body: body, names: names, first: i + 1}
	end, err := fields.scanMembers(&l)
	if err != nil {
		return Fields{}, err
	}
	if end = l.Space(end); end != len(body) {
		return Fields{}, jsonErrorf("found %q after the object at byte %d", body[end:end+1], end)
	}
	if err := l.utf8Error(); err != nil {
		return Fields{}, err
	}
	fields.marked, fields.identified = l.marked, l.identified
	return fields, nil
}

// scanMembers reads the members of the outermost object and returns the
// offset after its closing brace.
func (f *Fields) scanMembers(l *Lexer) (int, error) {
	i := l.Space(f.first)
	if i < len(l.Text) && l.Text[i] == '}' {
		f.empty = true
		return i + 1, nil
	}
	var buffer [32]uint64
	seen := buffer[:0]
	for {
		m, err := l.Member(i, 1)
		if err != nil {
			return 0, err
		}
		name, err := m.decodedName(l.Text)
		if err != nil {
			return 0, err
		}
		hash := maphash.Bytes(f.names.seed, name)
		for _, earlier := range seen {
			if earlier == hash {
				return 0, jsonErrorf("duplicate member %s at byte %d", QuoteName(name), m.Name.Start)
			}
		}
		if len(seen) == MaxMembers {
			return 0, Errorf("request body has more than %d members", MaxMembers)
		}
		seen = append(seen, hash)
		if err := f.keep(name, m, false); err != nil {
			return 0, err
		}
		next, last, err := l.NextMember(m.Value.End)
		if err != nil {
			return 0, err
		}
		if last {
			return next, nil
		}
		i = next
	}
}

// keep stores the member if its name is wanted. Where once is asked for, a
// second one of the name is an error.
func (f *Fields) keep(name []byte, m Member, once bool) error {
	index, variant := f.names.find(name)
	if variant != nil {
		return jsonErrorf("member %s at byte %d: write it as %q", QuoteName(name), m.Name.Start, variant)
	}
	if index < 0 {
		return nil
	}
	if once {
		if _, twice := f.at(index); twice {
			return jsonErrorf("duplicate member %s at byte %d", QuoteName(name), m.Name.Start)
		}
	}
	kept := field{index, m.Value, Span{m.Name.Start - 1, m.Value.End}}
	if f.count < len(f.found) {
		f.found[f.count] = kept
		f.count++
		return nil
	}
	f.more = append(f.more, kept)
	return nil
}

// Get is the value of the top-level member called name. It reports false
// when the body has no such member or name was not among the scanned names.
func (f *Fields) Get(name string) (Value, bool) {
	kept, ok := f.get(name)
	if !ok {
		return Value{}, false
	}
	return Value{body: f.body, Span: kept.value}, true
}

// All yields the wanted members that the body has, in its order.
func (f *Fields) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, kept := range f.found[:f.count] {
			if !yield(f.names.text[kept.name], Value{body: f.body, Span: kept.value}) {
				return
			}
		}
		for _, kept := range f.more {
			if !yield(f.names.text[kept.name], Value{body: f.body, Span: kept.value}) {
				return
			}
		}
	}
}

func (f *Fields) get(name string) (field, bool) {
	index, _ := f.names.find([]byte(name))
	if index < 0 {
		return field{}, false
	}
	return f.at(index)
}

// at is the member whose name has the index.
func (f *Fields) at(index int) (field, bool) {
	for _, kept := range f.found[:f.count] {
		if kept.name == index {
			return kept, true
		}
	}
	for _, kept := range f.more {
		if kept.name == index {
			return kept, true
		}
	}
	return field{}, false
}

// Has reports whether the body has a top-level member called name and name
// was among the scanned names.
func (f *Fields) Has(name string) bool {
	_, ok := f.Get(name)
	return ok
}

// InJSON reports whether f comes from a body, which may have no members. The zero
// value does not.
func (f *Fields) InJSON() bool { return f.first > 0 }

// Scanned reports whether f comes from a body and name was looked for.
func (f *Fields) Scanned(name string) bool {
	index, _ := f.names.find([]byte(name))
	return index >= 0 && f.first > 0
}

// Insert is the edit that adds a first member to the body. The text is the
// whole member, as in `"stream":true`; its name must be absent so far.
func (f *Fields) Insert(text string) Edit {
	if !f.empty {
		text += ","
	}
	return Edit{Span: Span{f.first, f.first}, Text: []byte(text)}
}

// Replace is the edit that puts a member in the place of another. The text is the
// whole member; an edit of nothing where there is no member called name.
func (f *Fields) Replace(name, text string) Edit {
	kept, ok := f.get(name)
	if !ok {
		return Edit{}
	}
	return Edit{Span: kept.whole, Text: []byte(text)}
}

// Remove is the edit that takes the member called name out of the body, with
// the comma that parts it from its neighbour; an edit of nothing when there is
// no such member. One body can lose one member only: the commas of two
// removals could be the same.
func (f *Fields) Remove(name string) Edit {
	kept, ok := f.get(name)
	if !ok {
		return Edit{}
	}
	cut := kept.whole
	l := Lexer{Text: f.body}
	if next := l.Space(cut.End); f.body[next] == ',' {
		cut.End = l.Space(next + 1)
		return Edit{Span: cut}
	}
	before := len(bytes.TrimRight(f.body[:cut.Start], " \t\r\n"))
	if before > 0 && f.body[before-1] == ',' {
		cut.Start = before - 1
	}
	return Edit{Span: cut}
}

// Member is one member of an object: the contents of its name between the
// quotes, as written, and its value.
type Member struct {
	Name    Span
	escaped bool
	Value   Span
}

// Member reads the member that starts at i, in an object at the depth.
func (l *Lexer) Member(i, depth int) (Member, error) {
	if i >= len(l.Text) || l.Text[i] != '"' {
		return Member{}, l.unexpected(i, "a member name in double quotes")
	}
	l.escaped = false
	after, err := l.str(i + 1)
	if err != nil {
		return Member{}, err
	}
	m := Member{Name: Span{i + 1, after - 1}, escaped: l.escaped}
	if l.watch {
		l.note(i+1, after-1)
	}
	next, err := l.colon(after)
	if err != nil {
		return Member{}, err
	}
	m.Value.Start, m.Value.End, err = l.value(next, depth)
	return m, err
}

// NextMember goes on after a member's value that ends at i: to the next
// member, or past the closing brace.
func (l *Lexer) NextMember(i int) (next int, last bool, err error) {
	i = l.Space(i)
	if i < len(l.Text) && l.Text[i] == ',' {
		return l.Space(i + 1), false, nil
	}
	if i < len(l.Text) && l.Text[i] == '}' {
		return i + 1, true, nil
	}
	return 0, false, l.unexpected(i, ", or }")
}

// decodedName is the name with its escapes resolved. A name that common
// parsers cut short or repair in different ways is an error.
func (m Member) decodedName(text []byte) ([]byte, error) {
	raw := text[m.Name.Start:m.Name.End]
	if !m.escaped {
		return raw, nil
	}
	name, whole := unescape(make([]byte, 0, len(raw)), raw)
	if !whole || bytes.IndexByte(name, 0) >= 0 {
		return nil, jsonErrorf("member name at byte %d holds U+0000 or half a surrogate pair", m.Name.Start)
	}
	return name, nil
}

// QuoteName is a member name for an error message, cut to a readable length.
func QuoteName(name []byte) string {
	const most = 64
	if len(name) > most {
		name = append(bytes.ToValidUTF8(name[:most:most], nil), "…"...)
	}
	return `"` + string(bytes.ToValidUTF8(name, []byte(string(utf8.RuneError)))) + `"`
}
