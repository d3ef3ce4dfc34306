package modelgate

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// Match says which calls a budget counts. It is not changed once it is shared.
type Match struct {
	// model is a glob over the slug, or over provider/model where there is
	// none; "" for a match of an attribution pair.
	model string
	// key and value are the pair; value "" stands for calls without the key.
	key, value string
	// each: any value counts, in a counter of its own, but for those in taken.
	each  bool
	taken map[string]struct{}
}

// maxMatch is the longest text of a match, in bytes.
const maxMatch = 400

// maxTagValue is the longest value of an attribution pair, in bytes.
const maxTagValue = 256

// errMatch answers a text that is no match.
var errMatch = &Error{Kind: BadRequest, Message: "match must be model:GLOB or tag:KEY=VALUE"}

// ParseMatch reads model:GLOB or tag:KEY=VALUE, of at most 400 bytes. VALUE is
// percent-encoded as in the attribution header; * is each value, %2A a literal
// star, and nothing calls without the key. Errors are bad_request.
func ParseMatch(text string) (*Match, error) {
	if len(text) > maxMatch || !utf8.ValidString(text) {
		return nil, errMatch
	}
	if glob, ok := strings.CutPrefix(text, "model:"); ok {
		if glob == "" || strings.ContainsFunc(glob, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, errMatch
		}
		return &Match{model: glob}, nil
	}
	pair, ok := strings.CutPrefix(text, "tag:")
	if !ok {
		return nil, errMatch
	}
	key, encoded, ok := strings.Cut(pair, "=")
	if !ok || !IsAttributionKey(key) {
		return nil, errMatch
	}
	if encoded == "*" {
		return &Match{key: key, each: true}, nil
	}
	value, err := url.PathUnescape(encoded)
	if err != nil || len(value) > maxTagValue || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		return nil, errMatch
	}
	return &Match{key: key, value: value}, nil
}

// String is the text that ParseMatch reads, always the same for the same match;
// "" for nil, which counts every call.
func (m *Match) String() string {
	switch {
	case m == nil:
		return ""
	case m.model != "":
		return "model:" + m.model
	case m.each:
		return "tag:" + m.key + "=*"
	}
	return "tag:" + m.key + "=" + url.PathEscape(m.value)
}

// Public is String without the value of an attribution pair, which may name a
// person.
func (m *Match) Public() string {
	if m == nil || m.model != "" {
		return m.String()
	}
	return "tag:" + m.key
}

// Same reports whether two matches have the same text.
func (m *Match) Same(o *Match) bool {
	if m == nil || o == nil {
		return m == o
	}
	return m.model == o.model && m.key == o.key && m.value == o.value && m.each == o.each
}

// Each reports whether each value has a counter of its own.
func (m *Match) Each() bool { return m != nil && m.each }

// Tag is the key and value of an attribution pair. A match of models has no
// key, and one of each value has no value.
func (m *Match) Tag() (key, value string) {
	if m == nil {
		return "", ""
	}
	return m.key, m.value
}

// Takes reports whether a value has a counter here: no exact match has taken it
// over.
func (m *Match) Takes(value string) bool {
	_, taken := m.taken[value]
	return !taken
}

// Traits are what matches look at of a call or of its usage row.
type Traits struct {
	Slug            string // "" where the route is not catalogued
	Provider, Model string
	KeyID           KeyID
	SubAccountID    SubAccountID
	Attribution     map[string]string // with or without the gateway's own pairs
}

// Traits are those of a call by its BEGIN, which its usage row shares.
func (b *CallBegin) Traits() Traits {
	return Traits{Slug: b.Slug, Provider: b.Provider, Model: b.Model, KeyID: b.KeyID, SubAccountID: b.SubAccountID, Attribution: b.Attribution}
}

// tag is the value of an attribution key, "" for none.
func (t *Traits) tag(key string) string {
	switch key {
	case AttributionKeyID:
		return string(t.KeyID)
	case AttributionSubAccountID:
		return string(t.SubAccountID)
	}
	return t.Attribution[key]
}

// Value is the value of a call whose counter it would count in: "" unless each
// value has one.
func (m *Match) Value(t *Traits) string {
	if !m.Each() {
		return ""
	}
	return t.tag(m.key)
}

// Counts reports whether a call counts, and its Value.
func (m *Match) Counts(t *Traits) (value string, counts bool) {
	switch {
	case m == nil:
		return "", true
	case m.model != "":
		if t.Slug != "" {
			return "", Glob(m.model, t.Slug)
		}
		return "", Glob(m.model, t.Provider+"/"+t.Model)
	}
	value = t.tag(m.key)
	if !m.each {
		return "", value == m.value
	}
	return value, value != "" && m.Takes(value)
}

// TakeOver gives the values of exact matches to these alone: a match of each
// value does not count them where owner, target, period and unit are the same. The
// list is all that an organization has.
func TakeOver(list []*Budget) {
	type place struct {
		owner  Owner
		level  Level
		id     string
		period Period
		unit   LimitUnit
		key    string
	}
	at := func(b *Budget) place { return place{b.Owner, b.Level, b.ID, b.Period, b.Unit, b.Match.key} }
	exact := make(map[place]map[string]struct{})
	for _, b := range list {
		if b.Match != nil && b.Match.model == "" && !b.Match.each {
			values := exact[at(b)]
			if values == nil {
				values = make(map[string]struct{})
				exact[at(b)] = values
			}
			values[b.Match.value] = struct{}{}
		}
	}
	for _, b := range list {
		if b.Match.Each() {
			b.Match.taken = exact[at(b)]
		}
	}
}
