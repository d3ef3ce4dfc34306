package provider

import (
	"slices"
	"strings"

	"modelgate"
)

// Formats lists the rows of the table, in no particular order. Each call
// makes fresh values.
func Formats() []Format {
	return slices.Concat(nativeFormats(), compatibleFormats(), mediaFormats(), localFormats())
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
		Doors: compatible("/v1", "chat", "completions", "responses", "images", "image_edits", "videos",
			"embeddings", "speech", "transcriptions", "translations"),
		Allow: slices.Concat(
			calls(readImages, "/v1/images/variations"),
			calls(readResponses, "/v1/responses/compact"),
			free("/v1/responses/input_tokens", "/v1/moderations"),
			modelLists("/v1/models")),
		Stored:       []string{"previous_response_id", "conversation"},
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
			calls(readChat, "/v1/chat/completions"),
			modelLists("/v1/models")),
		Stored:  []string{"container", "workspace_id", "user_profile_id"},
		Headers: []string{"anthropic-dangerous-direct-browser-access"},
	}
}

func geminiAPI() Format {
	key := bearer() // the OpenAI-compatible paths take the same key this way
	doors := []Door{
		serve("chat", "/v1beta/openai/chat/completions").by(readChatTotal),
		serve("embeddings", "/v1beta/openai/embeddings"),
		serve("images", "/v1beta/openai/images/generations"),
	}
	for i := range doors {
		doors[i].Auth = &key
	}
	doors = append(doors, serve("videos", "/v1beta/models/{model}:predictLongRunning").made(geminiJobs("/v1beta")))
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
		path := "POST " + version + "/models/{model}:"
		f.Allow = append(f.Allow,
			Route{Pattern: path + "generateContent", Models: model, Reader: readGemini},
			Route{Pattern: path + "streamGenerateContent", Models: model, Reader: readGemini},
			Route{Pattern: path + "embedContent", Models: model, Reader: readGemini},
			Route{Pattern: path + "batchEmbedContents", Models: model, Reader: readGemini},
			Route{Pattern: path + "countTokens", Models: model, Free: true},
			Route{Pattern: path + "predict", Models: model, Reader: readPredictions},
			creates(geminiJobs(version), modelgate.Video, model, strings.TrimPrefix(path, "POST ")+"predictLongRunning"),
		)
		f.Allow = append(f.Allow, modelLists(version+"/models")...)
	}
	return f
}

// geminiJobs follows long-running operations, whose ids are paths. They state
// no usage: what was asked for is charged.
func geminiJobs(version string) *Way {
	return &Way{
		Name: "operations" + strings.ReplaceAll(version, "/", "-"), TaskID: "name", Stem: "models/{model}/operations/",
		Poll: "GET " + version + "/{task}", Shape: Shape{Done: "done", Error: "error"},
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
		Doors: compatible("/openai/v1", "chat", "completions", "responses", "images", "image_edits", "videos",
			"embeddings", "speech", "transcriptions", "translations"),
		Allow:        modelLists("/openai/v1/models"),
		Stored:       []string{"previous_response_id", "conversation", "data_sources"},
		Headers:      []string{"x-ms-client-request-id"},
		IncludeUsage: true,
	}
	// Under a deployment the path alone decides the model.
	for _, name := range []string{"chat", "completions", "embeddings", "images", "image_edits", "speech", "transcriptions", "translations"} {
		door := compatible("/openai/deployments/{model}", name)[0]
		f.Allow = append(f.Allow, Route{Pattern: "POST " + door.Upstream, Models: []ModelSource{PathCapture("model")},
			Reader: door.Reader, IncludeUsage: name == "chat" || name == "completions"})
	}
	return f
}
