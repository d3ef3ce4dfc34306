package usage

import (
	"github.com/tidwall/gjson"

	"modelgate/internal/provider/reqscan"
)

// document is one JSON document of a reply: where the members at its top
// stand. What is no object has none. The zero value is ready; a document is
// filled again and again, and good until then and as long as the bytes are.
type document struct {
	text    []byte
	short   bool // texts and containers count as a skimmer would leave them
	deep    bool // so do lists of items
	members []placed
	few     [24]placed // first home of members: most need no other
}

// placed is where a member stands: its name in quotes, and its value. No reply
// that is read whole comes near 2 GiB.
type placed struct{ name, nameEnd, value, valueEnd int32 }

func place(name, nameEnd, value, valueEnd int) placed {
	return placed{int32(name), int32(nameEnd), int32(value), int32(valueEnd)}
}

// read takes a document as it is. It reports false for what is no valid JSON.
func (d *document) read(text []byte) bool {
	d.text, d.short = text, false
	if end, ok := d.object(text); ok {
		l := reqscan.Lexer{Text: text}
		if l.Space(end) == len(text) {
			return true
		}
	}
	// Deeper than the lexer goes, no object, or no JSON.
	d.members = d.few[:0]
	if !gjson.ValidBytes(text) {
		return false
	}
	l := reqscan.Lexer{Text: text}
	start := l.Space(0)
	all := datum{raw: text[start:]}
	if !all.isObject() {
		return true
	}
	for e := all.entries(); e.next(); {
		end := start + e.at
		d.members = append(d.members, place(start+e.quoted.Start, start+e.quoted.End, end-len(e.value.raw), end))
	}
	return true
}

// skim takes the document that text begins with, if it is one valid object, as
// a skimmer would have left it, and returns where it ends. It reports false
// where only a skimmer can tell what is to be read.
func (d *document) skim(text []byte) (end int, ok bool) {
	d.text, d.short = text, true
	return d.object(text)
}

// object checks the object that text begins with, white space before it
// skipped, and notes its members.
func (d *document) object(text []byte) (end int, ok bool) {
	d.members = d.few[:0]
	l := reqscan.Lexer{Text: text}
	i := l.Space(0)
	if i == len(text) || text[i] != '{' {
		return 0, false
	}
	i = l.Space(i + 1)
	if i < len(text) && text[i] == '}' {
		return i + 1, true
	}
	for last := false; !last; {
		m, err := l.Member(i, 1)
		if err != nil {
			return 0, false
		}
		d.members = append(d.members, place(m.Name.Start-1, m.Name.End+1, m.Value.Start, m.Value.End))
		if i, last, err = l.NextMember(m.Value.End); err != nil {
			return 0, false
		}
	}
	return i, true
}

// get is the value at a path of member names. Of members with one name the
// first that has the rest of the path counts.
func (d *document) get(path ...string) datum {
	for _, m := range d.members {
		quoted := d.text[m.name:m.nameEnd]
		if string(plainText(quoted, d.short)) != path[0] {
			continue
		}
		v := datum{raw: d.text[m.value:m.valueEnd:m.valueEnd], short: d.short}
		v.folded = d.short && (v.isObject() || v.isArray()) && !figures(quoted) && !(d.deep && itemized(quoted))
		if len(path) == 1 {
			return v
		}
		if found := v.get(path[1:]...); found.exists() {
			return found
		}
	}
	return datum{}
}
