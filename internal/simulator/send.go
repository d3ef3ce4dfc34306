package simulator

import (
	"cmp"
	"compress/gzip"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"modelgate/internal/cancelctx"
)

// send writes the answer as the directives want it, and records the call.
func (c *call) send(w http.ResponseWriter, a answer) {
	ctx := c.r.Context()
	if cancelctx.Sleep(ctx, c.d.delay) != nil || c.d.hang == 0 {
		<-ctx.Done()
		c.record()
		return
	}
	if c.d.cut == 0 {
		c.leave(w)
		return
	}
	parts, cut, hang := a.plan(c.d)
	s := &sender{ResponseWriter: w, c: c, flushes: a.frames != nil || len(parts) > 1}
	s.open(a, cut > 0 && a.frames == nil)
	for i, part := range parts {
		if i == hang {
			<-ctx.Done()
		}
		if i == cut || ctx.Err() != nil || (i > 0 && cancelctx.Sleep(ctx, c.d.gap) != nil) {
			c.leave(w)
			return
		}
		if s.write(part); s.err != nil {
			break
		}
		if a.frames != nil {
			c.served.Chunks++
		}
		if i+1 == a.usage {
			c.served.Usage = true
		}
	}
	if hang == len(parts) {
		<-ctx.Done()
	}
	if hang == len(parts) || cut == len(parts) {
		c.leave(w)
		return
	}
	s.close()
	c.served.Complete = s.err == nil && ctx.Err() == nil
	c.record()
}

// plan is the parts of the answer and where to cut and to hang in them; -1 for
// nowhere. It moves the mark of usage along with the parts.
func (a *answer) plan(d directives) (parts [][]byte, cut, hang int) {
	if a.frames == nil {
		if d.cut < 0 && d.hang < 0 {
			return [][]byte{a.body}, -1, -1
		}
		half := len(a.body) / 2
		a.usage *= 2
		return [][]byte{a.body[:half], a.body[half:]}, min(d.cut, 1), min(d.hang, 1)
	}
	if d.errorAt == unset || a.fault == nil {
		return a.frames, d.cut, d.hang
	}
	at := min(d.errorAt, len(a.frames))
	if d.errorAt == atHalf {
		at = len(a.frames) / 2
	}
	if a.usage > at {
		a.usage = 0
	}
	return append(slices.Clone(a.frames[:at]), a.fault), d.cut, d.hang
}

// sender writes one reply, compressed where a directive says so, and counts
// what the connection took.
type sender struct {
	http.ResponseWriter
	zip     *gzip.Writer // nil: not compressed
	c       *call
	flushes bool // after each part
	err     error
}

// open sends the status line and the headers, the length among them where it is
// to differ from what follows.
func (s *sender) open(a answer, sized bool) {
	h, d := s.Header(), s.c.d
	s.c.setProviderHeaders(h)
	maps.Copy(h, a.header)
	if a.kind != "" {
		h.Set("Content-Type", a.kind)
	}
	if a.frames != nil {
		h.Set("Cache-Control", "no-cache")
	}
	if d.retryAfter >= 0 {
		h.Set("Retry-After", strconv.Itoa(d.retryAfter))
	}
	if d.gzip {
		h.Set("Content-Encoding", "gzip")
		s.zip = gzip.NewWriter(s)
	} else if sized {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	s.c.served.Status = cmp.Or(a.status, http.StatusOK)
	s.WriteHeader(s.c.served.Status)
}

// Write implements io.Writer.
func (s *sender) Write(b []byte) (int, error) {
	n, err := s.ResponseWriter.Write(b)
	s.c.served.Bytes += int64(n)
	return n, err
}

func (s *sender) write(part []byte) {
	if s.zip == nil {
		_, s.err = s.Write(part)
	} else if _, s.err = s.zip.Write(part); s.err == nil && s.flushes {
		s.err = s.zip.Flush()
	}
	if s.err == nil && s.flushes {
		s.err = http.NewResponseController(s.ResponseWriter).Flush()
	}
}

func (s *sender) close() {
	if s.zip != nil && s.err == nil {
		s.err = s.zip.Close()
	}
}

// leave records the call and closes its connection without the end of the body.
func (c *call) leave(w http.ResponseWriter) {
	c.record()
	abort(w)
}

// abort closes the connection under a reply. Where it cannot be had, as in
// HTTP/2, the panic is how net/http is told to end the stream.
func abort(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	conn.Close()
}

// providerHeaders are what the real providers add to every reply.
var providerHeaders = map[format]map[string]string{
	formatAnthropic: {
		"anthropic-organization-id": "simulated", "anthropic-ratelimit-requests-limit": "1000", "anthropic-ratelimit-requests-remaining": "999",
	},
	formatOpenAI: {
		"openai-organization": "simulated", "openai-processing-ms": "1", "openai-version": "2020-10-01",
		"x-ratelimit-limit-requests": "1000", "x-ratelimit-remaining-requests": "999",
	},
}

// requestIDHeader is the header in which a format names its request.
var requestIDHeader = map[format]string{formatAnthropic: "request-id", formatOpenAI: "x-request-id", formatBedrock: "x-amzn-requestid"}

// requestID is the provider's name of the request.
func (c *call) requestID() string { return "req_sim" + strconv.FormatInt(c.served.Seq, 10) }

func (c *call) setProviderHeaders(h http.Header) {
	for name, value := range providerHeaders[c.format] {
		h.Set(name, value)
	}
	if name := requestIDHeader[c.format]; name != "" {
		h.Set(name, c.requestID())
	}
}
