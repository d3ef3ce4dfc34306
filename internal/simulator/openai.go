package simulator

import (
	"cmp"
	"maps"
)

// chat serves chat completions.
func (c *call) chat() answer {
	m := c.complete(cmp.Or(c.fields.number("max_completion_tokens"), c.fields.number("max_tokens")), c.fields.count("n", maxChoices))
	message := object{"role": "assistant", "content": m.text(), "refusal": nil}
	chunks := []object{{"delta": object{"role": "assistant", "content": ""}}}
	if m.call != nil {
		message["content"], message["tool_calls"] = nil, []object{c.chatTool(m, m.text())}
		begin := c.chatTool(m, "")
		begin["index"] = 0
		chunks[0] = object{"delta": object{"role": "assistant", "content": nil, "tool_calls": []object{begin}}}
	}
	for _, piece := range m.pieces {
		delta := object{"content": piece}
		if m.call != nil {
			delta = object{"tool_calls": []object{{"index": 0, "function": object{"arguments": piece}}}}
		}
		chunks = append(chunks, object{"delta": delta})
	}
	return c.choices(m, choiceFormat{
		prefix: "chatcmpl-", object: "chat.completion", chunk: "chat.completion.chunk",
		whole: object{"message": message}, chunks: append(chunks, object{"delta": object{}}),
	})
}

// chatTool is a tool call with its arguments, as far as they have come.
func (c *call) chatTool(m *completion, arguments string) object {
	return object{"id": c.id("call_"), "type": "function", "function": object{"name": m.call.name, "arguments": arguments}}
}

// completions serves the older API, in which a choice is a text.
func (c *call) completions() answer {
	m := c.complete(c.fields.number("max_tokens"), c.fields.count("n", maxChoices))
	var chunks []object
	for _, piece := range append(m.pieces, "") {
		chunks = append(chunks, object{"text": piece})
	}
	return c.choices(m, choiceFormat{
		prefix: "cmpl-", object: "text_completion", chunk: "text_completion",
		whole: object{"text": m.text()}, chunks: chunks,
	})
}

// choiceFormat is how one of the two APIs writes a choice.
type choiceFormat struct {
	prefix        string // of the id
	object, chunk string // type of the whole reply and of a part of its stream
	whole         object // the choice's members that depend on the API
	chunks        []object
}

// choices writes a completion with its choices. A stream has each chunk once
// for every choice, the last with the reason for the end, then the usage in a
// chunk of its own where the request asks for it, then the end mark.
func (c *call) choices(m *completion, f choiceFormat) answer {
	reply := object{
		"id": c.id(f.prefix), "object": f.object, "created": c.now().Unix(), "model": c.served.Model,
		"service_tier": c.tier(), "system_fingerprint": "fp_simulated",
	}
	choice := func(index int, content object, finish any) object {
		o := object{"index": index, "logprobs": nil, "finish_reason": finish}
		maps.Copy(o, content)
		return o
	}
	finish := m.finish("stop", "length", "tool_calls")
	if !c.fields.flag("stream") {
		var list []object
		for i := range m.choices {
			list = append(list, choice(i, f.whole, finish))
		}
		reply["choices"] = list
		return c.reply(reply, "usage", chatUsage(m.tokens))
	}
	s := c.stream()
	reply["object"] = f.chunk
	included := c.fields.object("stream_options").flag("include_usage") && !c.d.noUsage
	if included {
		reply["usage"] = nil
	}
	for at, chunk := range f.chunks {
		var reason any
		if at == len(f.chunks)-1 {
			reason = finish
		}
		for i := range m.choices {
			reply["choices"] = []object{choice(i, chunk, reason)}
			s.data(reply)
		}
	}
	if included {
		reply["choices"] = []object{}
		s.stateUsage(c.addUsage(reply, "usage", chatUsage(m.tokens)))
		s.data(reply)
	}
	s.frames = append(s.frames, []byte("data: [DONE]\n\n"))
	return s.answer
}

func chatUsage(t tokens) object {
	return object{
		"prompt_tokens": t.prompt(), "completion_tokens": t.output, "total_tokens": t.total(),
		"prompt_tokens_details": object{"cached_tokens": t.cached, "cache_write_tokens": t.cacheWrite, "audio_tokens": 0},
		"completion_tokens_details": object{
			"reasoning_tokens": t.reasoning, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
		},
	}
}
