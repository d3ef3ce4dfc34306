package provider

import (
	"cmp"
	"net/http"

	"modelgate/internal/provider/usage"
)

// StatedCostUse says what becomes of the cost that a provider's replies state.
type StatedCostUse string

// The choices. With UseStatedCost it is what calls cost, with RecordStatedCost
// it is only compared with that.
const (
	IgnoreStatedCost StatedCostUse = "off"
	RecordStatedCost StatedCostUse = "record"
	UseStatedCost    StatedCostUse = "use"
)

// StatedCost is what becomes of the cost that replies state.
func (p *Provider) StatedCost() StatedCostUse { return cmp.Or(p.statedCost, IgnoreStatedCost) }

// Compressed reports whether a reply's bytes are not those of its media type.
func Compressed(resp *http.Response) bool {
	coding := contentCoding(resp.Header)
	return coding != "" && coding != "identity"
}

// CostStripper removes the members that state a cost from a reply that is
// passed on in chunks. A compressed reply comes out decompressed.
type CostStripper struct {
	filter *usage.CostFilter
	plain  *usage.Decoded // nil: the reply is not compressed
}

// StripCosts makes the stripper of a reply, nil where there is nothing to
// remove, and deletes the headers that describe the original bytes. It reports
// false for a reply in an unknown coding, which must not be passed on: it may
// state a cost.
func (p *Provider) StripCosts(resp *http.Response) (*CostStripper, bool) {
	filter := p.CostFilter(resp.Header.Get("Content-Type"))
	if filter == nil || resp.ContentLength == 0 {
		return nil, true
	}
	s := &CostStripper{filter: filter}
	if Compressed(resp) {
		if s.plain = usage.NewDecoded(resp.Header.Get("Content-Encoding")); s.plain == nil {
			return nil, false
		}
	}
	asPlain(resp)
	return s, true
}

// asPlain deletes the headers that describe the original bytes of a reply.
func asPlain(resp *http.Response) {
	for _, name := range [...]string{"Content-Encoding", "Content-Length", "Etag"} {
		resp.Header.Del(name)
	}
	resp.ContentLength = -1
}

// Filter returns what may be passed on after the next chunk. The result is good
// until the next call. It reports false for a reply that cannot be decompressed.
func (s *CostStripper) Filter(chunk []byte) ([]byte, bool) {
	if s.plain != nil {
		var ok bool
		if chunk, ok = s.plain.Decode(chunk); !ok {
			return nil, false
		}
	}
	return s.filter.Filter(chunk), true
}

// Rest returns what was held back, and end before it, at the end of a reply;
// end is in plain text.
func (s *CostStripper) Rest(end []byte) []byte {
	return append(s.filter.Filter(end), s.filter.Rest()...)
}

// Whole is Filter and Rest for an uncompressed reply in one chunk.
func (s *CostStripper) Whole(body []byte) []byte { return s.filter.Whole(body) }

// Close releases the stripper; nil is allowed.
func (s *CostStripper) Close() {
	if s != nil && s.plain != nil {
		s.plain.Close()
	}
}

// WithoutCosts is what of a reply that was read by ReadReply may be shown to a
// key that must not see costs. It reports false where that cannot be told.
func (p *Provider) WithoutCosts(resp *http.Response, raw, plain []byte) ([]byte, bool) {
	if !p.StatesCost() || len(raw) == 0 {
		return raw, true
	}
	if plain == nil {
		return nil, false
	}
	filter := p.CostFilter(resp.Header.Get("Content-Type"))
	asPlain(resp)
	if filter != nil {
		plain = filter.Whole(plain)
	}
	return plain, true
}

// Plain reports whether there is something to remove and the reply is not
// compressed, so that Whole may be used; false for nil.
func (s *CostStripper) Plain() bool { return s != nil && s.plain == nil }
