package gateway

import (
	"io"
	"net/http"
	"strconv"

	"modelgate/internal/provider"
	"modelgate/internal/provider/usage"
)

// hideCosts has a reply to a key that is bound to a sub-account pass without
// the members that state what the call costs upstream. A reply that came
// compressed, although nobody asked for that, goes out plain; in a coding that
// nobody knows it does not go out.
func (g *Gateway) hideCosts(p *streamCopy) bool {
	c, resp := p.call, p.resp
	if p.costs = c.costFilter(resp); p.costs == nil {
		return true
	}
	header := c.w.Header()
	if compressed(resp) {
		if p.plain = usage.NewDecoded(resp.Header.Get("Content-Encoding")); p.plain == nil {
			g.Log.Warn("reply withheld: it may state a cost, and its coding is unknown", "request_id", c.id.String(), "provider", c.attempts[c.tried].name)
			clear(header)
			header["Content-Length"], c.status = []string{"0"}, http.StatusBadGateway
			c.meter.Close()
			c.meter = nil
			return false
		}
		header.Del("Content-Encoding")
	}
	header.Del("Etag") // it is of other bytes
	if p.plain == nil && resp.ContentLength > 0 && resp.ContentLength <= copyBuffer {
		return true // see passShort
	}
	header.Del("Content-Length")
	resp.ContentLength = -1
	return true
}

// passWhole passes on a reply of known length, of which members may be taken
// out, as soon as it is whole: its length stays known.
func (g *Gateway) passWhole(p *streamCopy) {
	buf := g.buffers.Get().(*[copyBuffer]byte)
	defer g.buffers.Put(buf)
	chunk := buf[:p.resp.ContentLength]
	n, err := io.ReadFull(p.resp.Body, chunk)
	chunk = chunk[:n]
	p.replied += int64(n)
	p.meter.Feed(chunk)
	header := p.w.Header()
	if p.whole = err == nil; p.whole {
		chunk = p.costs.Whole(chunk)
		header["Content-Length"] = []string{strconv.Itoa(len(chunk))}
	} else {
		chunk = p.costs.Filter(chunk)
		header.Del("Content-Length")
	}
	p.w.WriteHeader(p.status)
	g.deliver(p, chunk, false)
	if err != nil {
		p.breakOff()
	}
}

// costFilter is the filter for a reply to the caller; nil for none.
func (c *call) costFilter(resp *http.Response) *usage.CostFilter {
	if c.caller.SubAccountID == "" || resp.ContentLength == 0 || c.r.Method == http.MethodHead {
		return nil
	}
	return c.attempts[c.tried].provider.CostFilter(resp.Header.Get("Content-Type"))
}

// withoutCosts is what of the next piece may go to the client.
func (p *streamCopy) withoutCosts(chunk []byte) []byte {
	if p.plain != nil {
		var fine bool
		if chunk, fine = p.plain.Decode(chunk); !fine {
			p.cut = true
			return nil
		}
	}
	return p.costs.Filter(chunk)
}

// rest is what filters have held back to the end of the reply.
func (p *streamCopy) rest() []byte {
	var rest []byte
	if p.filter != nil {
		rest = p.filter.Rest()
	}
	if p.costs != nil {
		rest = append(p.costs.Filter(rest), p.costs.Rest()...)
	}
	return rest
}

// tell is a reply that was taken in as the caller may see it; false where that
// cannot be made of it.
func (c *call) tell(at *provider.Provider, resp *http.Response, raw, plain []byte) ([]byte, bool) {
	if c.caller.SubAccountID == "" || !at.StatesCost() || len(raw) == 0 {
		return raw, true
	}
	if compressed(resp) {
		if plain == nil {
			return nil, false
		}
		resp.Header.Del("Content-Encoding")
	}
	resp.Header.Del("Content-Length")
	resp.Header.Del("Etag")
	if f := at.CostFilter(resp.Header.Get("Content-Type")); f != nil {
		plain = f.Whole(plain)
	}
	return plain, true
}
