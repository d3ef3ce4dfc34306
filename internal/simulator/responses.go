package simulator

import "maps"

// responses serves OpenAI's Responses API: one message, or its stream of
// numbered events.
func (c *call) responses() answer {
	m := c.complete(c.fields.number("max_output_tokens"), 1)
	open := object{
		"id": c.id("resp_"), "object": "response", "created_at": c.now().Unix(), "model": c.served.Model, "service_tier": c.tier(),
		"status": "in_progress", "error": nil, "incomplete_details": nil, "usage": nil, "instructions": c.fields["instructions"],
		"output": []any{}, "tools": []any{}, "tool_choice": "auto", "parallel_tool_calls": true, "metadata": object{},
	}
	done := maps.Clone(open)
	done["status"] = m.finish("completed", "incomplete")
	if m.cut {
		done["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	item := responseItem{c.id("msg_"), m.text()}
	done["output"] = []any{item.object("completed", item.part(item.text))}
	delete(done, "usage")
	t := m.tokens
	usage := object{
		"input_tokens": t.prompt(), "input_tokens_details": object{"cached_tokens": t.cached, "cache_write_tokens": t.cacheWrite},
		"output_tokens": t.output, "output_tokens_details": object{"reasoning_tokens": t.reasoning}, "total_tokens": t.total(),
	}
	if !c.fields.flag("stream") {
		return c.reply(done, "usage", usage)
	}
	s := c.stream()
	s.numbered = true
	s.event("response.created", object{"response": open})
	s.event("response.in_progress", object{"response": open})
	item.stream(s, m.pieces)
	s.stateUsage(c.addUsage(done, "usage", usage))
	s.event("response."+done["status"].(string), object{"response": done})
	s.fault = eventFrame("error", object{
		"type": "error", "code": "server_error", "message": toldToFail, "param": nil, "sequence_number": len(s.frames),
	})
	return s.answer
}

// responseItem is the message of a response.
type responseItem struct{ id, text string }

func (i responseItem) object(status string, content ...object) object {
	if content == nil {
		content = []object{}
	}
	return object{"id": i.id, "type": "message", "status": status, "role": "assistant", "content": content}
}

func (i responseItem) part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// stream adds the events of the item, from its announcement to its end.
func (i responseItem) stream(s *stream, pieces []string) {
	at := func(name string, o object) {
		o["item_id"], o["output_index"], o["content_index"] = i.id, 0, 0
		s.event(name, o)
	}
	s.event("response.output_item.added", object{"output_index": 0, "item": i.object("in_progress")})
	at("response.content_part.added", object{"part": i.part("")})
	for _, piece := range pieces {
		at("response.output_text.delta", object{"delta": piece, "logprobs": []any{}})
	}
	at("response.output_text.done", object{"text": i.text, "logprobs": []any{}})
	at("response.content_part.done", object{"part": i.part(i.text)})
	s.event("response.output_item.done", object{"output_index": 0, "item": i.object("completed", i.part(i.text))})
}
