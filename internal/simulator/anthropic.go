package simulator

import (
	"cmp"
	"maps"
)

// messages serves Anthropic's Messages API.
func (c *call) messages() answer {
	m := c.complete(c.fields.number("max_tokens"), 1)
	t, stop := m.tokens, m.finish("end_turn", "max_tokens", "tool_use")
	usage := object{
		"input_tokens": t.input, "output_tokens": t.output, "service_tier": cmp.Or(c.d.tier, "standard"),
		"cache_read_input_tokens": t.cached, "cache_creation_input_tokens": t.cacheWrite + t.cacheWrite1h,
		"cache_creation": object{"ephemeral_5m_input_tokens": t.cacheWrite, "ephemeral_1h_input_tokens": t.cacheWrite1h},
	}
	if t.reasoning > 0 {
		usage["output_tokens_details"] = object{"thinking_tokens": t.reasoning}
	}
	reply := object{"id": c.id("msg_"), "type": "message", "role": "assistant", "model": c.served.Model, "stop_sequence": nil}
	if c.fields.flag("stream") {
		return c.messageStream(m, reply, usage, stop)
	}
	block := object{"type": "text", "text": m.text()}
	if m.call != nil {
		block = c.toolUse(m, m.call.arguments)
	}
	reply["content"], reply["stop_reason"] = []object{block}, stop
	return c.reply(reply, "usage", usage)
}

// toolUse is the block of a tool call.
func (c *call) toolUse(m *completion, input object) object {
	return object{"type": "tool_use", "id": c.id("toolu_"), "name": m.call.name, "input": input}
}

// messageStream states the usage twice, as Anthropic does: of the input with
// one token of output in the first event, and cumulative in the last but one.
func (c *call) messageStream(m *completion, reply, usage object, stop string) answer {
	s := c.stream()
	s.fault = eventFrame("error", c.fault(529, toldToFail))
	first, last := maps.Clone(usage), maps.Clone(usage)
	first["output_tokens"] = 1
	delete(first, "output_tokens_details")
	delete(last, "cache_creation")
	delete(last, "service_tier")
	reply["content"], reply["stop_reason"] = []object{}, nil
	c.addUsage(reply, "usage", first)
	s.event("message_start", object{"message": reply})
	block, delta, member := object{"type": "text", "text": ""}, "text_delta", "text"
	if m.call != nil {
		block, delta, member = c.toolUse(m, object{}), "input_json_delta", "partial_json"
	}
	s.event("content_block_start", object{"index": 0, "content_block": block})
	s.event("ping", object{})
	for _, piece := range m.pieces {
		s.event("content_block_delta", object{"index": 0, "delta": object{"type": delta, member: piece}})
	}
	s.event("content_block_stop", object{"index": 0})
	end := object{"delta": object{"stop_reason": stop, "stop_sequence": nil}}
	s.stateUsage(c.addUsage(end, "usage", last))
	s.event("message_delta", end)
	s.event("message_stop", object{})
	return s.answer
}

// countTokens serves the count of a prompt's tokens, which costs nothing.
func (c *call) countTokens() answer {
	return c.reply(object{}, "input_tokens", c.bill(tokens{input: c.prompt.words()}).input)
}
