package httpx

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modelgate"
)

// Params are the query parameters of a request. What is asked for by name is
// known from then on; see Unknown. Not safe for concurrent use.
type Params struct {
	given []parameter // in the order in which they came
	known []string
}

type parameter struct{ name, value string }

// ParseParams reads a query string. There is none that cannot be read: a
// percent sign that begins no escape stands for itself.
func ParseParams(query string) *Params {
	p := &Params{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		p.given = append(p.given, parameter{modelgate.UnescapeQuery(name), modelgate.UnescapeQuery(value)})
	}
	return p
}

// Unknown are the names of parameters that were given and that nobody has
// asked for, each once.
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

// Text is a parameter as sent and whether it was. Sent twice, or with bytes
// that no text has, it is bad_request.
func (p *Params) Text(name string) (string, bool, error) {
	if !slices.Contains(p.known, name) {
		p.known = append(p.known, name)
	}
	value, found := "", false
	for _, g := range p.given {
		switch {
		case g.name != name:
		case found:
			return "", false, modelgate.Errorf(modelgate.BadRequest, "%s must be given once", name)
		default:
			value, found = g.value, true
		}
	}
	if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		return "", false, modelgate.Errorf(modelgate.BadRequest, "%s must be UTF-8 text", name)
	}
	return value, found, nil
}

// noValue is what no stored name or status is.
const noValue = "\uFFFD"

// Filter is a parameter that rows are compared with as it was sent, "" for
// none. One that was sent empty matches no row, as any other value that there
// is not.
func (p *Params) Filter(name string) (string, error) {
	text, given, err := p.Text(name)
	if given && text == "" {
		text = noValue
	}
	return text, err
}

// Bounds are what an integer parameter may be.
type Bounds struct{ Min, Max int }

// Int is an integer parameter, absent when it was not sent. Out of bounds or
// no integer is bad_request.
func (p *Params) Int(name string, b Bounds, absent int) (int, error) {
	text, sent, err := p.Text(name)
	if err != nil {
		return 0, err
	}
	if !sent {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < b.Min || n > b.Max || text[0] == '+' {
		return 0, modelgate.Errorf(modelgate.BadRequest, "%s must be an integer from %d to %d", name, b.Min, b.Max)
	}
	return n, nil
}

// MaxSince is how far back a window may reach: ten years.
const MaxSince = 3650 * 24 * time.Hour

// Since reads the length of a window: a number with suffix d for days, else
// a Go duration such as 24h or 90m. It is more than 0 and at most MaxSince;
// anything else is bad_request (spec: GET /gw/stats).
func Since(text string) (time.Duration, error) {
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
