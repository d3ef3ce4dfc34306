package simulator

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// converse serves Bedrock's Converse and ConverseStream.
func (c *call) converse() answer {
	c.served.Model = c.arg
	m := c.complete(c.fields.object("inferenceConfig").number("maxTokens"), 1)
	stop := m.finish("end_turn", "max_tokens", "tool_use")
	if strings.HasSuffix(c.r.URL.Path, "-stream") {
		return c.converseStream(m, stop)
	}
	block := object{"text": m.text()}
	if m.call != nil {
		block = object{"toolUse": object{"toolUseId": c.id("tooluse_"), "name": m.call.name, "input": m.call.arguments}}
	}
	reply := object{"output": object{"message": object{"role": "assistant", "content": []object{block}}}, "stopReason": stop, "metrics": converseMetrics()}
	return c.reply(reply, "usage", converseUsage(m.tokens))
}

func converseMetrics() object { return object{"latencyMs": 5} }

// converseUsage keeps what was read from a cache and written to it apart from the
// input, as Bedrock does.
func converseUsage(t tokens) object {
	usage := object{
		"inputTokens": t.input, "outputTokens": t.output, "totalTokens": t.total(),
		"cacheReadInputTokens": t.cached, "cacheWriteInputTokens": t.cacheWrite + t.cacheWrite1h,
	}
	if t.cacheWrite1h > 0 {
		usage["cacheDetails"] = []object{{"ttl": "5m", "inputTokens": t.cacheWrite}, {"ttl": "1h", "inputTokens": t.cacheWrite1h}}
	}
	return usage
}

// converseStream states the usage in its last message.
func (c *call) converseStream(m *completion, stop string) answer {
	s := c.messageFrames()
	s.message("messageStart", object{"role": "assistant"})
	if m.call != nil {
		s.message("contentBlockStart", object{"contentBlockIndex": 0, "start": object{"toolUse": object{"toolUseId": c.id("tooluse_"), "name": m.call.name}}})
	}
	for _, piece := range m.pieces {
		delta := object{"text": piece}
		if m.call != nil {
			delta = object{"toolUse": object{"input": piece}}
		}
		s.message("contentBlockDelta", object{"contentBlockIndex": 0, "delta": delta, "p": "abcdefgh"})
	}
	s.message("contentBlockStop", object{"contentBlockIndex": 0})
	s.message("messageStop", object{"stopReason": stop})
	last := object{"metrics": converseMetrics()}
	s.stateUsage(c.addUsage(last, "usage", converseUsage(m.tokens)))
	s.message("metadata", last)
	return s.answer
}

// invoke serves InvokeModel and InvokeModelWithResponseStream for models of
// Anthropic's, whose own replies they carry.
func (c *call) invoke() answer {
	c.served.Model = c.arg
	c.fields["stream"] = strings.HasSuffix(c.r.URL.Path, "-stream")
	a := c.messages()
	if a.frames == nil {
		return a
	}
	s := c.messageFrames()
	for _, frame := range a.frames {
		_, data, _ := bytes.Cut(frame, []byte("data: "))
		s.message("chunk", object{"bytes": base64.StdEncoding.EncodeToString(bytes.TrimSpace(data)), "p": "abcdefgh"})
	}
	s.usage = a.usage
	return s.answer
}

// bedrockTokens serves CountTokens, which costs nothing.
func (c *call) bedrockTokens() answer {
	c.served.Model = c.arg
	return c.reply(object{}, "inputTokens", c.bill(tokens{input: c.prompt.words()}).input)
}

// messageFrames begins an empty stream of Amazon's binary messages.
func (c *call) messageFrames() *stream {
	return &stream{answer: answer{kind: "application/vnd.amazon.eventstream", fault: amazonMessage("exception", "internalServerException", object{"message": toldToFail})}}
}

// message adds a message with an event of a type.
func (s *stream) message(name string, payload object) {
	s.frames = append(s.frames, amazonMessage("event", name, payload))
}
