package ratelimit

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelgate"
)

// mostHeaders is how many limits RateLimit names.
const mostHeaders = 4

// mostInteger is the largest integer of a structured field (RFC 9651, 3.3.1).
const mostInteger = 999_999_999_999_999

// WriteHeaders writes what bound a call: RateLimit and RateLimit-Policy of
// draft-ietf-httpapi-ratelimit-headers-10 for the four limits of which the
// smallest part is left, and the headers that OpenAI's SDKs know. Without any
// limit it writes none.
func WriteHeaders(h http.Header, shown []Shown) {
	if len(shown) == 0 {
		return
	}
	tightest := slices.Clone(shown)
	slices.SortStableFunc(tightest, func(a, b Shown) int { return cmp.Compare(a.left(), b.left()) })
	var policies, states []string
	named := make(map[string]int)
	for i := range tightest[:min(len(tightest), mostHeaders)] {
		s := &tightest[i]
		name := fmt.Sprintf("%s-%s-%s", s.State.Scope, s.State.Unit, s.State.Window)
		if named[name]++; named[name] > 1 {
			name += "-" + strconv.Itoa(named[name])
		}
		unit := ""
		switch s.State.Unit {
		case modelgate.UnitRequests:
		case modelgate.UnitUSD:
			unit = `;qu="micro-usd"`
		default:
			unit = `;qu="tokens"`
		}
		policies = append(policies, fmt.Sprintf("%q;q=%d;w=%d%s", name, s.whole(s.State.Limit), int(s.Rule.Span()/time.Second), unit))
		states = append(states, fmt.Sprintf("%q;r=%d;t=%d", name, s.whole(s.State.Remaining), int(math.Ceil(s.Full.Seconds()))))
	}
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
	h.Set("RateLimit", strings.Join(states, ", "))
	for _, kind := range []string{"requests", "tokens"} {
		i := slices.IndexFunc(tightest, func(s Shown) bool {
			return s.State.Unit != modelgate.UnitUSD && (s.State.Unit == modelgate.UnitRequests) == (kind == "requests")
		})
		if i < 0 {
			continue
		}
		s := &tightest[i]
		h.Set("X-Ratelimit-Limit-"+kind, strconv.FormatInt(s.whole(s.State.Limit), 10))
		h.Set("X-Ratelimit-Remaining-"+kind, strconv.FormatInt(s.whole(s.State.Remaining), 10))
		h.Set("X-Ratelimit-Reset-"+kind, s.Full.Round(time.Millisecond).String())
	}
}

// left is the part of the bucket that is left.
func (s *Shown) left() float64 {
	return float64(s.State.Remaining) / float64(s.State.Remaining+s.State.Used)
}

// whole is an amount in the unit of the headers: whole requests and tokens,
// millionths of a dollar.
func (s *Shown) whole(n modelgate.Nano) int64 {
	if s.State.Unit == modelgate.UnitUSD {
		return min(int64(n)/1000, mostInteger)
	}
	return int64(n / modelgate.USD)
}
