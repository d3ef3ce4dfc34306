// Package tracing sends what calls did as OpenTelemetry traces, over OTLP/HTTP.
// A call's spans are made once, when its books are closed, from times that
// are taken anyway; while a call runs nothing is traced, and without an
// endpoint nothing at all.
package tracing

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// ID is the id of a trace; the zero value is none.
type ID [16]byte

// SpanID is the id of a span; the zero value is none.
type SpanID [8]byte

// NewSpanID draws an id.
func NewSpanID() (id SpanID) {
	rand.Read(id[:]) // never fails (crypto/rand)
	return id
}

// Kind is the role of a span.
type Kind uint8

// The kinds, numbered as OTLP does.
const (
	Server Kind = 2 // a request that the gateway answered
	Client Kind = 3 // a request that it made
)

// Span is a stretch of a call. Times are wall-clock.
type Span struct {
	Trace      ID
	ID         SpanID
	Parent     SpanID // zero for the first of a trace
	Name       string
	Kind       Kind
	Start, End time.Time
	Texts      []Text
	Numbers    []Number
	// Failed is why the span did not do what was asked, "" where it did.
	Failed string
}

// Text is an attribute that is a string.
type Text struct{ Key, Value string }

// Number is an attribute that is an integer.
type Number struct {
	Key   string
	Value int64
}

// Parent is where a client's trace stood when it made its request.
type Parent struct {
	Trace ID
	Span  SpanID
	// Sampled says that the client keeps the trace.
	Sampled bool
}

// ParseParent reads a traceparent header (W3C Trace Context). It is false for
// none and for one that is malformed, which starts a new trace.
func ParseParent(header string) (p Parent, ok bool) {
	parts := strings.Split(header, "-")
	const version, trace, span, flags = 0, 1, 2, 3
	if len(parts) < 4 || len(parts[version]) != 2 || parts[version] == "ff" || parts[version] == "00" && len(parts) != 4 {
		return Parent{}, false
	}
	var bits [1]byte
	for i, into := range [][]byte{version: bits[:], trace: p.Trace[:], span: p.Span[:], flags: bits[:]} {
		if len(parts[i]) != 2*len(into) || strings.ToLower(parts[i]) != parts[i] {
			return Parent{}, false
		}
		if _, err := hex.Decode(into, []byte(parts[i])); err != nil {
			return Parent{}, false
		}
	}
	p.Sampled = bits[0]&1 == 1
	return p, p.Trace != ID{} && p.Span != SpanID{}
}

// Sampler decides which traces are kept: those that the client keeps, and a
// share of those that begin here. The zero value keeps none of the latter.
type Sampler struct {
	share float64
}

// NewSampler keeps so many of a hundred.
func NewSampler(percent int) Sampler { return Sampler{float64(percent) / 100} }

// Keep is the place in a trace that a call's first span gets, and whether the
// trace is kept. The request id, whose second half is random, makes the
// decision and the trace's id, so that a trace is found by the id that the
// client was told.
func (s Sampler) Keep(traceparent string, requestID [16]byte) (Parent, bool) {
	if p, ok := ParseParent(traceparent); ok {
		return p, p.Sampled
	}
	const scale = 1 << 53
	dice := float64(binary.BigEndian.Uint64(requestID[8:])%scale) / scale
	return Parent{Trace: ID(requestID)}, dice < s.share
}
