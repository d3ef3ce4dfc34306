package provider

import "modelgate/internal/provider/usage"

// Where requests state how much is to be made, by format. The lengths and sizes
// are those that the provider documents for a request without one; where its
// models differ, the longest of them.
var (
	openAIVideos = &UnitFields{Seconds: "seconds", DefaultSeconds: 4, Size: []string{"size"}, DefaultSize: "720x1280"}
	geminiVideos = &UnitFields{Seconds: "parameters.durationSeconds", DefaultSeconds: 8, Count: "parameters.sampleCount",
		Size: []string{"parameters.resolution"}, DefaultSize: "720p", Audio: "parameters.generateAudio"}
	xAIVideos        = &UnitFields{Seconds: "duration", DefaultSeconds: 8, Size: []string{"resolution"}, DefaultSize: "480p"}
	xAIEdits         = &UnitFields{DefaultSeconds: 9, DefaultSize: "480p"} // as long as the video that is edited, 8.7 seconds at most
	togetherVideos   = &UnitFields{Seconds: "seconds", DefaultSeconds: 8, Size: []string{"resolution"}, Width: "width", Height: "height", DefaultSize: "720p"}
	openRouterVideos = &UnitFields{Seconds: "duration", DefaultSeconds: 8, Size: []string{"size", "resolution"}, DefaultSize: "720p", Audio: "generate_audio"}
	zhipuVideos      = &UnitFields{Seconds: "duration", DefaultSeconds: 5, Size: []string{"size"}, DefaultSize: "1920x1080"}
	dashScopeVideos  = &UnitFields{Seconds: "parameters.duration", DefaultSeconds: 5, Size: []string{"parameters.size", "parameters.resolution"}, DefaultSize: "1920*1080"}
	arkVideos        = &UnitFields{Seconds: "duration", DefaultSeconds: 5, AutoSeconds: "-1", MaxSeconds: 15, Frames: "frames", Size: []string{"resolution"}, DefaultSize: "720p", Audio: "generate_audio"}
	miniMaxVideos    = &UnitFields{Seconds: "duration", DefaultSeconds: 6, Size: []string{"resolution"}, DefaultSize: "768P"}

	// Models at fal and Replicate have schemas of their own, with these names as
	// a rule; their videos have up to 8 seconds where nobody asks for another
	// length.
	falUnits    = &UnitFields{Seconds: "duration", DefaultSeconds: 8, Count: "num_images", Size: []string{"resolution"}, Width: "image_size.width", Height: "image_size.height", Audio: "generate_audio", PerModel: true}
	predictions = &UnitFields{Seconds: "input.duration", DefaultSeconds: 8, Count: "input.num_outputs", Size: []string{"input.resolution"}, Width: "input.width", Height: "input.height", Audio: "input.generate_audio", PerModel: true}

	plainImages    = &UnitFields{Count: "n", Size: []string{"size"}, Quality: "quality"}
	openAIImages   = &UnitFields{Count: "n", Size: []string{"size"}, DefaultSize: "1024x1024", Quality: "quality", DefaultQuality: "standard"}
	xAIImages      = &UnitFields{Count: "n", Size: []string{"resolution"}, DefaultSize: "1k"}
	togetherImages = &UnitFields{Count: "n", Width: "width", Height: "height", DefaultSize: "1024x1024"}
	zhipuImages    = &UnitFields{Size: []string{"size"}, DefaultSize: "1024x1024", Quality: "quality", DefaultQuality: "standard"}
	arkImages      = &UnitFields{Size: []string{"size"}, DefaultSize: "2048x2048"}
	miniMaxImages  = &UnitFields{Count: "n", Width: "width", Height: "height", DefaultSize: "1024x1024"}
	geminiImages   = &UnitFields{Count: "parameters.sampleCount", DefaultCount: 4, Size: []string{"parameters.sampleImageSize"}, DefaultSize: "1K"}
	// dashScopeImages makes four where nobody asks for another number; the
	// finished job says how many there are.
	dashScopeImages = &UnitFields{Count: "parameters.n", DefaultCount: 4, Size: []string{"parameters.size"}, DefaultSize: "1024*1024"}

	speechInput = &UnitFields{Text: "input"}
	speechText  = &UnitFields{Text: "text"} // MiniMax
	webSearch   = &UnitFields{Search: "web_search_options"}
	transcribed = &UnitFields{Size: nil} // by the length of the sound, which the reply states
)

// usualUnits are the UnitFields of a path that has none of its own, by the reader
// of its replies; nil for none.
func usualUnits(r *usage.Reader) *UnitFields {
	switch r {
	case usage.Chat, usage.ChatReasoningApart, usage.ChatThinkingInTotal:
		return webSearch
	case usage.Images:
		return plainImages
	case usage.Speech, usage.Any:
		return speechInput
	case usage.Video:
		return openAIVideos
	case usage.Prediction:
		return predictions
	}
	return nil
}
