package simulator

import (
	"maps"
	"strings"
)

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
	done["status"] = m.finish("completed", "incomplete", "completed")
	if m.cut {
		done["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	item := c.responseItem(m)
	done["output"] = []any{item.whole}
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

// responseItem is the one item of a response, a message or a call of a tool,
// and how a stream of it is written.
type responseItem struct {
	id           string
	begun, whole object // at its announcement and at its end
	part         object // of a message, without text; nil for a call
	kind, member string // of the events that hold its text, and of the text in the last of them
	extra        object // other members of those events
}

func (c *call) responseItem(m *completion) responseItem {
	if m.call != nil {
		begun := object{
			"id": c.id("fc_"), "type": "function_call", "status": "in_progress",
			"call_id": c.id("call_"), "name": m.call.name, "arguments": "",
		}
		whole := with(begun, object{"status": "completed", "arguments": m.text()})
		return responseItem{c.id("fc_"), begun, whole, nil, "function_call_arguments", "arguments", object{"name": m.call.name}}
	}
	begun := object{"id": c.id("msg_"), "type": "message", "status": "in_progress", "role": "assistant", "content": []object{}}
	part := object{"type": "output_text", "text": "", "annotations": []any{}, "logprobs": []any{}}
	whole := with(begun, object{"status": "completed", "content": []object{with(part, object{"text": m.text()})}})
	return responseItem{c.id("msg_"), begun, whole, part, "output_text", "text", object{"logprobs": []any{}}}
}

// with is a copy of an object with other members.
func with(o, members object) object {
	o = maps.Clone(o)
	maps.Copy(o, members)
	return o
}

// stream adds the events of the item, from its announcement to its end.
func (i responseItem) stream(s *stream, pieces []string) {
	text := strings.Join(pieces, "")
	at := func(name string, o object) {
		o["item_id"], o["output_index"] = i.id, 0
		if i.part != nil {
			o["content_index"] = 0
		}
		s.event(name, o)
	}
	s.event("response.output_item.added", object{"output_index": 0, "item": i.begun})
	if i.part != nil {
		at("response.content_part.added", object{"part": i.part})
	}
	for _, piece := range pieces {
		at("response."+i.kind+".delta", with(i.extra, object{"delta": piece}))
	}
	at("response."+i.kind+".done", with(i.extra, object{i.member: text}))
	if i.part != nil {
		at("response.content_part.done", object{"part": with(i.part, object{"text": text})})
	}
	s.event("response.output_item.done", object{"output_index": 0, "item": i.whole})
}
