package relay

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"modelgate/internal/provider"
)

const copyBuffer = 32 << 10

// Why an upstream call was ended by the gateway.
var (
	errStalled = errors.New("provider stopped sending")
	errExpired = errors.New("call took too long")
	errLeft    = errors.New("client has gone")
	errEnding  = errors.New("the gateway is shutting down")
)

// pass copies the reply to the client as it comes and feeds the meter. What
// was charged is booked before the last byte is let go: the last of a body of
// known length, the bytes that hold a stream's terminal event, or the end of
// a chunked body.
func (y *Relay) pass(c *call, resp *http.Response) {
	a := &c.attempts[c.tried]
	c.meter = a.reader.Meter(provider.Reply{
		Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"),
		ContentEncoding: resp.Header.Get("Content-Encoding"), Asked: c.asked,
	})
	header := c.w.Header()
	a.provider.ResponseHeaders(header, resp.Header)
	var filter *provider.UsageChunkFilter
	if a.inject && resp.StatusCode < 300 && hasMedia(resp, "text/event-stream") && resp.Header.Get("Content-Encoding") == "" {
		filter = new(provider.UsageChunkFilter)
		header.Del("Content-Length")
		resp.ContentLength = -1
	}
	c.status = resp.StatusCode
	c.w.WriteHeader(resp.StatusCode)

	y.copy(c, resp, filter)
}

// flusher is how the client is sent what has been written, nil where that can
// wait for the end. A JSON value mostly comes in one piece, for which one
// write is cheaper; one that comes in several may be a stream in disguise.
func (c *call) flusher(resp *http.Response) http.Flusher {
	first := c.replied == 0
	if resp.ContentLength >= 0 || first && hasMedia(resp, "application/json") {
		return nil
	}
	f, _ := c.w.(http.Flusher)
	return f
}

// copy is the loop of pass.
func (y *Relay) copy(c *call, resp *http.Response, filter *provider.UsageChunkFilter) {
	buf := y.buffers.Get().(*[copyBuffer]byte)
	defer y.buffers.Put(buf)
	idle := c.attempts[c.tried].provider.Timeouts().Idle
	stall := time.AfterFunc(idle, func() { c.client.cancel(errStalled) })
	defer stall.Stop()
	for {
		n, err := resp.Body.Read(buf[:])
		if n > 0 {
			stall.Reset(idle)
			flusher := c.flusher(resp)
			c.replied += int64(n)
			chunk := buf[:n]
			terminal := c.meter.Feed(chunk)
			if filter != nil {
				chunk = filter.Filter(chunk)
			}
			if terminal || c.replied == resp.ContentLength {
				y.end(c)
			}
			c.write(chunk, flusher)
		}
		switch {
		case err == io.EOF:
			if filter != nil {
				c.write(filter.Rest(), nil)
			}
			return
		case err != nil:
			c.cut = true
			return
		}
	}
}

// write passes bytes to the client while there is one.
func (c *call) write(chunk []byte, flusher http.Flusher) {
	if len(chunk) == 0 || c.client.hasLeft() {
		return
	}
	if _, err := c.w.Write(chunk); err != nil {
		c.client.leave()
		return
	}
	if flusher != nil {
		flusher.Flush()
	}
}

func hasMedia(resp *http.Response, media string) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), media)
}
