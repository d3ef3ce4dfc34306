package simulator

// cohereChat serves version 2 of Cohere's chat.
func (c *call) cohereChat() answer {
	m := c.complete(c.fields.number("max_tokens"), 1)
	reason := m.finish("COMPLETE", "MAX_TOKENS", "TOOL_CALL")
	if c.fields.flag("stream") {
		return c.cohereStream(m, reason)
	}
	message := object{"role": "assistant"}
	if m.call != nil {
		message["tool_calls"] = []object{c.chatTool(m, m.text())}
	} else {
		message["content"] = []object{{"type": "text", "text": m.text()}}
	}
	return c.reply(object{"id": c.id(""), "message": message, "finish_reason": reason}, "usage", cohereUsage(m.tokens))
}

// cohereStream states the usage in its last event, as Cohere does.
func (c *call) cohereStream(m *completion, reason string) answer {
	s := c.stream()
	s.fault = eventFrame("message-end", object{"type": "message-end", "delta": object{"finish_reason": "ERROR", "error": toldToFail}})
	send := func(event string, message object) {
		s.event(event, object{"index": 0, "delta": object{"message": message}})
	}
	s.event("message-start", object{"id": c.id(""), "delta": object{"message": object{"role": "assistant"}}})
	if m.call != nil {
		send("tool-call-start", object{"tool_calls": c.chatTool(m, "")})
		for _, piece := range m.pieces {
			send("tool-call-delta", object{"tool_calls": object{"function": object{"arguments": piece}}})
		}
		s.event("tool-call-end", object{"index": 0})
	} else {
		send("content-start", object{"content": object{"type": "text", "text": ""}})
		for _, piece := range m.pieces {
			send("content-delta", object{"content": object{"text": piece}})
		}
		s.event("content-end", object{"index": 0})
	}
	end := object{"finish_reason": reason}
	s.stateUsage(c.addUsage(end, "usage", cohereUsage(m.tokens)))
	s.event("message-end", object{"delta": end})
	s.frames = append(s.frames, []byte("data: [DONE]\n\n"))
	return s.answer
}

// cohereUsage has what is billed beside what was counted, which here are the same.
func cohereUsage(t tokens) object {
	counted := object{"input_tokens": t.prompt(), "output_tokens": t.output}
	return object{"billed_units": counted, "tokens": counted}
}
