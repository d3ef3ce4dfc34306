package provider

import "github.com/tidwall/gjson"

// readGemini reads generateContent and its kin, streamed as events or as an
// array. The prompt counts cached tokens; thoughts and tool prompts stand
// beside the sums. Every chunk may carry running totals.
var readGemini = &Reader{name: "generate content", members: quoted("usageMetadata", "usage"), read: gemini}

// readPredictions counts the pictures of a predict call.
var readPredictions = &Reader{name: "predictions", members: quoted("usageMetadata"), read: images, finish: picture}

func gemini(r *reading, doc []byte) {
	meta := gjson.GetBytes(doc, "usageMetadata")
	if !meta.IsObject() {
		return
	}
	var prompt, cached, candidates, thoughts, tools, audioIn, audioCached, audioOut int64
	meta.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "promptTokenCount":
			r.read = r.set(&prompt, v) || r.read
		case "cachedContentTokenCount":
			r.set(&cached, v)
		case "candidatesTokenCount", "responseTokenCount":
			r.read = r.set(&candidates, v) || r.read
		case "thoughtsTokenCount":
			r.set(&thoughts, v)
		case "toolUsePromptTokenCount":
			r.set(&tools, v)
		case "promptTokensDetails", "toolUsePromptTokensDetails":
			audioIn += r.modality(v)
		case "cacheTokensDetails":
			audioCached += r.modality(v)
		case "candidatesTokensDetails", "responseTokensDetails":
			audioOut += r.modality(v)
		}
		return true
	})
	r.split(&sums{
		prompt: prompt + tools, completion: candidates + thoughts,
		cached: cached, audioIn: audioIn, cachedAudio: audioCached, audioOut: audioOut,
	})
	r.candidates(gjson.GetBytes(doc, "candidates"))
}

// modality sums the audio tokens of a list by modality.
func (r *reading) modality(list gjson.Result) int64 {
	var sum int64
	list.ForEach(func(_, v gjson.Result) bool {
		var n int64
		if v.Get("modality").Str == "AUDIO" && r.set(&n, v.Get("tokenCount")) {
			sum += n
		}
		return true
	})
	return sum
}

// candidates notes which candidates have come to their end; when all have,
// so has the stream, which has no event of its own for it.
func (r *reading) candidates(list gjson.Result) {
	if !list.IsArray() {
		return
	}
	list.ForEach(func(_, c gjson.Result) bool {
		bit := uint64(1) << (c.Get("index").Uint() & 63)
		r.begun |= bit
		if c.Get("finishReason").Type == gjson.String {
			r.done |= bit
		}
		return true
	})
	if r.begun != 0 && r.begun == r.done {
		r.final, r.ended = true, true
	}
}
