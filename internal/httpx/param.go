package httpx

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modelgate"
	"modelgate/internal/httpfield"
)

// Params are the query parameters of a request. A parameter is known once it
// has been read by name; see Unknown. The first that cannot be read is kept as
// the error, so that a caller reads all of them and asks for Err once. Not safe
// for concurrent use.
type Params struct {
	given []parameter // in the order in which they came
	known []string
	err   error
}

type parameter struct{ name, value string }

// ParseParams reads a query string. Every query string can be read: a percent
// sign that does not begin an escape stands for itself.
func ParseParams(query string) *Params {
	p := &Params{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		p.given = append(p.given, parameter{httpfield.UnescapeQuery(name), httpfield.UnescapeQuery(value)})
	}
	return p
}

// Unknown are the names of the given parameters that were not read, each once.
func (p *Params) Unknown() (names []string) {
	seen := map[string]bool{}
	for _, name := range p.known {
		seen[name] = true
	}
	for _, g := range p.given {
		if !seen[g.name] {
			seen[g.name] = true
			names = append(names, g.name)
		}
	}
	return names
}

// ErrUnknownParam refuses a parameter with the nearest that is known, or with
// all of them.
func (p *Params) ErrUnknownParam(name string) error {
	return unknown("parameter", "parameters", printable(name), name, p.known)
}

// Err is the first error of the parameters that were read, a bad_request.
func (p *Params) Err() error { return p.err }

// fail keeps the first error.
func (p *Params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = modelgate.Errorf(modelgate.BadRequest, format, args...)
	}
}

// Text is a parameter as sent, and whether it was. A parameter that was sent
// twice, or is not text, is an error and counts as not sent.
func (p *Params) Text(name string) (value string, given bool) {
	if !slices.Contains(p.known, name) {
		p.known = append(p.known, name)
	}
	for _, g := range p.given {
		switch {
		case g.name != name:
		case given:
			p.fail("%s must be given once", name)
			return "", false
		default:
			value, given = g.value, true
		}
	}
	if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		p.fail("%s must be UTF-8 text", name)
		return "", false
	}
	return value, given
}

// List is a parameter that may be sent several times, in the order of its
// values. An empty value, or one that is not text, is an error.
func (p *Params) List(name string) (values []string) {
	if !slices.Contains(p.known, name) {
		p.known = append(p.known, name)
	}
	for _, g := range p.given {
		switch {
		case g.name != name:
		case g.value == "":
			p.fail("%s must not be empty", name)
		case !utf8.ValidString(g.value) || strings.ContainsRune(g.value, 0):
			p.fail("%s must be UTF-8 text", name)
		default:
			values = append(values, g.value)
		}
	}
	return values
}

// noValue is not the name or status of any stored row.
const noValue = "\uFFFD"

// Filter is a parameter that rows are compared with as it was sent, "" for
// none. One that was sent empty matches no row, like any other value that no
// row has.
func (p *Params) Filter(name string) string {
	text, given := p.Text(name)
	if given && text == "" {
		return noValue
	}
	return text
}

// OneOf is a parameter that has one of a few values, absent when it was not
// sent. Any other value is an error.
func OneOf[T ~string](p *Params, name string, absent T, values ...T) T {
	text, given := p.Text(name)
	switch {
	case !given:
		return absent
	case !slices.Contains(values, T(text)):
		p.fail("%s must be %s", name, alternatives(values))
	}
	return T(text)
}

// alternatives is values in words: a, b or c.
func alternatives[T ~string](values []T) string {
	text := string(values[0])
	for i, v := range values[1:] {
		separator := ", "
		if i == len(values)-2 {
			separator = " or "
		}
		text += separator + string(v)
	}
	return text
}

// Int is an integer parameter from least to most, absent when it was not sent.
// Out of bounds or no integer is an error.
func (p *Params) Int(name string, least, most, absent int) int {
	text, given := p.Text(name)
	if !given {
		return absent
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || text[0] == '+' {
		p.fail("%s must be an integer from %d to %d", name, least, most)
		return absent
	}
	return n
}

// Since is the parameter since, the length of a window, absent when it was not
// sent; see ParseSince.
func (p *Params) Since(absent time.Duration) time.Duration {
	text, given := p.Text("since")
	if !given {
		return absent
	}
	d, err := ParseSince(text)
	p.err = cmp.Or(p.err, err)
	return d
}

// Time is a parameter that is an instant: RFC 3339, or as in since the length
// of time before now. The zero time when it was not sent.
func (p *Params) Time(name string, now time.Time) time.Time {
	text, given := p.Text(name)
	if !given {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil && t.Year() >= 1970 && t.Year() < 10000 {
		return t
	}
	d, err := ParseSince(text)
	if err != nil {
		p.fail("%s must be a time such as 2026-11-21T10:00:00Z, or a duration such as 30d", name)
	}
	return now.Add(-d)
}

// Instant is a parameter that is an RFC 3339 time of a year from 1970 to 9999. The
// zero time when it was not sent.
func (p *Params) Instant(name string) time.Time {
	text, given := p.Text(name)
	if !given {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		p.fail("%s must be a time such as 2026-11-21T10:00:00Z", name)
		return time.Time{}
	}
	return t
}

// MaxSince is how far back a window may reach: ten years.
const MaxSince = 3650 * 24 * time.Hour

// ParseSince reads the length of a window: a number with suffix d for days, else
// a Go duration such as 24h or 90m. It is more than 0 and at most MaxSince;
// anything else is bad_request (GET /gw/stats).
func ParseSince(text string) (time.Duration, error) {
	d, ok := duration(text)
	if !ok || d <= 0 || d > MaxSince {
		return 0, modelgate.Errorf(modelgate.BadRequest, "since must be a duration such as 30d, 24h or 90m, more than 0 and at most 3650d")
	}
	return d, nil
}

func duration(text string) (time.Duration, bool) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		d, err := time.ParseDuration(text)
		return d, err == nil
	}
	if days == "" || strings.Trim(days, "0123456789.") != "" {
		return 0, false
	}
	hours, err := time.ParseDuration(days + "h")
	if err != nil || hours > MaxSince/24 {
		return 0, false
	}
	return 24 * hours, true
}
