package gateway

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"modelgate"
	"modelgate/internal/httpfield"
)

// AskCostHeader asks for the cost of a call on its answer: with the value 1, from
// a key with stats:read.
const AskCostHeader = "X-Gateway-Cost"

// The cost of a call and how completely its usage is known, as headers or trailers
// of its answer.
const (
	costHeader        = "X-Gateway-Cost-Usd"
	parseStatusHeader = "X-Gateway-Parse-Status"
)

// maxHeld bounds an answer that is held until its cost is known, in bytes.
const maxHeld = 1 << 20

// asksCost reports whether the answer is to say what the call costs.
func (g *Gateway) asksCost(c *call) bool {
	asked := c.r.Header[AskCostHeader]
	return len(asked) == 1 && asked[0] == "1" && !g.NoCostHeaders && c.r.Method != http.MethodHead && c.caller.Has(modelgate.StatsRead)
}

// tellCost puts the cost of a call that is booked on its answer: in its header
// while that is not sent, and in its trailer afterwards. A key bound to a
// sub-account is told what is billed.
func (c *call) tellCost(end *modelgate.CallEnd) {
	h := c.w.Header()
	h[costHeader] = []string{end.Cost.Billed(c.caller.Markup).String()}
	h[parseStatusHeader] = []string{string(end.ParseStatus)}
}

// holds reports whether a reply may be held until it is whole: not one that a
// client reads while it comes, and not one that is not known to fit.
func (p *streamCopy) holds() bool {
	switch {
	case p.stream, p.filter != nil, p.costs != nil && !p.costs.Plain(), p.resp.ContentLength > maxHeld:
		return false
	case p.resp.ContentLength >= 0:
		return true
	}
	// Gemini streams JSON where it is not asked for events, and says so in the path.
	return hasMedia(p.resp, "application/json") && !strings.Contains(p.r.URL.Path, "stream")
}

// passWithCost passes on a reply whose client asked for the cost. It is held until
// END is durable where that is possible, in memory that counts as that of request
// bodies; otherwise the cost is in the trailer, if the client takes one.
func (g *Gateway) passWithCost(p *streamCopy) {
	var held []byte
	var err error
	room := g.Memory.For(string(p.caller.ClientID))
	defer room.Release()
	size := int64(maxHeld)
	if p.resp.ContentLength >= 0 {
		size = p.resp.ContentLength
	}
	if size = min(size, g.MaxReply); p.holds() && room.Reserve(size) == nil {
		held, err = io.ReadAll(io.LimitReader(p.resp.Body, size+1))
		if err == nil && int64(len(held)) <= size {
			g.passHeld(p, held)
			return
		}
	}
	p.costOnAnswer = p.announce()
	p.w.WriteHeader(p.status)
	if len(held) > 0 {
		g.passChunk(p, held)
	}
	if err != nil {
		p.breakOff()
		return
	}
	g.passRest(p)
}

// passHeld passes on a reply that is whole, with its cost in the header.
func (g *Gateway) passHeld(p *streamCopy, chunk []byte) {
	p.replied += int64(len(chunk))
	p.meter.Feed(chunk)
	if p.costs != nil {
		chunk = p.costs.Whole(chunk)
	}
	p.whole = true
	if p.costs != nil || p.resp.ContentLength < 0 {
		p.w.Header()["Content-Length"] = []string{strconv.Itoa(len(chunk))}
	}
	g.recordEnd(p.call)
	p.w.WriteHeader(p.status)
	p.write(chunk, false)
}

// announce announces the trailer, and reports whether the client takes one.
func (c *call) announce() bool {
	if c.r.ProtoMajor < 2 && !takesTrailers(c.r.Header["Te"]) {
		return false
	}
	h := c.w.Header()
	h["Trailer"] = []string{costHeader + ", " + parseStatusHeader}
	delete(h, "Content-Length") // trailers follow chunks only
	return true
}

func takesTrailers(te []string) bool {
	for element := range httpfield.Elements(te) {
		name, _, _ := strings.Cut(element, ";")
		if strings.EqualFold(strings.TrimSpace(name), "trailers") {
			return true
		}
	}
	return false
}
