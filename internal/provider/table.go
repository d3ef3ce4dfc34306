package provider

import (
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/provider/usage"
)

// Formats lists the rows of the table, in no particular order. Each call
// makes fresh values.
func Formats() []Format {
	return slices.Concat(nativeFormats(), compatibleFormats(), mediaFormats(), cloudFormats(), localFormats())
}

// FormatNamed finds a row.
func FormatNamed(name string) (Format, bool) {
	for _, f := range Formats() {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// nativeFormats are the formats that others imitate, and their kin.
func nativeFormats() []Format {
	return []Format{openAI(), anthropic(), geminiAPI(), azureOpenAI()}
}

func openAI() Format {
	return Format{
		Name:    "openai",
		BaseURL: "https://api.openai.com", // proxy path /v1/…
		Auth:    bearer(),
		Doors: standardImages(compatible("/v1", "chat", "completions", "responses", "images", "image_edits", "videos",
			"embeddings", "speech", "transcriptions", "translations")),
		Allow: slices.Concat(
			[]Route{calls(usage.Images, "/v1/images/variations")[0].withUnits(openAIImages)},
			calls(usage.Responses, "/v1/responses/compact"),
			free("/v1/responses/input_tokens", "/v1/moderations"),
			modelLists("/v1/models")),
		Stored:       []string{"previous_response_id", "conversation"},
		Costs:        anyCosts(),
		IncludeUsage: true,
	}
}

func anthropic() Format {
	return Format{
		Name:    "anthropic",
		BaseURL: "https://api.anthropic.com", // proxy path /v1/messages
		Auth:    bearer(),
		// Version 2026-10-21 brought Bearer; clients of earlier ones, and
		// keys as they used them, go by x-api-key.
		Older: &OlderAuth{Header: "Anthropic-Version", Before: "2026-10-21", Auth: header("X-Api-Key")},
		Doors: compatible("/v1", "messages", "count_tokens"),
		Allow: slices.Concat(
			calls(usage.Chat, "/v1/chat/completions"),
			modelLists("/v1/models", "beta", "limit", "after_id", "before_id")),
		Stored:  []string{"container", "workspace_id", "user_profile_id"},
		Headers: []string{"anthropic-dangerous-direct-browser-access"},
	}
}

func geminiAPI() Format {
	key := bearer() // the OpenAI-compatible paths take the same key this way
	doors := []Door{
		serve("chat", "/v1beta/openai/chat/completions").withReader(usage.ChatThinkingInTotal),
		serve("embeddings", "/v1beta/openai/embeddings"),
		serve("images", "/v1beta/openai/images/generations"),
	}
	for i := range doors {
		doors[i].Auth = &key
	}
	videos := serve("videos", "/v1beta/models/{model}:predictLongRunning").withJobs(geminiJobs("/v1beta")).withUnits(geminiVideos)
	videos.Same = geminiModels()
	doors = append(doors, videos)
	f := Format{
		Name:    "gemini",
		GenAI:   "gcp.gemini",
		BaseURL: "https://generativelanguage.googleapis.com", // proxy path /v1beta/models/…
		Auth:    header("X-Goog-Api-Key"),
		Doors:   doors,
		Stored:  []string{"cachedContent", "cached_content"},
	}
	model := []ModelSource{PathCapture("model")}
	for _, version := range []string{"/v1", "/v1beta"} {
		path := version + "/models/{model}:"
		routes := []Route{
			call(path+"generateContent", model, usage.Gemini),
			call(path+"streamGenerateContent", model, usage.Gemini),
			call(path+"embedContent", model, usage.Gemini),
			call(path+"batchEmbedContents", model, usage.Gemini),
			call(path+"countTokens", model, nil),
			call(path+"predict", model, usage.Predictions).withUnits(geminiImages),
			creates(geminiJobs(version), modelgate.Video, model, path+"predictLongRunning").withUnits(geminiVideos),
		}
		for i := range routes {
			// Google's other system parameters leave parts of the reply out.
			routes[i].Same, routes[i].Query = geminiModels(), []string{"alt=json|sse"}
			routes[i].Free = routes[i].Reader == nil
		}
		f.Allow = append(f.Allow, routes...)
		f.Allow = append(f.Allow, modelLists(version+"/models", "pageSize", "pageToken")...)
	}
	return f
}

// geminiModels are where a body may repeat the model of the path.
func geminiModels() []ModelSource {
	return []ModelSource{
		BodyField("model"), BodyPath("requests[].model"),
		BodyPath("generateContentRequest.model"), BodyPath("generate_content_request.model"),
	}
}

// geminiJobs follows long-running operations, whose ids are paths. They state
// how many videos there are; as to their length, what was asked for is charged.
func geminiJobs(version string) *JobProtocol {
	return &JobProtocol{
		Name: "operations" + strings.ReplaceAll(version, "/", "-"), TaskID: "name", Stem: "models/{model}/operations/",
		Poll: "GET " + version + "/{task}", JobStatus: usage.JobStatus{Done: "done", Error: "error", Videos: "response.generateVideoResponse.generatedSamples.#"},
		Download: Download{
			File: []string{"response.generateVideoResponse.generatedSamples.0.video.uri"},
			Own:  []string{"GET /{version}/files/{file}", "GET /download/{version}/files/{file}"}, // the one redirects to the other
		},
	}
}

func azureOpenAI() Format {
	f := Format{
		Name:    "azure-openai",
		GenAI:   "azure.ai.openai",
		BaseURL: "https://RESOURCE.openai.azure.com", // proxy path /openai/v1/… or /openai/deployments/…
		Auth:    header("Api-Key"),
		Doors: standardImages(compatible("/openai/v1", "chat", "completions", "responses", "images", "image_edits", "videos",
			"embeddings", "speech", "transcriptions", "translations")),
		Allow:        modelLists("/openai/v1/models"),
		Stored:       []string{"previous_response_id", "conversation", "data_sources"},
		Headers:      []string{"x-ms-client-request-id"},
		Query:        []string{"api-version"},
		IncludeUsage: true,
	}
	// Under a deployment the path decides the model; SDKs leave one in the body.
	for _, name := range []string{"chat", "completions", "embeddings", "images", "image_edits", "speech", "transcriptions", "translations"} {
		door := standardImages(compatible("/openai/deployments/{model}", name))[0]
		route := call(door.Upstream, append([]ModelSource{PathCapture("model")}, bodyModel()...), door.Reader).withUnits(door.Units)
		route.IncludeUsage = name == "chat" || name == "completions"
		f.Allow = append(f.Allow, route)
	}
	return f
}

// standardImages are OpenAI's doors for images, whose usual size and quality
// other servers of the shape do not share.
func standardImages(doors []Door) []Door {
	for i := range doors {
		if doors[i].Reader == usage.Images {
			doors[i].Units = openAIImages
		}
	}
	return doors
}
