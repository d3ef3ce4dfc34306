package usage

import (
	"bytes"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"modelgate/internal/provider/reqscan"
)

// document is one JSON document of a reply: where the members at its top
// stand. What is no object has none. The zero value is ready; a document is
// filled again and again, and good until then and as long as the bytes are.
type document struct {
	text    []byte
	short   bool     // texts and containers count as a skimmer would leave them
	whole   [][]byte // as in skimmer
	members []placed
	few     [16]placed // first home of members: most need no other
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
	d.members = d.few[:0]
	return gjson.ValidBytes(text) // no object, or one that is nested too deep to be read
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

// get is the value at a path of member names joined by dots. Of members with one
// name the first that has the rest of the path counts. The value refers to the
// document's bytes.
func (d *document) get(path string) gjson.Result {
	name, rest, nested := strings.Cut(path, ".")
	for _, m := range d.members {
		quoted := d.text[m.name:m.nameEnd]
		if !isCalled(quoted, name) {
			continue
		}
		raw := d.text[m.value:m.valueEnd]
		v := gjson.Parse(unsafe.String(&raw[0], len(raw))) // not copied: replies can be large
		folded := d.short && (v.IsObject() || v.IsArray()) && !keeps(d.whole, quoted)
		switch {
		case folded && !nested:
			return gjson.Result{Type: gjson.Number, Raw: v.Raw} // see length
		case !nested:
			return v
		case folded:
		default:
			if found := v.Get(rest); found.Exists() {
				return found
			}
		}
	}
	return gjson.Result{}
}

// isCalled reports whether a member's name, in its quotes, says the name.
func isCalled(quoted []byte, name string) bool {
	if content := quoted[1 : len(quoted)-1]; bytes.IndexByte(content, '\\') < 0 {
		return string(content) == name
	}
	return gjson.ParseBytes(quoted).Str == name
}

// length is the number that a value stands for: for a container of which a skimmer
// leaves the length only, that length.
func length(v gjson.Result) gjson.Result {
	if v.Type != gjson.Number || v.Raw[0] != '{' && v.Raw[0] != '[' {
		return v
	}
	n := 0
	for range members(gjson.Parse(v.Raw)) {
		n++
	}
	return gjson.Result{Type: gjson.Number, Raw: strconv.Itoa(n), Num: float64(n)}
}
