package reqscan

import (
	"bytes"
	"strings"
)

// Deep finds the first member, at any depth, that is one of names and whose value
// is not null, and returns its name; "" for none. Names are compared without letter
// case and underscores, and their escapes are resolved; give them in lower case and
// without underscores. An entry NAME=PREFIX counts only where the value is a text
// that begins so. The time is linear in the body.
func (f *Fields) Deep(names []string) string {
	if f.first == 0 || len(names) == 0 {
		return ""
	}
	l := Lexer{Text: f.body}
	for i := 0; i < len(l.Text); {
		at := bytes.IndexByte(l.Text[i:], '"')
		if at < 0 {
			return ""
		}
		start := i + at
		end, err := l.str(start + 1)
		if err != nil { // Scan accepted it
			return ""
		}
		if i = l.Space(end); i == len(l.Text) || l.Text[i] != ':' {
			continue // it is no name
		}
		i = l.Space(i + 1)
		name := Value{body: f.body, Span: Span{start, end}}
		if entry := name.among(names); entry != "" && l.fits(i, entry) {
			text, _ := name.Text()
			return text
		}
	}
	return ""
}

// among is the entry of names that the name v is, "" for none.
func (v Value) among(names []string) string {
	raw := v.inner()
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw, _ = unescape(make([]byte, 0, len(raw)), raw)
	}
	var folded [24]byte
	n := 0
	for _, c := range raw {
		switch {
		case c == '_':
			continue
		case n == len(folded):
			return ""
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		}
		folded[n] = c
		n++
	}
	for _, entry := range names {
		if name, _, _ := strings.Cut(entry, "="); name == string(folded[:n]) {
			return entry
		}
	}
	return ""
}

// fits reports whether the value at i is one that the entry counts.
func (l *Lexer) fits(i int, entry string) bool {
	_, prefix, limited := strings.Cut(entry, "=")
	switch {
	case i == len(l.Text) || l.Text[i] == 'n':
		return false
	case !limited:
		return true
	case l.Text[i] != '"':
		return false
	}
	end, err := l.str(i + 1)
	if err != nil {
		return false
	}
	text, whole := Value{body: l.Text, Span: Span{i, end}}.Text()
	return !whole || strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), prefix)
}
