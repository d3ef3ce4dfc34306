package provider

import "modelgate/internal/provider/usage"

// What requests order, by the format that reads them. The lengths and sizes
// are those that the provider documents for a request without one; where its
// models differ, the longest of them.
var (
	openAIFilms = &Order{Seconds: "seconds", Length: 4, Size: []string{"size"}, Plain: "720x1280"}
	geminiFilms = &Order{Seconds: "parameters.durationSeconds", Length: 8, Count: "parameters.sampleCount",
		Size: []string{"parameters.resolution"}, Plain: "720p"}
	xAIFilms        = &Order{Seconds: "duration", Length: 8, Size: []string{"resolution"}, Plain: "480p"}
	xAIEdits        = &Order{Length: 9, Plain: "480p"} // as long as the film that is edited, 8.7 seconds at most
	togetherFilms   = &Order{Seconds: "seconds", Length: 8, Size: []string{"resolution"}, Width: "width", Height: "height", Plain: "720p"}
	openRouterFilms = &Order{Seconds: "duration", Length: 8, Size: []string{"size", "resolution"}, Plain: "720p"}
	zhipuFilms      = &Order{Seconds: "duration", Length: 5, Size: []string{"size"}, Plain: "1920x1080"}
	dashScopeFilms  = &Order{Seconds: "parameters.duration", Length: 5, Size: []string{"parameters.size", "parameters.resolution"}, Plain: "1920*1080"}
	arkFilms        = &Order{Seconds: "duration", Length: 5, Open: "-1", Longest: 15, Frames: "frames", Size: []string{"resolution"}, Plain: "720p"}
	miniMaxFilms    = &Order{Seconds: "duration", Length: 6, Size: []string{"resolution"}, Plain: "768P"}

	// Models at fal and Replicate have schemas of their own, with these names as
	// a rule; their films have up to 8 seconds where nobody asks for another
	// length.
	falOrders   = &Order{Seconds: "duration", Length: 8, Count: "num_images", Size: []string{"resolution"}, Width: "image_size.width", Height: "image_size.height", Own: true}
	predictions = &Order{Seconds: "input.duration", Length: 8, Count: "input.num_outputs", Size: []string{"input.resolution"}, Width: "input.width", Height: "input.height", Own: true}

	plainPictures    = &Order{Count: "n", Size: []string{"size"}, Quality: "quality"}
	openAIPictures   = &Order{Count: "n", Size: []string{"size"}, Plain: "1024x1024", Quality: "quality", Ordinary: "standard"}
	xAIPictures      = &Order{Count: "n", Size: []string{"resolution"}, Plain: "1k"}
	togetherPictures = &Order{Count: "n", Width: "width", Height: "height", Plain: "1024x1024"}
	zhipuPictures    = &Order{Size: []string{"size"}, Plain: "1024x1024", Quality: "quality", Ordinary: "standard"}
	arkPictures      = &Order{Size: []string{"size"}, Plain: "2048x2048"}
	miniMaxPictures  = &Order{Count: "n", Width: "width", Height: "height", Plain: "1024x1024"}
	geminiPictures   = &Order{Count: "parameters.sampleCount", Pieces: 4, Size: []string{"parameters.sampleImageSize"}, Plain: "1K"}
	// dashScopePictures makes four where nobody asks for another number; the
	// finished job says how many there are.
	dashScopePictures = &Order{Count: "parameters.n", Pieces: 4, Size: []string{"parameters.size"}, Plain: "1024*1024"}

	spokenInput = &Order{Text: "input"}
	spokenText  = &Order{Text: "text"} // MiniMax
	searchAsked = &Order{Search: "web_search_options"}
	transcribed = &Order{Size: nil} // by the length of the sound, which the reply states
)

// usualOrder is where requests say what is to be made whose replies the reader
// reads, and whose path has no Order of its own; nil is nowhere.
func usualOrder(r *usage.Reader) *Order {
	switch r {
	case usage.Chat, usage.ChatReasoningApart, usage.ChatThinkingInTotal:
		return searchAsked
	case usage.Images:
		return plainPictures
	case usage.Speech, usage.Any:
		return spokenInput
	case usage.Video:
		return openAIFilms
	case usage.Prediction:
		return predictions
	}
	return nil
}
