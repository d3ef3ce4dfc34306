package target

import (
	"fmt"
	"strings"
)

// Pattern is one line of a path allow list: a method and a path, as in
//
//	POST /v1/chat/completions
//	GET  /v1/models/{id}
//	POST /v1beta/models/{model}:generateContent
//	GET  /v1/files/**
//
// {name} stands for one segment, or for what precedes a literal ending of
// one, and is never empty. ** may come last and stands for the rest of the
// path, empty or not; it is captured under the name **. The method * stands
// for every method. Everything else is compared literally, letter case and
// percent escapes included. Immutable; the zero value matches nothing.
type Pattern struct {
	method   string
	segments []patternSegment
	open     bool
}

// patternSegment is a literal when name is empty, else a capture that ends
// with the literal.
type patternSegment struct {
	name, literal string
}

// Capture is a piece of a path that a pattern names, its percent escapes
// resolved.
type Capture struct {
	Name, Value string
}

// Captures are the captures of one match, in path order.
type Captures []Capture

// Get is the value captured under name, "" when there is none.
func (c Captures) Get(name string) string {
	for _, capture := range c {
		if capture.Name == name {
			return capture.Value
		}
	}
	return ""
}

// ParsePattern compiles a pattern. The error names the pattern and is
// meant for the operator.
func ParsePattern(pattern string) (Pattern, error) {
	method, path, ok := strings.Cut(pattern, " ")
	path = strings.TrimLeft(path, " ")
	rest, rooted := strings.CutPrefix(path, "/")
	if !ok || !rooted || !isMethod(method) {
		return Pattern{}, fmt.Errorf("path pattern %q: want a method, a space and a path that begins with /", pattern)
	}
	p := Pattern{method: method}
	names := map[string]bool{}
	for text := range strings.SplitSeq(rest, "/") {
		if p.open {
			return Pattern{}, fmt.Errorf("path pattern %q: ** must come last", pattern)
		}
		if text == "**" {
			p.open = true
			continue
		}
		segment, ok := parseSegment(text)
		if !ok || names[segment.name] {
			return Pattern{}, fmt.Errorf("path pattern %q: segment %q is malformed or repeats a name", pattern, text)
		}
		names[segment.name] = segment.name != ""
		p.segments = append(p.segments, segment)
	}
	if judged := strings.NewReplacer("{", "", "}", "").Replace(path); Judge(judged) != nil || strings.Contains(judged, "?") {
		return Pattern{}, fmt.Errorf("path pattern %q: no request could have this path", pattern)
	}
	return p, nil
}

// isMethod reports whether s is * or an upper-case word.
func isMethod(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return s == "*"
		}
	}
	return s != ""
}

// parseSegment reads a literal or {name}literal.
func parseSegment(text string) (patternSegment, bool) {
	inner, braced := strings.CutPrefix(text, "{")
	if !braced {
		return patternSegment{literal: text}, !strings.ContainsAny(text, "{}*")
	}
	name, literal, closed := strings.Cut(inner, "}")
	return patternSegment{name, literal}, closed && name != "" && !strings.ContainsAny(name+literal, "{}*")
}

// Match reports whether a call falls under the pattern, and what it
// captures. escapedPath is the path as sent, accepted by Judge, without
// the query. The time is linear in its length.
func (p Pattern) Match(method, escapedPath string) (Captures, bool) {
	if p.method != method && p.method != "*" || p.method == "" {
		return nil, false
	}
	rest, ok := strings.CutPrefix(escapedPath, "/")
	var captures Captures
	for i, segment := range p.segments {
		if !ok {
			return nil, false
		}
		var text string
		text, rest, ok = strings.Cut(rest, "/")
		if i == len(p.segments)-1 && ok != p.open {
			return nil, false
		}
		if segment.name == "" {
			if text != segment.literal {
				return nil, false
			}
			continue
		}
		value, ends := strings.CutSuffix(text, segment.literal)
		if !ends || value == "" {
			return nil, false
		}
		captures = append(captures, Capture{segment.name, Unescape(value)})
	}
	if p.open {
		captures = append(captures, Capture{"**", Unescape(rest)})
	}
	return captures, ok || !p.open
}
