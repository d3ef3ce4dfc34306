package usage

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"modelgate/internal/provider/reqscan"
)

// datum is one value of a reply's JSON, which is known to be valid. It refers
// to the reply's bytes. The zero value is no value at all.
type datum struct {
	raw []byte
	// short makes a text of more than maxText bytes count as empty, and folded
	// an array or object as the number of its elements: what a skimmer leaves
	// of them.
	short, folded bool
}

// datumOf takes over what was found in a valid document.
func datumOf(v gjson.Result) datum { return datum{raw: []byte(v.Raw)} }

func (d datum) exists() bool { return len(d.raw) > 0 }

// kind is the JSON type of the value.
func (d datum) kind() reqscan.ValueKind {
	if d.folded {
		return reqscan.JSONNumber
	}
	return reqscan.KindOf(d.raw)
}

func (d datum) isObject() bool { return d.exists() && d.raw[0] == '{' && !d.folded }

func (d datum) isArray() bool { return d.exists() && d.raw[0] == '[' && !d.folded }

// number is the value as it was written, or the number a folded one stands for.
func (d datum) number() []byte {
	if !d.folded {
		return d.raw
	}
	n := int64(0)
	for e := d.unfolded().entries(); e.next(); {
		n++
	}
	return strconv.AppendInt(nil, n, 10)
}

func (d datum) unfolded() datum { return datum{raw: d.raw, short: d.short} }

// text is the content of a string with its escapes resolved; nil for any
// other kind.
func (d datum) text() []byte {
	if !d.exists() || d.raw[0] != '"' {
		return nil
	}
	return plainText(d.raw, d.short)
}

// plainText is the content of a string that stands in quotes.
func plainText(quoted []byte, short bool) []byte {
	content := quoted[1 : len(quoted)-1]
	if short && len(content) > maxText {
		return nil
	}
	if bytes.IndexByte(content, '\\') >= 0 {
		return []byte(gjson.ParseBytes(quoted).Str)
	}
	return content
}

// says reports whether the value is a string of this content.
func (d datum) says(text string) bool { return string(d.text()) == text }

// stated reports whether the value is a reason: a string that says something.
func (d datum) stated() bool { return len(d.text()) > 0 && !d.says("null") }

// result is the value for what reads it rarely.
func (d datum) result() gjson.Result {
	if d.kind() == reqscan.JSONString {
		return gjson.Result{Type: gjson.String, Str: string(d.text())}
	}
	return gjson.ParseBytes(d.number())
}

// get is the value at a path of member names; "0" is also the first element of
// an array. Of members with one name the first that has the rest of the path
// counts.
func (d datum) get(path ...string) datum {
	for e := d.entries(); e.next(); {
		if e.object && string(e.name) == path[0] || !e.object && e.index == 1 && path[0] == "0" {
			if len(path) == 1 {
				return e.value
			}
			if found := e.value.get(path[1:]...); found.exists() {
				return found
			}
		}
	}
	return datum{}
}

// entries yields the members of an object or the elements of an array in
// order, and nothing of any other value.
func (d datum) entries() entries {
	if !d.isObject() && !d.isArray() {
		return entries{}
	}
	return entries{lexer: reqscan.Lexer{Text: d.raw}, at: 1, object: d.raw[0] == '{', short: d.short}
}

// entries is a walk through a container. The zero value has come to its end.
type entries struct {
	lexer  reqscan.Lexer
	at     int // 0 at the end
	object bool
	short  bool
	index  int          // how many have been yielded
	quoted reqscan.Span // the member's name as it was written
	name   []byte       // the same, decoded
	value  datum
}

// next goes to the next entry, if there is one.
func (e *entries) next() bool {
	text := e.lexer.Text
	if e.at == 0 {
		return false
	}
	i := e.lexer.Space(e.at)
	if text[i] == ',' {
		i = e.lexer.Space(i + 1)
	}
	if c := text[i]; c == '}' || c == ']' {
		e.at = 0
		return false
	}
	if e.object {
		end := skipText(text, i)
		e.quoted = reqscan.Span{Start: i, End: end}
		e.name = plainText(text[i:end], e.short)
		i = e.lexer.Space(e.lexer.Space(end) + 1)
	}
	e.at = skipValue(text, i)
	e.value = datum{raw: text[i:e.at:e.at], short: e.short}
	e.index++
	return true
}

// skipText is the end of the string that starts at i of valid JSON.
func skipText(text []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(text[i:], '"')
		slashes := 0
		for text[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue is the end of the value that starts at i of valid JSON. Nothing but
// the value itself has to follow.
func skipValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			if i = skipText(text, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
