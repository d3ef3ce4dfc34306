package simulator

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"modelgate/internal/cancelctx"
)

// answer is a reply before it is sent.
type answer struct {
	status int // 0 means 200
	header http.Header
	kind   string // Content-Type
	body   []byte
	frames [][]byte // of a stream, in place of body
	usage  int      // 1 + index of the frame that states usage; 1 for a body that does; 0: none does
	fault  []byte   // the frame that states an error in the stream
}

// jsonAnswer is the answer whose body is v.
func jsonAnswer(v any) answer {
	return answer{kind: "application/json", body: encode(v)}
}

// withUsage marks a body as one that states usage.
func (a answer) withUsage(c *call) answer {
	if !c.d.noUsage && !c.d.usageNull {
		a.usage = 1
	}
	return a
}

// encode is the JSON of a value of this package; none of them can fail.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":{"message":` + strconv.Quote(err.Error()) + `}}`)
	}
	return b
}

// usageJSON is how the directives want a usage object stated; nil leaves it out.
func (c *call) usageJSON(v any) json.RawMessage {
	switch {
	case c.d.noUsage:
		return nil
	case c.d.usageNull:
		return json.RawMessage("null")
	}
	return encode(v)
}

// dataFrame is an event without a name; eventFrame is one with.
func dataFrame(v any) []byte {
	return fmt.Appendf(nil, "data: %s\n\n", encode(v))
}

func eventFrame(name string, v any) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, encode(v))
}

const eventStream = "text/event-stream; charset=utf-8"

// send writes the answer as the directives want it, and records the call.
func (p *Provider) send(w http.ResponseWriter, c *call, a answer) {
	ctx := c.r.Context()
	if cancelctx.Sleep(ctx, c.d.delay) != nil {
		p.record(c)
		return
	}
	if c.d.hang == 0 {
		<-ctx.Done()
		p.record(c)
		return
	}
	if c.d.cut == 0 {
		p.record(c)
		abort(w)
		return
	}
	parts, cut, hang := a.plan(c.d)
	s := &sender{w: w, out: w, c: c}
	s.open(a, cut > 0 && len(a.frames) == 0)
	for i, part := range parts {
		if i == hang {
			<-ctx.Done()
		}
		if i == cut || ctx.Err() != nil || (i > 0 && cancelctx.Sleep(ctx, c.d.gap) != nil) {
			s.leave(p)
			return
		}
		if !s.write(part, len(parts) > 1 || a.frames != nil) {
			break
		}
		if a.frames != nil {
			c.served.Chunks++
		}
		if i+1 == a.usage {
			c.served.Usage = true
		}
	}
	if cut == len(parts) || hang == len(parts) {
		if hang == len(parts) {
			<-ctx.Done()
		}
		s.leave(p)
		return
	}
	s.close()
	c.served.Complete = s.err == nil && ctx.Err() == nil
	p.record(c)
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
	if !d.errorInStream || a.fault == nil {
		return a.frames, d.cut, d.hang
	}
	at := len(a.frames) / 2
	if d.errorAt >= 0 {
		at = min(d.errorAt, len(a.frames))
	}
	if a.usage > at {
		a.usage = 0
	}
	return append(slices.Clone(a.frames[:at]), a.fault), d.cut, d.hang
}

// sender writes one reply and keeps count.
type sender struct {
	w   http.ResponseWriter
	out io.Writer
	zip *gzip.Writer
	c   *call
	err error
}

func (s *sender) open(a answer, sized bool) {
	h := s.w.Header()
	s.c.providerHeaders(h)
	for name, values := range a.header {
		h[name] = values
	}
	if a.kind != "" {
		h.Set("Content-Type", a.kind)
	}
	if a.frames != nil {
		h.Set("Cache-Control", "no-cache")
	}
	if s.c.d.retryAfter >= 0 {
		h.Set("Retry-After", strconv.Itoa(s.c.d.retryAfter))
	}
	if s.c.d.gzip {
		h.Set("Content-Encoding", "gzip")
		s.zip = gzip.NewWriter(counting{s})
		s.out = s.zip
	} else {
		s.out = counting{s}
		if sized {
			h.Set("Content-Length", strconv.Itoa(len(a.body)))
		}
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	s.c.served.Status = a.status
	s.w.WriteHeader(a.status)
}

// counting writes to the connection and counts what it took.
type counting struct{ s *sender }

func (w counting) Write(b []byte) (int, error) {
	n, err := w.s.w.Write(b)
	w.s.c.served.Bytes += int64(n)
	return n, err
}

func (s *sender) write(part []byte, flush bool) bool {
	_, s.err = s.out.Write(part)
	if s.err == nil && flush {
		if s.zip != nil {
			s.err = s.zip.Flush()
		}
		if s.err == nil {
			s.err = http.NewResponseController(s.w).Flush()
		}
	}
	return s.err == nil
}

func (s *sender) close() {
	if s.zip != nil && s.err == nil {
		s.err = s.zip.Close()
	}
}

// leave records the call and closes its connection without the end of the body.
func (s *sender) leave(p *Provider) {
	p.record(s.c)
	abort(s.w)
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

// providerHeaders is what the real provider adds to every reply.
func (c *call) providerHeaders(h http.Header) {
	id := "req_sim" + strconv.FormatInt(c.served.Seq, 10)
	if c.format == formatAnthropic {
		h.Set("request-id", id)
		h.Set("anthropic-organization-id", "simulated")
		h.Set("anthropic-ratelimit-requests-limit", "1000")
		h.Set("anthropic-ratelimit-requests-remaining", "999")
		return
	}
	if c.format == formatOpenAI {
		h.Set("x-request-id", id)
		h.Set("openai-organization", "simulated")
		h.Set("openai-processing-ms", "1")
		h.Set("openai-version", "2020-10-01")
		h.Set("x-ratelimit-limit-requests", "1000")
		h.Set("x-ratelimit-remaining-requests", "999")
	}
}

// capitalized is the first letter in upper case, as error messages begin.
func capitalized(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
