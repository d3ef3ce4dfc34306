package usage

import "github.com/tidwall/gjson"

// The readers of the OpenAI family. Its figures are inclusive: the prompt
// counts cached, written and audio tokens too, the completion counts
// reasoning and audio.
var (
	// Chat reads chat, text completions, embeddings and rerankings:
	// prompt_tokens and completion_tokens, or total_tokens alone.
	Chat = &Reader{name: "chat", repeats: "message", members: quoted("usage"), whole: chatFigures(), read: chat(nil), finish: addRequestedSearch}
	// ChatReasoningApart is Chat where completion_tokens leaves reasoning out.
	ChatReasoningApart = &Reader{name: "chat, reasoning apart", repeats: "message", members: quoted("usage"), whole: chatFigures(), read: chat(reasoningApart), finish: addRequestedSearch}
	// ChatThinkingInTotal is Chat where thinking shows in total_tokens only.
	ChatThinkingInTotal = &Reader{name: "chat, thinking in total", repeats: "message", members: quoted("usage"), whole: chatFigures(), read: chat(restIsOutput), finish: addRequestedSearch}
	// Responses reads the Responses API.
	Responses = &Reader{name: "responses", members: quoted("usage"), whole: quoted("usage", "response", "output"), read: responses, items: true,
		ends: []string{"response.completed", "response.incomplete", "response.failed", "error"}}
	// Images reads images: tokens where they are stated, and their number.
	Images = &Reader{name: "images", members: quoted("usage"), whole: quoted("usage", "metadata", "base_resp", "svg_usage"), read: images, finish: addRequestedImages, begun: countStartedImages,
		ends: []string{"image_generation.completed", "image_edit.completed", "error"}}
	// Speech reads speech, which is binary and priced by the request's
	// characters, or a stream that ends with tokens.
	Speech = &Reader{name: "speech", members: quoted("usage", "extra_info"), whole: quoted("usage", "extra_info"), read: speech, finish: addRequestedCharacters, begun: markStartedAudio,
		ends: []string{"speech.audio.done", "error"}}
	// Video takes what a new job will cost from the request: no provider
	// states it with the job's id.
	Video = &Reader{name: "video", members: quoted("usage"), whole: quoted("base_resp"), read: videoJob, finish: addRequestedVideo}
	// Transcript reads transcriptions and translations: tokens or seconds,
	// where the reply states none those of the recording.
	Transcript = &Reader{name: "transcript", members: quoted("usage"), whole: quoted("usage"), read: transcript, finish: addRecordingLength,
		ends: []string{"transcript.text.done", "error"}, states: []string{"json", "verbose_json", "diarized_json"}}
	// Recording reads those that state a duration in verbose_json, and
	// elsewhere nothing.
	Recording = &Reader{name: "recording", members: quoted("usage"), whole: quoted("usage"), read: transcript, finish: addRecordingLength,
		ends: []string{"transcript.text.done", "error"}, states: []string{"verbose_json"}}
)

// chatFigures are the objects that may state the usage of a chat: OpenAI's,
// Groq's and Cohere's.
func chatFigures() [][]byte { return quoted("usage", "usage_info", "x_groq", "meta") }

// sums are the figures of an inclusive usage object before they are split.
type sums struct {
	prompt, completion, total          int64
	hasPrompt, hasCompletion, hasTotal bool
	cached, written, written1h         int64
	audioIn, cachedAudio, audioOut     int64
	imageIn, cachedImage, imageOut     int64
	videoIn                            int64
	reasoning                          int64
	missed                             int64 // prompt tokens not found in the cache
	hasMissed                          bool
}

// inclusive reads a usage object of this family. The adjustment, nil for
// none, corrects the sums by a provider's own rule. It reports whether there
// was any figure.
func (r *reading) inclusive(usage gjson.Result, adjust func(sums) sums) bool {
	if !usage.IsObject() {
		return false
	}
	var s sums
	any := false
	for name, v := range members(usage) {
		any = r.figure(&s, name, v) || any
	}
	if adjust != nil {
		s = adjust(s)
	}
	if !s.hasPrompt && s.hasMissed {
		s.prompt, s.hasPrompt = s.cached+s.missed, true
	}
	if !s.hasPrompt && s.hasTotal {
		s.prompt = max(s.total-s.completion, 0)
	}
	r.split(&s)
	r.read = r.read || any
	return any
}

