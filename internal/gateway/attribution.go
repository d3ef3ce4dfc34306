package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"modelgate"
)

// AttributionHeader carries the caller's own labels of a call. It is read
// here and never forwarded.
const AttributionHeader = "X-Gateway-Attribution"

// The bounds of an attribution header.
const (
	maxPairs         = 16
	attributionUsage = "X-Gateway-Attribution: send key=value pairs separated by commas with percent-encoded values, or one JSON object of strings; " +
		"at most 16 pairs, keys [A-Za-z0-9_.-]{1,64}, values of at most 256 bytes"
)

// attribution reads the header in either form: team=search,env=prod or one
// JSON object of strings. No header is nil. Errors are bad_request.
func attribution(h http.Header) (map[string]string, error) {
	lines := h[AttributionHeader]
	if len(lines) == 0 {
		return nil, nil
	}
	pairs := make(map[string]string)
	if trimmed := strings.TrimSpace(lines[0]); strings.HasPrefix(trimmed, "{") {
		var object map[string]*string // a null is no string
		if len(lines) > 1 || json.Unmarshal([]byte(trimmed), &object) != nil {
			return nil, modelgate.Errorf(modelgate.BadRequest, attributionUsage)
		}
		for key, value := range object {
			if value == nil {
				return nil, modelgate.Errorf(modelgate.BadRequest, attributionUsage)
			}
			pairs[key] = *value
		}
		return pairs, checkPairs(pairs)
	}
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ",") {
			pair = strings.TrimSpace(pair)
			if pair == "" {
				continue
			}
			key, encoded, found := strings.Cut(pair, "=")
			value, err := url.PathUnescape(encoded)
			if _, twice := pairs[key]; !found || err != nil || twice {
				return nil, modelgate.Errorf(modelgate.BadRequest, attributionUsage)
			}
			pairs[key] = value
		}
	}
	return pairs, checkPairs(pairs)
}

// attribute reads the call's attribution. What a browser token fixes is part of
// it. Errors are bad_request.
func (c *call) attribute() (err error) {
	c.attribution, err = attribution(c.r.Header)
	if err == nil && c.caller.Token != nil {
		c.attribution, err = c.caller.Token.Attribute(c.attribution)
	}
	return err
}

func checkPairs(pairs map[string]string) error {
	if len(pairs) > maxPairs {
		return modelgate.Errorf(modelgate.BadRequest, attributionUsage)
	}
	for k, v := range pairs {
		if modelgate.SetByGateway(k) {
			return modelgate.Errorf(modelgate.BadRequest, "X-Gateway-Attribution: %s is set by the gateway; leave it out", k)
		}
		if !modelgate.IsAttributionKey(k) || len(v) > modelgate.MaxAttributionValue || !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return modelgate.Errorf(modelgate.BadRequest, attributionUsage)
		}
	}
	return nil
}
