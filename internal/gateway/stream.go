package gateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/provider/usage"
)

const copyBuffer = 32 << 10

// Why an upstream call was ended by the gateway.
var (
	errStalled = errors.New("provider stopped sending")
	errExpired = errors.New("call took too long")
	errLeft    = errors.New("client has gone")
	errEnding  = errors.New("the gateway is shutting down")
)

// streamCopy is a reply on its way to the client.
type streamCopy struct {
	*call
	resp   *http.Response
	filter *usage.ChunkFilter     // nil: every event is for the client
	costs  *provider.CostStripper // nil: what the reply states of costs is for the client
}

// replyHeaders passes the headers of a reply on. A redirect is named by the
// provider's own path: an end customer who came through a door is not told
// which provider that is.
func (c *call) replyHeaders(p *provider.Provider, from http.Header) {
	header := c.w.Header()
	p.ResponseHeaders(header, from)
	if c.bySlug && c.caller.SubAccountID != "" {
		header.Del("Location")
	}
}

// streamReply copies the reply to the client as it comes and feeds the meter. What
// was charged is booked before the last byte is let go: the last of a body of
// known length, the bytes that hold a stream's terminal event, or the end of
// a chunked body.
func (g *Gateway) streamReply(c *call, resp *http.Response) {
	a := &c.attempts[c.tried]
	c.meter = a.reader.Meter(usage.Reply{
		Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"),
		ContentEncoding: resp.Header.Get("Content-Encoding"), Requested: a.requested, Header: resp.Header,
	})
	if a.protocol != nil && resp.StatusCode < 300 {
		g.passCreation(c, resp)
		return
	}
	c.spillover = resp.Header.Get("X-Ms-Spillover-From-Deployment") != ""
	p := streamCopy{call: c, resp: resp}
	events := hasMedia(resp, "text/event-stream")
	c.stream = events || hasMedia(resp, "application/vnd.amazon.eventstream")
	if a.inject && resp.StatusCode < 300 && events && !provider.Compressed(resp) {
		p.filter = new(usage.ChunkFilter)
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
	}
	length := resp.ContentLength
	if !g.stripCosts(&p) {
		return
	}
	defer p.costs.Close()
	c.replyHeaders(a.provider, resp.Header)
	c.forbidRetry(resp.StatusCode)
	c.status = resp.StatusCode
	c.stall.replyBegan(a.provider.Timeouts().Idle, g.Stuck)
	if c.costOnAnswer = g.asksCost(c); c.costOnAnswer {
		g.passWithCost(&p)
		return
	}
	if p.costs.Plain() && length > 0 && length <= copyBuffer {
		g.passWhole(&p, length)
		return
	}
	c.w.WriteHeader(resp.StatusCode)
	g.passRest(&p)
}

// passRest passes on what is still to come of a reply.
func (g *Gateway) passRest(p *streamCopy) {
	if body, ok := p.resp.Body.(interface{ Attend(ready func() bool) }); ok && p.stream {
		body.Attend(func() bool { return g.passRead(p) })
		return
	}
	for g.passRead(p) {
	}
}

// passRead passes on what one read gives, and reports whether more is to come.
// Only from the read to the write it has memory of its own: a stream that
// waits takes none, and all of them use what is in the processor's caches.
func (g *Gateway) passRead(p *streamCopy) bool {
	buf := g.buffers.Get().(*[copyBuffer]byte)
	defer g.buffers.Put(buf)
	n, err := p.resp.Body.Read(buf[:])
	if int64(n) > g.MaxReply-p.replied {
		g.Log.Warn("reply cut: it is too long", "request_id", p.id.String(), "provider", p.attempts[p.tried].name)
		p.breakOff()
		return false
	}
	if n > 0 {
		g.passChunk(p, buf[:n])
	}
	switch {
	case err == io.EOF:
		p.whole = true
		if p.filter != nil || p.costs != nil {
			g.deliver(p, p.rest(), false)
		}
	case err != nil:
		p.breakOff()
	}
	return err == nil
}

