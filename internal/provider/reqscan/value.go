package reqscan

import (
	"bytes"
	"iter"
	"math"
	"strconv"
)

// ValueKind is the JSON type of a value.
type ValueKind string

// The JSON types. JSONAbsent is the kind of the zero Value.
const (
	JSONAbsent ValueKind = ""
	JSONNull   ValueKind = "null"
	JSONBool   ValueKind = "boolean"
	JSONNumber ValueKind = "number"
	JSONString ValueKind = "string"
	JSONArray  ValueKind = "array"
	JSONObject ValueKind = "object"
)

// Value is a JSON value inside a body that Scan accepted. Span says where
// it stands in that body. The zero value is no value at all.
type Value struct {
	body []byte
	Span
}

// Raw is the value as it was written, without white space around it.
func (v Value) Raw() []byte { return v.body[v.Start:v.End:v.End] }

// Kind is the JSON type of the value.
func (v Value) Kind() ValueKind {
	if v.Start >= v.End {
		return JSONAbsent
	}
	switch v.body[v.Start] {
	case '"':
		return JSONString
	case '{':
		return JSONObject
	case '[':
		return JSONArray
	case 't', 'f':
		return JSONBool
	case 'n':
		return JSONNull
	default:
		return JSONNumber
	}
}

// Text is the string with its escapes resolved. It reports false for any
// other kind, and for a string with half a surrogate pair, which readers
// repair in different ways.
func (v Value) Text() (string, bool) {
	if v.Kind() != JSONString {
		return "", false
	}
	raw := v.inner()
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	decoded, whole := unescape(make([]byte, 0, len(raw)), raw)
	return string(decoded), whole
}

// inner is what stands between the quotes of a string or the brackets of a
// container.
func (v Value) inner() []byte { return v.body[v.Start+1 : v.End-1] }

// IsTrue reports whether the value is the literal true.
func (v Value) IsTrue() bool { return string(v.Raw()) == "true" }

// IsFalse reports whether the value is the literal false.
func (v Value) IsFalse() bool { return string(v.Raw()) == "false" }

// Int is the whole number that a JSON number, or a string holding one,
// stands for; videos send their seconds as a string. 4, 4.0 and "4" are 4.
// It reports false for anything else, beyond ±2^53, and for more than 64
// characters.
func (v Value) Int() (int64, bool) {
	digits := v.Raw()
	if v.Kind() == JSONString {
		digits = v.inner()
	}
	if kind := v.Kind(); kind != JSONString && kind != JSONNumber {
		return 0, false
	}
	if len(digits) == 0 || len(digits) > 64 {
		return 0, false
	}
	l := Lexer{Text: digits}
	if end, err := l.number(0); err != nil || end != len(digits) {
		return 0, false
	}
	const most = 1 << 53
	if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
		return n, -most <= n && n <= most
	}
	x, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > most {
		return 0, false
	}
	return int64(x), true
}

// Member is the value of the object's direct member called name, the zero
// Value when there is none or v is no object. A repeated name, or one that
// differs from name only by letter case, is a *SyntaxError.
func (v Value) Member(name string) (found Value, err error) {
	err = v.eachMember(func(m Member, text []byte) error {
		raw := m.name(text)
		switch {
		case string(raw) != name && bytes.EqualFold(raw, []byte(name)):
			return jsonErrorf("member %s at byte %d: write it as %q", QuoteName(raw), m.Name.Start, name)
		case string(raw) != name:
		case found.Kind() != JSONAbsent:
			return jsonErrorf("duplicate member %q at byte %d", name, m.Name.Start)
		default:
			found = Value{body: v.body, Span: m.Value}
		}
		return nil
	})
	if err != nil {
		return Value{}, err
	}
	return found, nil
}

// eachMember calls f for the members of an object in order, until an error, and
// for none of a value of another kind. text is what their offsets refer to.
func (v Value) eachMember(f func(m Member, text []byte) error) error {
	if v.Kind() != JSONObject {
		return nil
	}
	l := Lexer{Text: v.body[:v.End]}
	i := l.Space(v.Start + 1)
	for last := l.Text[i] == '}'; !last; {
		m, err := l.Member(i, 1)
		if err != nil {
			return err
		}
		if err := f(m, l.Text); err != nil {
			return err
		}
		if i, last, err = l.NextMember(m.Value.End); err != nil {
			return err
		}
	}
	return nil
}

// Pick finds the direct members of an object that are called names, in one
// pass, and nothing in a value of another kind. A repeated wanted name, or one
// that differs from a wanted one only by letter case, is a *SyntaxError.
func (v Value) Pick(names *Names) (Fields, error) {
	f := Fields{body: v.body, names: names}
	if err := v.eachMember(func(m Member, text []byte) error { return f.keep(m.name(text), m, true) }); err != nil {
		return Fields{}, err
	}
	return f, nil
}

// name is the member's name with its escapes resolved.
func (m Member) name(text []byte) []byte {
	raw := text[m.Name.Start:m.Name.End]
	if m.escaped {
		raw, _ = unescape(make([]byte, 0, len(raw)), raw)
	}
	return raw
}

// Elements yields the elements of an array in order, nothing for any other
// kind.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != JSONArray {
			return
		}
		l := Lexer{Text: v.body[:v.End]}
		i := l.Space(v.Start + 1)
		for l.Text[i] != ']' {
			start, end, err := l.value(i, 1)
			if err != nil || !yield(Value{body: v.body, Span: Span{start, end}}) {
				return
			}
			if i = l.Space(end); l.Text[i] == ',' {
				i = l.Space(i + 1)
			}
		}
	}
}
