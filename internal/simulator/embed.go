package simulator

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"math"
	"strings"
)

// maxDimensions bounds one vector; the largest real model has 3,072.
const (
	maxDimensions     = 4096
	defaultDimensions = 8
)

// dimensions is the length of the vectors asked for. The default is small, so
// that an answer can be read.
func dimensions(asked float64) int {
	if !(asked >= 1) {
		return defaultDimensions
	}
	return int(min(asked, maxDimensions))
}

// vector is a unit vector that depends on the text only.
func vector(text string, size int) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	state := h.Sum64() | 1
	v := make([]float32, size)
	sum := 0.0
	for i := range v {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		x := float64(int64(state)) / math.MaxInt64
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

// inputs is the texts to embed: one string, several, one token array or
// several.
func inputs(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{textOf(v)}
	}
	if len(list) > 0 {
		if _, ok := list[0].(float64); ok {
			return []string{string(encode(list))}
		}
	}
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = textOf(e)
		if texts[i] == "" {
			texts[i] = string(encode(e))
		}
	}
	return texts
}

func (c *call) embeddings() answer {
	size := dimensions(c.fields.number("dimensions"))
	var data []any
	for i, text := range inputs(c.fields["input"]) {
		v := vector(strings.TrimSpace(withoutDirectives(text)), size)
		e := object{"object": "embedding", "index": i, "embedding": v}
		if c.fields.text("encoding_format") == "base64" {
			var raw []byte
			for _, x := range v {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			e["embedding"] = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, e)
	}
	t := c.bill(tokens{input: c.prompt.words()})
	reply := object{"object": "list", "data": data, "model": c.served.Model}
	return c.reply(reply, "usage", object{"prompt_tokens": t.input, "total_tokens": t.input})
}

// moderations flags a text that contains the word violence; it shows how a
// client deals with a flag, not what is harmful.
func (c *call) moderations() answer {
	var results []any
	for _, text := range inputs(c.fields["input"]) {
		flagged := strings.Contains(strings.ToLower(text), "violence")
		categories, scores, types := object{}, object{}, object{}
		for _, name := range []string{"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent",
			"self-harm", "self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic"} {
			hit := flagged && name == "violence"
			categories[name], scores[name], types[name] = hit, 0.01, []string{"text"}
			if hit {
				scores[name] = 0.99
			}
		}
		results = append(results, object{"flagged": flagged, "categories": categories, "category_scores": scores, "category_applied_input_types": types})
	}
	return jsonAnswer(object{"id": c.id("modr-"), "model": c.served.Model, "results": results})
}
