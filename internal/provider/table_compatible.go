package provider

import "slices"

// compatibleFormats speak OpenAI's formats, each with its own paths and
// quirks.
func compatibleFormats() []Format {
	return []Format{mistral(), deepSeek(), xAI(), groq(), together(), fireworks(), openRouter(), moonshot(), zhipu()}
}

// mistral states usage on the last chunk of every stream, and refuses members
// it does not know.
func mistral() Format {
	return Format{
		Name:    "mistral",
		GenAI:   "mistral_ai",
		BaseURL: "https://api.mistral.ai", // proxy path /v1/…
		Auth:    bearer(),
		Doors:   compatible("/v1", "chat", "embeddings", "transcriptions"),
		Allow: slices.Concat(
			calls(readChat, "/v1/fim/completions", "/v1/moderations", "/v1/chat/moderations", "/v1/classifications"),
			modelLists("/v1/models")),
		Stored: []string{"agent_id", "conversation_id"},
	}
}

func deepSeek() Format {
	return Format{
		Name:    "deepseek",
		BaseURL: "https://api.deepseek.com", // proxy path /chat/completions, /v1/…, /anthropic/…
		Auth:    bearer(),
		Doors: []Door{
			serve("chat", "/chat/completions"),
			serve("completions", "/beta/completions"),
			serve("messages", "/anthropic/v1/messages"),
		},
		Allow: slices.Concat(
			streams(calls(readChat, "/v1/chat/completions", "/beta/chat/completions", "/beta/v1/completions")),
			modelLists("/models"), modelLists("/v1/models")),
		IncludeUsage: true,
	}
}

// xAI leaves reasoning out of completion_tokens.
func xAI() Format {
	videos := serve("videos", "/v1/videos/generations")
	videos.TaskID = "request_id"
	return Format{
		Name:    "xai",
		GenAI:   "x_ai",
		BaseURL: "https://api.x.ai", // proxy path /v1/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "responses", "images", "image_edits", "embeddings"),
			serve("chat", "/v1/chat/completions").by(readChatApart),
			serve("completions", "/v1/completions").by(readChatApart),
			videos),
		Allow: slices.Concat(
			[]Route{
				creates("request_id", bodyModel(), "/v1/videos/edits"),
				creates("request_id", bodyModel(), "/v1/videos/extensions"),
				job(AsyncPoll, "GET /v1/videos/{id}"),
			},
			modelLists("/v1/models"), modelLists("/v1/language-models"), modelLists("/v1/image-generation-models")),
		Stored:       []string{"previous_response_id", "conversation"},
		IncludeUsage: true,
	}
}

// groq states usage in x_groq on the last chunk of every stream.
func groq() Format {
	return Format{
		Name:    "groq",
		BaseURL: "https://api.groq.com", // proxy path /openai/v1/…
		Auth:    bearer(),
		Doors:   compatible("/openai/v1", "chat", "responses", "speech", "transcriptions", "translations"),
		Allow:   slashedModels("/openai/v1/models"),
		Stored:  []string{"previous_response_id"},
	}
}

func together() Format {
	return Format{
		Name:    "together",
		BaseURL: "https://api.together.xyz", // proxy path /v1/…, videos /v2/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "chat", "completions", "embeddings", "images", "speech", "transcriptions", "translations"),
			serve("reranks", "/v1/rerank"),
			serve("videos", "/v2/videos")),
		Allow:        append(slashedModels("/v1/models"), job(AsyncPoll, "GET /v2/videos/{id}")),
		IncludeUsage: true,
	}
}

func fireworks() Format {
	return Format{
		Name:    "fireworks",
		BaseURL: "https://api.fireworks.ai", // proxy path /inference/v1/…
		Auth:    bearer(),
		Doors: append(compatible("/inference/v1", "chat", "completions", "responses", "embeddings"),
			serve("reranks", "/inference/v1/rerank")),
		Allow:        slashedModels("/inference/v1/models"),
		Stored:       []string{"previous_response_id"},
		IncludeUsage: true,
	}
}

// openRouter states usage in every stream. A request may name fallbacks.
func openRouter() Format {
	return Format{
		Name:    "openrouter",
		BaseURL: "https://openrouter.ai", // proxy path /api/v1/…
		Auth:    bearer(),
		Models:  append(bodyModel(), BodyArray("models"), BodyArray("fallbacks")),
		Doors: append(compatible("/api/v1", "chat", "completions", "responses", "messages", "embeddings", "videos"),
			serve("reranks", "/api/v1/rerank")),
		Allow: []Route{
			{Pattern: "GET /api/v1/models", Free: true},
			job(AsyncPoll, "GET /api/v1/videos/{id}"),
			job(AsyncContent, "GET /api/v1/videos/{id}/content"),
		},
		Stored:  []string{"preset", "previous_response_id", "conversation"},
		Headers: []string{"http-referer", "x-title", "x-openrouter-*"},
	}
}

func moonshot() Format {
	return Format{
		Name:    "moonshot",
		BaseURL: "https://api.moonshot.ai", // proxy path /v1/…, /anthropic/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "chat", "completions"),
			serve("messages", "/anthropic/v1/messages")),
		Allow:        slices.Concat(free("/v1/tokenizers/estimate-token-count"), modelLists("/v1/models")),
		IncludeUsage: true,
	}
}

func zhipu() Format {
	return Format{
		Name:    "zhipu",
		BaseURL: "https://api.z.ai", // proxy path /api/paas/v4/…, /api/anthropic/…
		Auth:    bearer(),
		Doors: append(compatible("/api/paas/v4", "chat", "embeddings", "images", "speech", "transcriptions"),
			serve("reranks", "/api/paas/v4/rerank"),
			serve("videos", "/api/paas/v4/videos/generations"),
			serve("messages", "/api/anthropic/v1/messages")),
		Allow: append(modelLists("/api/paas/v4/models"), job(AsyncPoll, "GET /api/paas/v4/async-result/{id}")),
	}
}

// streams marks chat paths whose streams must be asked for usage.
func streams(routes []Route) []Route {
	for i := range routes {
		routes[i].IncludeUsage = true
	}
	return routes
}

// slashedModels are modelLists of a provider whose model ids hold slashes.
func slashedModels(path string) []Route {
	return []Route{
		{Pattern: "GET " + path, Free: true},
		{Pattern: "GET " + path + "/**", Models: []ModelSource{PathCapture("**")}, Free: true},
	}
}
