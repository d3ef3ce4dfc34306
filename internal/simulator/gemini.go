package simulator

import (
	"bytes"
	"net/http"
	"strings"
)

// gemini serves POST …/models/{model}:{method}.
func (c *call) gemini() answer {
	model, method, _ := strings.Cut(c.arg, ":")
	c.served.Model = model
	switch method {
	case "generateContent", "streamGenerateContent":
		m := c.complete(c.fields.object("generationConfig").number("maxOutputTokens"), 1)
		if method == "streamGenerateContent" {
			return c.geminiStream(m)
		}
		return c.reply(c.candidate(m.part(m.text()), m.finish("STOP", "MAX_TOKENS", "STOP")), "usageMetadata", geminiUsage(m.tokens))
	case "embedContent":
		c.bill(tokens{input: c.prompt.words()})
		size := dimensions(c.fields.number("outputDimensionality"))
		return jsonAnswer(object{"embedding": object{"values": vector(strings.Join(c.prompt.texts, " "), size)}})
	case "countTokens":
		return c.reply(object{}, "totalTokens", c.bill(tokens{input: c.prompt.words()}).input)
	}
	return c.fail(http.StatusNotFound, "the simulator does not know the method "+method)
}

// part is a text, or in its place the call of a tool, which comes in one piece.
func (m *completion) part(text string) object {
	if m.call != nil {
		return object{"functionCall": object{"name": m.call.name, "args": m.call.arguments}}
	}
	return object{"text": text}
}

// candidate is a GenerateContentResponse; finish is "" in all but the last of a
// stream.
func (c *call) candidate(part object, finish string) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": []object{part}}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return object{"candidates": []object{candidate}, "modelVersion": c.served.Model, "responseId": c.id("")}
}

// geminiUsage keeps thoughts apart from the candidates, as Gemini does.
func geminiUsage(t tokens) object {
	u := object{
		"promptTokenCount": t.prompt(), "candidatesTokenCount": t.output - t.reasoning, "totalTokenCount": t.total(),
		"promptTokensDetails": []object{{"modality": "TEXT", "tokenCount": t.prompt()}},
	}
	if t.cached > 0 {
		u["cachedContentTokenCount"] = t.cached
	}
	if t.reasoning > 0 {
		u["thoughtsTokenCount"] = t.reasoning
	}
	return u
}

// geminiStream states the usage in every chunk, cumulative. Without alt=sse the
// stream is a JSON array.
func (c *call) geminiStream(m *completion) answer {
	pieces := m.pieces
	if len(pieces) == 0 || m.call != nil {
		pieces = []string{""}
	}
	s := c.stream()
	fault := c.fault(http.StatusServiceUnavailable, toldToFail)
	s.fault = dataFrame(fault)
	array := c.r.URL.Query().Get("alt") != "sse"
	written := int64(0)
	for i, piece := range pieces {
		soFar, finish := m.tokens, ""
		written += int64(len(strings.Fields(piece)))
		soFar.output = min(m.tokens.output, written+m.tokens.reasoning)
		if i == len(pieces)-1 {
			soFar, finish = m.tokens, m.finish("STOP", "MAX_TOKENS", "STOP")
		}
		reply := c.candidate(m.part(piece), finish)
		s.stateUsage(c.addUsage(reply, "usageMetadata", geminiUsage(soFar)))
		if array {
			s.frames = append(s.frames, append([]byte(",\n"), encode(reply)...))
		} else {
			s.data(reply)
		}
	}
	if array {
		s.kind, s.fault = "application/json", bytes.Join([][]byte{[]byte(",\n"), encode(fault), []byte("]")}, nil)
		s.frames[0] = append([]byte("["), bytes.TrimPrefix(s.frames[0], []byte(",\n"))...)
		s.frames[len(pieces)-1] = append(s.frames[len(pieces)-1], ']')
	}
	return s.answer
}
