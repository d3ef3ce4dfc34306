package ratelimit

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
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
// limit it writes none. It sorts the list.
func WriteHeaders(h http.Header, shown []Shown) {
	if len(shown) == 0 {
		return
	}
	slices.SortStableFunc(shown, func(a, b Shown) int { return cmp.Compare(a.left(), b.left()) })
	policies, states := make([]byte, 0, 256), make([]byte, 0, 256)
	for i := range shown[:min(len(shown), mostHeaders)] {
		s := &shown[i]
		if i > 0 {
			policies, states = append(policies, ", "...), append(states, ", "...)
		}
		policies, states = appendName(policies, shown, i), appendName(states, shown, i)
		policies = strconv.AppendInt(append(policies, ";q="...), s.whole(s.State.Limit), 10)
		policies = strconv.AppendInt(append(policies, ";w="...), int64(s.Rule.Span()/time.Second), 10)
		switch s.State.Unit {
		case modelgate.UnitRequests:
		case modelgate.UnitUSD:
			policies = append(policies, `;qu="micro-usd"`...)
		default:
			policies = append(policies, `;qu="tokens"`...)
		}
		states = strconv.AppendInt(append(states, ";r="...), s.whole(s.State.Remaining), 10)
		states = strconv.AppendInt(append(states, ";t="...), int64((s.Full+time.Second-1)/time.Second), 10)
	}
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{string(policies)}, []string{string(states)}
	for _, kind := range [...][3]string{
		{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	} {
		requests := kind[0] == "X-Ratelimit-Limit-Requests"
		i := slices.IndexFunc(shown, func(s Shown) bool {
			return s.State.Unit != modelgate.UnitUSD && (s.State.Unit == modelgate.UnitRequests) == requests
		})
		if i < 0 {
			continue
		}
		s := &shown[i]
		h[kind[0]] = []string{strconv.FormatInt(s.whole(s.State.Limit), 10)}
		h[kind[1]] = []string{strconv.FormatInt(s.whole(s.State.Remaining), 10)}
		h[kind[2]] = []string{s.Full.Round(time.Millisecond).String()}
	}
}

// appendName appends the name of the i-th limit. Limits that are alike are told
// apart by a number.
func appendName(b []byte, shown []Shown, i int) []byte {
	at, alike := &shown[i].State, 1
	for k := range shown[:i] {
		if o := &shown[k].State; o.Scope == at.Scope && o.Unit == at.Unit && o.Window == at.Window {
			alike++
		}
	}
	b = append(append(append(b, '"'), at.Scope...), '-')
	b = append(append(append(b, at.Unit...), '-'), at.Window...)
	if alike > 1 {
		b = strconv.AppendInt(append(b, '-'), int64(alike), 10)
	}
	return append(b, '"')
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
