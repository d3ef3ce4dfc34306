package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modelgate"
)

// Params are the query parameters of a request.
type Params struct{ values url.Values }

// ParseParams reads the query string; one that is malformed is bad_request.
func ParseParams(r *http.Request) (Params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Params{}, modelgate.Errorf(modelgate.BadRequest, "malformed query string")
	}
	return Params{values}, nil
}

// Text is a parameter as sent and whether it was. Sent twice, or with bytes
// that no text has, it is bad_request.
func (p Params) Text(name string) (string, bool, error) {
	switch all := p.values[name]; {
	case len(all) == 0:
		return "", false, nil
	case len(all) > 1:
		return "", false, modelgate.Errorf(modelgate.BadRequest, "%s must be given once", name)
	case !utf8.ValidString(all[0]) || strings.ContainsRune(all[0], 0):
		return "", false, modelgate.Errorf(modelgate.BadRequest, "%s must be UTF-8 text", name)
	default:
		return all[0], true, nil
	}
}

// Bounds are what an integer parameter may be.
type Bounds struct{ Min, Max int }

// Int is an integer parameter, absent when it was not sent. Out of bounds or
// no integer is bad_request.
func (p Params) Int(name string, b Bounds, absent int) (int, error) {
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
