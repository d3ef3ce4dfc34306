package simulator

import (
	"bytes"
	"net/http"
	"strings"
)

// gemini serves POST …/models/{model}:{method}.
func (p *Provider) gemini(c *call) answer {
	model, method, _ := strings.Cut(c.arg, ":")
	c.served.Model = model
	switch method {
	case "generateContent":
		return p.generateContent(c)
	case "streamGenerateContent":
		return p.streamGenerateContent(c)
	case "embedContent":
		c.plain(c.prompt.words(), 0)
		size := dimensions(c.fields.number("outputDimensionality"))
		return jsonAnswer(object{"embedding": object{"values": vector(strings.Join(c.prompt.texts, " "), size)}})
	case "countTokens":
		t := c.plain(c.prompt.words(), 0)
		return jsonAnswer(object{"totalTokens": t.input}).withUsage(c)
	}
	return c.fail(http.StatusNotFound, "the simulator does not know the method "+method)
}

// geminiUsage keeps thoughts apart from the candidates, as Gemini does.
func geminiUsage(t tokens) object {
	u := object{
		"promptTokenCount": t.prompt(), "candidatesTokenCount": t.output - t.reasoning, "totalTokenCount": t.total(),
		"promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": t.prompt()}},
	}
	if t.cached > 0 {
		u["cachedContentTokenCount"] = t.cached
	}
	if t.reasoning > 0 {
		u["thoughtsTokenCount"] = t.reasoning
	}
	return u
}

// geminiReply is one GenerateContentResponse; finish is "" but in the last.
func (p *Provider) geminiReply(c *call, text, finish string, t tokens) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": []any{object{"text": text}}}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	reply := object{"candidates": []any{candidate}, "modelVersion": c.served.Model, "responseId": p.id(c, "")}
	if u := c.usageJSON(geminiUsage(t)); u != nil {
		reply["usageMetadata"] = u
	}
	return reply
}

func (p *Provider) generateContent(c *call) answer {
	words, finish := c.geminiWords()
	t := c.count(int64(len(words)))
	return jsonAnswer(p.geminiReply(c, strings.Join(words, " "), finish, t)).withUsage(c)
}

func (c *call) geminiWords() (words []string, finish string) {
	words, cut := c.answerWords(int(c.fields.object("generationConfig").number("maxOutputTokens")))
	if cut {
		return words, "MAX_TOKENS"
	}
	return words, "STOP"
}

// streamGenerateContent states usage in every chunk, cumulative. Without
// alt=sse the stream is a JSON array.
func (p *Provider) streamGenerateContent(c *call) answer {
	words, finish := c.geminiWords()
	t := c.count(int64(len(words)))
	pieces := c.pieces(words)
	if len(pieces) == 0 {
		pieces = []string{""}
	}
	sse := c.r.URL.Query().Get("alt") == "sse"
	var frames [][]byte
	written := int64(0)
	for i, piece := range pieces {
		soFar, reason := t, ""
		written += int64(len(strings.Fields(piece)))
		soFar.output = min(t.output, written+t.reasoning)
		if i == len(pieces)-1 {
			soFar, reason = t, finish
		}
		reply := p.geminiReply(c, piece, reason, soFar)
		if sse {
			frames = append(frames, dataFrame(reply))
		} else {
			frames = append(frames, encode(reply))
		}
	}
	a := answer{kind: eventStream, frames: frames, fault: dataFrame(c.fault(http.StatusServiceUnavailable, "The simulator was told to fail here."))}
	if !sse {
		a.kind = "application/json"
		a.frames = arrayFrames(frames)
		a.fault = append([]byte(",\n"), append(encode(c.fault(http.StatusServiceUnavailable, "The simulator was told to fail here.")), ']')...)
	}
	if !c.d.noUsage && !c.d.usageNull {
		a.usage = len(a.frames)
	}
	return a
}

// arrayFrames puts the punctuation of a JSON array around its elements.
func arrayFrames(elements [][]byte) [][]byte {
	frames := make([][]byte, len(elements))
	for i, e := range elements {
		before := ",\n"
		if i == 0 {
			before = "["
		}
		frames[i] = append([]byte(before), e...)
	}
	frames[len(frames)-1] = bytes.Join([][]byte{frames[len(frames)-1], []byte("]")}, nil)
	return frames
}

func geminiModel(id string) object {
	return object{
		"name": "models/" + id, "version": "1", "displayName": id, "inputTokenLimit": 1048576, "outputTokenLimit": 65536,
		"supportedGenerationMethods": []string{"generateContent", "countTokens", "embedContent"},
	}
}

func (p *Provider) geminiModels(*call) answer {
	models := make([]object, len(p.opts.Models))
	for i, id := range p.opts.Models {
		models[i] = geminiModel(id)
	}
	return jsonAnswer(object{"models": models})
}

func (p *Provider) geminiModel(c *call) answer {
	return jsonAnswer(geminiModel(c.arg))
}
