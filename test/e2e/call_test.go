package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// call is one request and what its caller saw of the answer.
type call struct {
	mark   int
	stream bool
	format string // openai, anthropic or bedrock
	body   string
	// leaveAfter is how many lines of a stream the caller reads before it
	// hangs up, -1 to read all of it. 0 is right after the request.
	leaveAfter int

	sent   bool // bytes of it may have reached the gateway
	status int  // 0: no status line came
	whole  bool // the answer came to its end, or to a stream's last event
	left   bool // the caller hung up
	err    error
	took   time.Duration
	// refusal is the body of an answer that is not a success.
	refusal string
}

// mix says what calls look like.
type mix struct {
	// leaving is the share of all calls whose caller hangs up mid-stream.
	leaving float64
	// slow is the share of streams that take a millisecond a word.
	slow float64
	// directives go into every prompt.
	directives string
	// only is what all calls are; "" is both.
	only shape
	// frames says that all calls are to ConverseStream and take a millisecond a
	// word. Their callers do not leave.
	frames bool
}

// shape is how an answer comes.
type shape string

const (
	whole    shape = "whole"
	streamed shape = "streamed"
)

// newCall makes the call with a mark; equal marks give equal calls.
func newCall(mark int, m mix) *call {
	random := rand.New(rand.NewPCG(7, uint64(mark)))
	c := &call{mark: mark, format: "openai", stream: random.IntN(2) == 0, leaveAfter: -1}
	share := 2 * m.leaving
	if m.only != "" {
		c.stream = m.only == streamed
		share = m.leaving
	}
	if random.IntN(3) == 0 {
		c.format = "anthropic"
	}
	if m.frames {
		c.format, c.stream, m.slow = "bedrock", true, 1
	}
	words := 1 + random.IntN(24)
	text := fmt.Sprintf("[[mark=%d]] [[words=%d]]%s", mark, words, m.directives)
	if random.IntN(4) == 0 {
		text += fmt.Sprintf(" [[cached=%d]]", 1+random.IntN(50))
	}
	leaves := c.stream && random.Float64() < share
	if leaves {
		c.leaveAfter = random.IntN(2 * words)
	}
	if c.stream && (leaves || random.Float64() < m.slow) {
		text += " [[gap=1ms]]"
	}
	text += strings.Repeat(" filler", random.IntN(40))
	model, extra := "openai/gpt-5-mini", ""
	if c.format == "anthropic" {
		model, extra = "anthropic/claude-haiku-4.5", `"max_tokens":1000,`
	}
	if m.frames {
		c.body = fmt.Sprintf(`{"messages":[{"role":"user","content":[{"text":%q}]}],"inferenceConfig":{"maxTokens":1000}}`, text)
		return c
	}
	c.body = fmt.Sprintf(`{"model":%q,%s"stream":%t,"messages":[{"role":"user","content":%q}]}`, model, extra, c.stream, text)
	return c
}

func (c *call) path() string {
	switch c.format {
	case "anthropic":
		return "/v1/messages"
	case "bedrock":
		return "/bedrock/model/eu.anthropic.claude-haiku-4-5-v1%3A0/converse-stream"
	}
	return "/v1/chat/completions"
}

// answered reports whether the caller holds a complete good answer.
func (c *call) answered() bool { return c.whole && c.status == http.StatusOK }

// failed reports whether the call did not do what its caller wanted.
func (c *call) failed() bool { return !c.left && !c.answered() }

// patience bounds a whole call.
const patience = 60 * time.Second

// do makes the call on a connection and reports whether that can be used
// again.
func (c *call) do(conn net.Conn, r *bufio.Reader, key string) (reusable bool) {
	began := time.Now()
	defer func() { c.took = time.Since(began) }()
	if c.err = conn.SetDeadline(began.Add(patience)); c.err != nil {
		return false
	}
	c.sent = true
	_, c.err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"X-Gateway-Attribution: n=%d\r\nContent-Length: %d\r\n\r\n%s", c.path(), key, c.mark, len(c.body), c.body)
	if c.err != nil {
		return false
	}
	if c.leaveAfter == 0 {
		c.left = true
		return false
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		c.err = err
		return false
	}
	c.status = resp.StatusCode
	if c.stream && resp.StatusCode == http.StatusOK {
		return c.readStream(resp) && !resp.Close
	}
	if resp.StatusCode == http.StatusOK {
		_, c.err = io.Copy(io.Discard, resp.Body)
	} else {
		var body []byte
		body, c.err = io.ReadAll(resp.Body)
		c.refusal = string(body)
	}
	c.whole = c.err == nil
	return c.whole && !resp.Close
}

// readStream reads events until the end, or until the caller leaves. An
// answer is whole once its last event is there.
func (c *call) readStream(resp *http.Response) (reusable bool) {
	if c.format == "bedrock" {
		var text []byte
		text, c.err = io.ReadAll(resp.Body)
		c.whole = bytes.Contains(text, []byte(`{"metrics":{"latencyMs":5},"usage":{`))
		return c.whole && c.err == nil
	}
	lines := bufio.NewReader(resp.Body)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if bytes.HasPrefix(line, []byte("data: [DONE]")) || bytes.HasPrefix(line, []byte(`data: {"type":"message_stop"`)) {
			c.whole = true
		}
		switch {
		case errors.Is(err, io.EOF):
			if !c.whole {
				c.err = errors.New("the stream ended without its last event")
			}
			return c.whole
		case err != nil:
			c.err = err
			return false
		case n == c.leaveAfter:
			c.left = true
			return false
		}
	}
}
