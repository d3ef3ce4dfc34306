package provider

import (
	"slices"

	"modelgate"
	"modelgate/internal/provider/usage"
)

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
			calls(usage.Chat, "/v1/fim/completions", "/v1/moderations", "/v1/chat/moderations", "/v1/classifications"),
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
			streams(calls(usage.Chat, "/v1/chat/completions", "/beta/chat/completions", "/beta/v1/completions")),
			modelLists("/models"), modelLists("/v1/models")),
		IncludeUsage: true,
	}
}

// xAI leaves reasoning out of completion_tokens.
func xAI() Format {
	jobs := &JobProtocol{
		Name: "videos", TaskID: "request_id", Poll: "GET /v1/videos/{id}",
		JobStatus: usage.JobStatus{State: []string{"status"}, ResultField: "video.url", Rejected: "video.respect_moderation",
			Seconds: []string{"video.duration"}, Ticks: "usage.cost_in_usd_ticks"},
		Download: Download{File: []string{"video.url"}},
	}
	return Format{
		Name:    "xai",
		GenAI:   "x_ai",
		BaseURL: "https://api.x.ai", // proxy path /v1/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "responses", "embeddings"),
			serve("images", "/v1/images/generations").withUnits(xAIImages),
			serve("image_edits", "/v1/images/edits").withUnits(xAIImages),
			serve("chat", "/v1/chat/completions").withReader(usage.ChatReasoningApart).deferring("deferred"),
			serve("completions", "/v1/completions").withReader(usage.ChatReasoningApart),
			serve("videos", "/v1/videos/generations").withJobs(jobs).withUnits(xAIVideos)),
		Allow: slices.Concat(
			[]Route{
				creates(jobs, modelgate.Video, bodyModel(), "/v1/videos/edits").withUnits(xAIEdits),
				creates(jobs, modelgate.Video, bodyModel(), "/v1/videos/extensions").withUnits(xAIVideos),
			},
			modelLists("/v1/models"), modelLists("/v1/language-models"), modelLists("/v1/image-generation-models")),
		Stored:       []string{"previous_response_id", "conversation"},
		Costs:        usageCosts("cost_in_usd_ticks"),
		StatedCost:   UseStatedCost,
		IncludeUsage: true,
	}
}

// groq states usage in x_groq on the last chunk of every stream.
func groq() Format {
	return Format{
		Name:    "groq",
		BaseURL: "https://api.groq.com", // proxy path /openai/v1/…
		Auth:    bearer(),
		Doors: append(compatible("/openai/v1", "chat", "responses", "speech"),
			serve("transcriptions", "/openai/v1/audio/transcriptions").withReader(usage.Recording),
			serve("translations", "/openai/v1/audio/translations").withReader(usage.Recording)),
		Allow:  slashedModels("/openai/v1/models"),
		Stored: []string{"previous_response_id"},
	}
}

func together() Format {
	return Format{
		Name:    "together",
		BaseURL: "https://api.together.xyz", // proxy path /v1/…, videos /v2/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "chat", "completions", "embeddings", "speech"),
			serve("transcriptions", "/v1/audio/transcriptions").withReader(usage.Recording),
			serve("translations", "/v1/audio/translations").withReader(usage.Recording),
			serve("images", "/v1/images/generations").withUnits(togetherImages),
			serve("reranks", "/v1/rerank"),
			serve("videos", "/v2/videos").withJobs(&JobProtocol{
				Name: "videos", TaskID: "id", Poll: "GET /v2/videos/{id}",
				JobStatus: usage.JobStatus{State: []string{"status"}, Length: []string{"seconds"}, Size: "size", USD: "outputs.cost"},
				Download:  Download{File: []string{"outputs.video_url"}},
			}).withUnits(togetherVideos)),
		Allow:        slashedModels("/v1/models"),
		Costs:        []string{"outputs.cost"},
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
	videos := serve("videos", "/api/v1/videos").withUnits(openRouterVideos)
	videos.Job.Cancel, videos.Job.USD = "", "usage.cost"
	return Format{
		Name:    "openrouter",
		BaseURL: "https://openrouter.ai", // proxy path /api/v1/…
		Auth:    bearer(),
		Models:  append(bodyModel(), BodyArray("models"), BodyArray("fallbacks")),
		Doors: append(compatible("/api/v1", "chat", "completions", "responses", "messages", "embeddings"),
			serve("reranks", "/api/v1/rerank"), videos),
		Allow:   modelLists("/api/v1/models", "category", "supported_parameters", "output_modalities")[:1],
		Stored:  []string{"preset", "previous_response_id", "conversation"},
		Costs:   usageCosts("cost", "cost_details", "is_byok"),
		Headers: []string{"http-referer", "x-title", "x-openrouter-*"},

		StatedCost: UseStatedCost,
	}
}

func moonshot() Format {
	return Format{
		Name:    "moonshot",
		BaseURL: "https://api.moonshot.ai", // proxy path /v1/…, /anthropic/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "chat", "completions"),
			serve("messages", "/anthropic/v1/messages")),
		Allow:         slices.Concat(free("/v1/tokenizers/estimate-token-count"), modelLists("/v1/models")),
		StoredSchemes: []string{"ms://"},
		IncludeUsage:  true,
	}
}

func zhipu() Format {
	return Format{
		Name:    "zhipu",
		BaseURL: "https://api.z.ai", // proxy path /api/paas/v4/…, /api/anthropic/…
		Auth:    bearer(),
		Doors: append(compatible("/api/paas/v4", "chat", "embeddings", "speech", "transcriptions"),
			serve("images", "/api/paas/v4/images/generations").withUnits(zhipuImages),
			serve("reranks", "/api/paas/v4/rerank"),
			serve("videos", "/api/paas/v4/videos/generations").withJobs(&JobProtocol{
				Name: "videos", TaskID: "id", Poll: "GET /api/paas/v4/async-result/{id}", JobStatus: usage.JobStatus{State: []string{"task_status"}},
				Download: Download{File: []string{"video_result.0.url"}},
			}).withUnits(zhipuVideos),
			serve("messages", "/api/anthropic/v1/messages")),
		Allow: modelLists("/api/paas/v4/models"),
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
	routes := lists(path, path+"/**")
	routes[1].Models = []ModelSource{PathCapture("**")}
	return routes
}