// passChunk meters and passes on what one read gave.
func (g *Gateway) passChunk(p *streamCopy, chunk []byte) {
	atOnce := p.atOnce()
	p.replied += int64(len(chunk))
	terminal := p.meter.Feed(chunk)
	if p.filter != nil {
		chunk = p.filter.Filter(chunk)
	}
	if p.costs != nil {
		var ok bool
		if chunk, ok = p.costs.Filter(chunk); !ok {
			p.cut = true
		}
	}
	p.whole = p.whole || terminal || p.replied == p.resp.ContentLength
	g.deliver(p, chunk, atOnce)
}

// deliver sends a chunk of a reply to the client. Every chunk of every reply passes
// here. Before the last one END is made durable, before the others a MARK where it is
// due: what a client has received is in the books.
func (g *Gateway) deliver(p *streamCopy, chunk []byte, atOnce bool) {
	if p.whole {
		g.recordEnd(p.call)
	} else {
		g.mark(p.call)
	}
	p.write(chunk, atOnce)
}

// atOnce reports whether the next piece is sent without waiting for others. A
// JSON value mostly comes in one piece, for which one write is cheaper; one
// that comes in several may be a stream in disguise.
func (p *streamCopy) atOnce() bool {
	first := p.replied == 0
	return p.resp.ContentLength < 0 && !(first && hasMedia(p.resp, "application/json"))
}

// breakOff ends a reply that is not whole. The client gets what has come of
// it before its connection is cut.
func (p *streamCopy) breakOff() {
	p.cut = true
	if flusher, ok := p.w.(http.Flusher); ok && !p.client.hasLeft() {
		p.stall.switchSide()
		defer p.stall.switchSide()
		flusher.Flush()
	}
}

// write passes bytes to the client while there is one, unless the answer is
// to be withheld.
func (p *streamCopy) write(chunk []byte, atOnce bool) {
	if len(chunk) == 0 || p.cut || p.client.hasLeft() {
		return
	}
	p.stall.switchSide()
	defer p.stall.switchSide()
	var err error
	if atOnce {
		err = httpx.Send(p.w, chunk)
	} else {
		_, err = p.w.Write(chunk)
	}
	if err != nil {
		p.client.left()
	}
}

// stripCosts has a reply to a key that is bound to a sub-account pass without
// the members that state what the call costs upstream. It reports false where
// that is not possible; then the reply is not passed on.
func (g *Gateway) stripCosts(p *streamCopy) (ok bool) {
	c := p.call
	if c.caller.SubAccountID == "" || c.r.Method == http.MethodHead {
		return true
	}
	a := &c.attempts[c.tried]
	if p.costs, ok = a.provider.StripCosts(p.resp); !ok {
		g.Log.Warn("reply withheld: it may state a cost, and its coding is unknown", "request_id", c.id.String(), "provider", a.name)
		c.w.Header()["Content-Length"], c.status = []string{"0"}, http.StatusBadGateway
		c.meter.Close()
		c.meter = nil
	}
	return ok
}

// passWhole passes on a reply of known length, of which members may be taken
// out, as soon as it is whole: its length stays known.
func (g *Gateway) passWhole(p *streamCopy, length int64) {
	buf := g.buffers.Get().(*[copyBuffer]byte)
	defer g.buffers.Put(buf)
	n, err := io.ReadFull(p.resp.Body, buf[:length])
	chunk := buf[:n]
	p.replied += int64(n)
	p.meter.Feed(chunk)
	if p.whole = err == nil; p.whole {
		chunk = p.costs.Whole(chunk)
		p.w.Header()["Content-Length"] = []string{strconv.Itoa(len(chunk))}
	} else {
		chunk, _ = p.costs.Filter(chunk)
	}
	p.w.WriteHeader(p.status)
	g.deliver(p, chunk, false)
	if err != nil {
		p.breakOff()
	}
}

// rest is what filters have held back to the end of the reply.
func (p *streamCopy) rest() (rest []byte) {
	if p.filter != nil {
		rest = p.filter.Rest()
	}
	if p.costs != nil {
		rest = p.costs.Rest(rest)
	}
	return rest
}

func hasMedia(resp *http.Response, media string) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), media)
}