// figure takes one member of a usage object; it reports whether it is one
// that is counted.
func (r *reading) figure(s *sums, name string, v gjson.Result) bool {
	switch name {
	case "prompt_tokens", "input_tokens":
		s.hasPrompt = r.set(&s.prompt, v)
		return s.hasPrompt
	case "completion_tokens", "output_tokens":
		s.hasCompletion = r.set(&s.completion, v)
		return s.hasCompletion
	case "total_tokens":
		s.hasTotal = r.set(&s.total, v)
		return s.hasTotal
	case "prompt_tokens_details", "input_tokens_details", "input_token_details":
		r.inputDetails(s, v)
	case "completion_tokens_details", "output_tokens_details", "output_token_details":
		for name, v := range members(v) {
			switch name {
			case "audio_tokens":
				r.set(&s.audioOut, v)
			case "image_tokens":
				r.set(&s.imageOut, v)
			case "reasoning_tokens":
				r.set(&s.reasoning, v)
			}
		}
	case "cached_tokens", "prompt_cache_hit_tokens":
		r.set(&s.cached, v)
	case "prompt_cache_miss_tokens":
		s.hasMissed = r.set(&s.missed, v)
	case "server_tool_use": // of OpenRouter
		r.set(&r.usage.Searches, v.Get("web_search_requests"))
	case "search_units":
		return r.set(&r.usage.Searches, v)
	case "generated_images", "image_count":
		return r.set(&r.usage.Images, v)
	case "prompt_audio_seconds", "seconds":
		r.seconds(v)
	case "service_tier":
		word(&r.usage.ServiceTier, v)
	default:
		r.stateCost(name, v)
	}
	return false
}

func (r *reading) inputDetails(s *sums, v gjson.Result) {
	for name, v := range members(v) {
		switch name {
		case "cached_tokens":
			r.set(&s.cached, v)
		case "cache_write_tokens", "cache_creation_input_tokens":
			r.set(&s.written, v)
		case "cache_write_tokens_details":
			r.set(&s.written1h, v.Get("ttl_12h_tokens"))
		case "audio_tokens":
			r.set(&s.audioIn, v)
		case "image_tokens":
			r.set(&s.imageIn, v)
		case "video_tokens":
			r.set(&s.videoIn, v)
		case "cached_tokens_details":
			r.set(&s.cachedAudio, v.Get("audio_tokens"))
			r.set(&s.cachedImage, v.Get("image_tokens"))
		}
	}
}

// split stores the sums as parts that do not overlap and add up to the
// provider's own. Parts that exceed their sum are cut down to it.
func (r *reading) split(s *sums) {
	left := s.prompt
	take := func(n int64) int64 {
		if n > left {
			r.flawed = true
			n = left
		}
		left -= n
		return n
	}
	u := &r.usage
	cached := take(s.cached)
	u.CachedAudioInput = min(s.cachedAudio, cached)
	u.CachedImageInput = min(s.cachedImage, cached-u.CachedAudioInput)
	u.CachedInput = cached - u.CachedAudioInput - u.CachedImageInput
	long := min(s.written1h, s.written)
	u.CacheWrite1h = take(long)
	u.CacheWrite = take(s.written - long)
	u.AudioInput = take(s.audioIn - min(s.cachedAudio, s.audioIn))
	u.ImageInput = take(s.imageIn - min(s.cachedImage, s.imageIn))
	u.VideoInput = take(s.videoIn)
	u.Input = left

	left = s.completion
	u.AudioOutput = take(s.audioOut)
	u.ImageOutput = take(s.imageOut)
	u.Reasoning = min(s.reasoning, left)
	u.Output = left - u.Reasoning
}

// reasoningApart adds reasoning to a completion that leaves it out. Where
// cached tokens exceed the prompt they are not part of it either.
func reasoningApart(s sums) sums {
	s.completion += s.reasoning
	if s.cached > s.prompt {
		s.prompt += s.cached
	}
	return s
}

// restIsOutput takes as output all of the total that is not prompt.
func restIsOutput(s sums) sums {
	if s.hasTotal && s.hasPrompt {
		thought := max(s.total-s.prompt-s.completion, 0)
		s.completion += thought
		s.reasoning += thought
	}
	return s
}

func chat(adjust func(sums) sums) func(*reading, *document) {
	return func(r *reading, doc *document) {
		usage := doc.get("usage")
		choices := doc.get("choices")
		if !usage.IsObject() {
			usage = doc.get("x_groq.usage")
		}
		if !usage.IsObject() {
			usage = choices.Get("0.usage")
		}
		word(&r.usage.ServiceTier, doc.get("service_tier"))
		if r.inclusive(usage, adjust) {
			r.final = r.final || finished(choices)
		} else if meta := doc.get("meta.billed_units"); meta.IsObject() {
			r.billed(meta)
		}
		r.state(&r.usage.Pages, doc.get("usage_info.pages_processed"))
	}
}

