package usage

import "github.com/tidwall/gjson"

// Gemini reads generateContent and its kin, streamed as events or as an
// array. The prompt counts cached tokens; thoughts and tool prompts stand
// beside the sums. Every chunk may carry running totals.
var Gemini = &Reader{name: "generate content", members: quoted("usageMetadata", "usage", "groundingMetadata"), whole: quoted("usageMetadata", "candidates"), read: gemini}

// Predictions counts the images of a predict call.
var Predictions = &Reader{name: "predictions", members: quoted("usageMetadata"), whole: quoted("usage", "metadata", "base_resp", "svg_usage"), read: images, finish: addImageSize, begun: countStartedImages}

func gemini(r *reading, doc *document) {
	meta, list := doc.get("usageMetadata"), doc.get("candidates")
	for _, v := range members(list) {
		r.grounding(v)
	}
	if !meta.IsObject() {
		return
	}
	var prompt, cached, candidates, thoughts, tools int64
	var in, fromCache, out modalities
	for name, v := range members(meta) {
		switch name {
		case "promptTokenCount":
			r.state(&prompt, v)
		case "cachedContentTokenCount":
			r.set(&cached, v)
		case "candidatesTokenCount", "responseTokenCount":
			r.state(&candidates, v)
		case "thoughtsTokenCount":
			r.set(&thoughts, v)
		case "trafficType":
			word(&r.usage.ServiceTier, gjson.Result{Str: trafficTier(text(v))})
		case "toolUsePromptTokenCount":
			r.set(&tools, v)
		case "promptTokensDetails", "toolUsePromptTokensDetails":
			r.modalities(&in, v)
		case "cacheTokensDetails":
			r.modalities(&fromCache, v)
		case "candidatesTokensDetails", "responseTokensDetails":
			r.modalities(&out, v)
		}
	}
	r.split(&sums{
		prompt: prompt + tools, completion: candidates + thoughts, reasoning: thoughts, cached: cached,
		audioIn: in.audio, cachedAudio: fromCache.audio, audioOut: out.audio,
		imageIn: in.image, cachedImage: fromCache.image, imageOut: out.image,
		videoIn: in.video - min(fromCache.video, in.video),
	})
	if doc.whole == nil { // an event of a stream, which has no other end
		r.candidates(list)
	}
}

// modalities are tokens of what is no text.
type modalities struct{ audio, image, video int64 }

// modalities adds the tokens of a list by modality.
func (r *reading) modalities(to *modalities, list gjson.Result) {
	for _, v := range members(list) {
		var n int64
		if !r.set(&n, v.Get("tokenCount")) {
			continue
		}
		switch text(v.Get("modality")) {
		case "AUDIO":
			to.audio += n
		case "IMAGE":
			to.image += n
		case "VIDEO":
			to.video += n
		}
	}
}

// candidates notes which candidates have come to their end; when all have,
// so has the stream, which has no event of its own for it.
func (r *reading) candidates(list gjson.Result) {
	if !list.IsArray() {
		return
	}
	for _, v := range members(list) {
		bit := uint64(1) << (v.Get("index").Uint() & 63)
		r.begun |= bit
		if v.Get("finishReason").Type == gjson.String {
			r.done |= bit
		}
	}
	if r.begun != 0 && r.begun == r.done {
		r.final, r.ended = true, true
	}
}
