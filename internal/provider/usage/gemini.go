package usage

import "modelgate/internal/provider/reqscan"

// Gemini reads generateContent and its kin, streamed as events or as an
// array. The prompt counts cached tokens; thoughts and tool prompts stand
// beside the sums. Every chunk may carry running totals.
var Gemini = &Reader{name: "generate content", members: quoted("usageMetadata", "usage", "groundingMetadata"), read: gemini, deep: true}

// Predictions counts the pictures of a predict call.
var Predictions = &Reader{name: "predictions", members: quoted("usageMetadata"), read: images, finish: shown, begun: paint}

func gemini(r *reading, doc *document) {
	meta, list := doc.get("usageMetadata"), doc.get("candidates")
	for e := list.entries(); e.next(); {
		r.grounding(e.value)
	}
	if !meta.isObject() {
		return
	}
	var prompt, cached, candidates, thoughts, tools, audioIn, audioCached, audioOut int64
	for e := meta.entries(); e.next(); {
		v := e.value
		switch string(e.name) {
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
	}
	r.split(&sums{
		prompt: prompt + tools, completion: candidates + thoughts, reasoning: thoughts,
		cached: cached, audioIn: audioIn, cachedAudio: audioCached, audioOut: audioOut,
	})
	if !doc.deep { // a stream, which has no other end
		r.candidates(list)
	}
}

// modality sums the audio tokens of a list by modality.
func (r *reading) modality(list datum) int64 {
	var sum int64
	for e := list.entries(); e.next(); {
		var n int64
		if e.value.get("modality").says("AUDIO") && r.set(&n, e.value.get("tokenCount")) {
			sum += n
		}
	}
	return sum
}

// candidates notes which candidates have come to their end; when all have,
// so has the stream, which has no event of its own for it.
func (r *reading) candidates(list datum) {
	if !list.isArray() {
		return
	}
	for e := list.entries(); e.next(); {
		bit := uint64(1) << (e.value.get("index").result().Uint() & 63)
		r.begun |= bit
		if e.value.get("finishReason").kind() == reqscan.JSONString {
			r.done |= bit
		}
	}
	if r.begun != 0 && r.begun == r.done {
		r.final, r.ended = true, true
	}
}