// finished reports whether usage beside these choices is the last word: there
// are none, or one of them is complete. Some servers state running figures on
// every chunk before.
func finished(choices gjson.Result) bool {
	if !choices.IsArray() {
		return true
	}
	running := false
	complete := false
	for _, v := range members(choices) {
		running = true
		complete = complete || stated(v.Get("finish_reason"))
	}
	return complete || !running
}

func responses(r *reading, doc *document) {
	usage, tier := doc.get("response.usage"), doc.get("response.service_tier")
	if !usage.Exists() {
		usage, tier = doc.get("usage"), doc.get("service_tier")
	}
	word(&r.usage.ServiceTier, tier)
	r.inclusive(usage, nil)
	r.items(doc)
}

func images(r *reading, doc *document) {
	r.refused = r.refused || refused(doc)
	r.inclusive(doc.get("usage"), nil)
	word(&r.usage.Size, doc.get("size"))
	word(&r.usage.Quality, doc.get("quality"))
	if doc.get("svg_usage").IsObject() {
		r.flawed = true // a second model was charged, at rates of its own
	}
	if r.usage.Images > 0 {
		return
	}
	if doc.get("b64_json").Exists() {
		r.usage.Images, r.read = 1, true
		return
	}
	for _, list := range [...]string{"metadata.success_count", "data", "images", "predictions"} {
		if v := doc.get(list); v.Type == gjson.Number || v.Type == gjson.String {
			r.state(&r.usage.Images, length(v))
			return
		}
	}
}

// refused reports whether a reply says that there was no result, whatever its
// status.
func refused(doc *document) bool {
	if code := doc.get("base_resp.status_code"); code.Type == gjson.Number && code.Num != 0 {
		return true
	}
	failure := doc.get("error")
	return failure.Exists() && failure.Type != gjson.Null && failure.Type != gjson.False
}

// addRequestedImages takes as many images as were asked for where a successful reply
// has a form that nobody knows. That is a guess, so it flaws the reading.
func addRequestedImages(r *reading, requested RequestedUnits) {
	if !r.read && !r.refused && requested.Count > 0 && requested.Seconds == 0 {
		r.usage.Images, r.read, r.flawed = requested.Count, true, true
	}
	requested.ImageUsage(&r.usage)
}

// addImageSize is for images of which the reply says how many there are.
func addImageSize(r *reading, requested RequestedUnits) { requested.ImageUsage(&r.usage) }

// countStartedImages counts the images that a reply had begun to deliver.
func countStartedImages(r *reading, d *delivery) {
	if d.images > 0 {
		r.usage.Images, r.read, r.flawed = d.images, true, true
	}
}

// markStartedAudio takes a reply that has begun for one that was charged.
func markStartedAudio(r *reading, d *delivery) {
	if d.channels[otherChannel] > 0 {
		r.read, r.flawed = true, true
	}
}

func videoJob(r *reading, doc *document) { r.refused = r.refused || refused(doc) }

// addRequestedVideo takes the seconds that were asked for.
func addRequestedVideo(r *reading, requested RequestedUnits) {
	if requested.Seconds == 0 || r.refused {
		return
	}
	r.usage, r.read = requested.VideoUsage(), true
}

func speech(r *reading, doc *document) {
	if r.inclusive(doc.get("usage"), nil) {
		r.usage.AudioOutput, r.usage.ImageOutput, r.usage.Output, r.usage.Reasoning = r.usage.OutputTokens(), 0, 0, 0
	}
	r.state(&r.usage.Characters, doc.get("extra_info.usage_characters"))
}

// addRequestedCharacters counts the characters that were asked to be read aloud.
func addRequestedCharacters(r *reading, requested RequestedUnits) {
	if r.usage.Characters == 0 && requested.Characters > 0 {
		r.usage.Characters, r.read = requested.Characters, true
	}
}

// addRecordingLength takes the length of the recording.
func addRecordingLength(r *reading, requested RequestedUnits) {
	if !r.read && requested.Seconds > 0 {
		r.usage.Seconds, r.read = requested.Seconds, true
	}
}

func transcript(r *reading, doc *document) {
	r.inclusive(doc.get("usage"), nil)
	if r.usage.Seconds == 0 {
		r.seconds(doc.get("duration"))
	}
}
