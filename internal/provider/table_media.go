package provider

import "slices"

// mediaFormats have native formats of their own beside or instead of
// OpenAI's.
func mediaFormats() []Format {
	return []Format{dashScope(), ark(), miniMax(), cohere(), jina(), voyage(), fal(), replicate()}
}

func dashScope() Format {
	const services = "/api/v1/services/"
	videos := serve("videos", services+"aigc/video-generation/video-synthesis")
	videos.TaskID = "output.task_id"
	videos.Header = map[string]string{"X-Dashscope-Async": "enable"} // jobs are refused without it
	return Format{
		Name:    "dashscope",
		BaseURL: "https://dashscope-intl.aliyuncs.com", // proxy path /compatible-mode/v1/…, /api/v1/…
		Auth:    bearer(),
		Doors: append(compatible("/compatible-mode/v1", "chat", "completions", "embeddings"),
			serve("reranks", "/compatible-api/v1/reranks"), videos),
		Allow: slices.Concat(
			calls(readNative,
				services+"aigc/text-generation/generation",
				services+"aigc/multimodal-generation/generation",
				services+"embeddings/text-embedding/text-embedding",
				services+"embeddings/multimodal-embedding/multimodal-embedding",
				services+"rerank/text-rerank/text-rerank"),
			[]Route{
				creates("output.task_id", bodyModel(), services+"aigc/text2image/image-synthesis"),
				creates("output.task_id", bodyModel(), services+"aigc/image2image/image-synthesis"),
				creates("output.task_id", bodyModel(), services+"aigc/image-generation/generation"),
				creates("output.task_id", bodyModel(), services+"aigc/image2video/video-synthesis"),
				job(AsyncPoll, "GET /api/v1/tasks/{id}"),
				job(AsyncCancel, "POST /api/v1/tasks/{id}/cancel"),
			},
			modelLists("/compatible-mode/v1/models")),
		Headers:      []string{"x-dashscope-async", "x-dashscope-sse", "x-dashscope-datainspection", "x-dashscope-ossresourceresolve"},
		IncludeUsage: true,
	}
}

func ark() Format {
	const tasks = "/api/v3/contents/generations/tasks"
	return Format{
		Name:    "ark",
		BaseURL: "https://ark.ap-southeast.bytepluses.com", // proxy path /api/v3/…
		Auth:    bearer(),
		Doors: append(compatible("/api/v3", "chat", "responses", "images", "embeddings"),
			serve("videos", tasks)),
		Allow: slices.Concat(
			calls(readChat, "/api/v3/embeddings/multimodal"),
			free("/api/v3/tokenization"),
			[]Route{
				job(AsyncPoll, "GET "+tasks+"/{id}"),
				job(AsyncCancel, "DELETE "+tasks+"/{id}"),
			}),
		Stored:       []string{"context_id", "previous_response_id"},
		IncludeUsage: true,
	}
}

func miniMax() Format {
	videos := serve("videos", "/v2/video_generation")
	videos.TaskID = "task_id"
	return Format{
		Name:    "minimax",
		BaseURL: "https://api.minimax.io", // proxy path /v1/…, /v2/…, /anthropic/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "chat", "responses"),
			serve("messages", "/anthropic/v1/messages"), videos),
		Allow: slices.Concat(
			calls(readChat, "/v1/text/chatcompletion_v2"),
			calls(readSpeech, "/v1/t2a_v2"),
			calls(readImages, "/v1/image_generation"),
			[]Route{
				creates("task_id", bodyModel(), "/v1/video_generation"),
				job(AsyncPoll, "GET /v1/query/video_generation"),
				job(AsyncPoll, "GET /v2/query/video_generation/{id}"),
			}),
		Stored: []string{"previous_response_id"},
	}
}

func cohere() Format {
	return Format{
		Name:    "cohere",
		BaseURL: "https://api.cohere.com", // proxy path /v2/…, /v1/…, /compatibility/v1/…
		Auth:    bearer(),
		Doors: append(compatible("/compatibility/v1", "chat", "embeddings"),
			serve("reranks", "/v2/rerank").by(readBilled)),
		Allow: slices.Concat(
			calls(readBilled, "/v2/chat", "/v1/chat", "/v2/embed", "/v1/embed", "/v1/rerank", "/v1/classify", "/v1/summarize"),
			free("/v1/tokenize", "/v1/detokenize"),
			modelLists("/v1/models")),
		Stored: []string{"conversation_id"},
	}
}

func jina() Format {
	return Format{
		Name:    "jina",
		BaseURL: "https://api.jina.ai", // proxy path /v1/…
		Auth:    bearer(),
		Doors:   append(compatible("/v1", "embeddings"), serve("reranks", "/v1/rerank")),
		Allow:   slices.Concat(calls(readChat, "/v1/classify"), modelLists("/v1/models")),
		Stored:  []string{"classifier_id"},
	}
}

func voyage() Format {
	return Format{
		Name:    "voyage",
		BaseURL: "https://api.voyageai.com", // proxy path /v1/…
		Auth:    bearer(),
		Doors:   append(compatible("/v1", "embeddings"), serve("reranks", "/v1/rerank")),
		Allow:   calls(readChat, "/v1/multimodalembeddings", "/v1/contextualizedembeddings"),
	}
}

// fal runs models by path: at queue.fal.run as jobs, at fal.run while the
// client waits.
func fal() Format {
	videos := serve("videos", "/{model}")
	videos.TaskID = "request_id"
	create := creates("request_id", []ModelSource{PathCapture("**")}, "/**")
	create.Reader = readImages
	return Format{
		Name:    "fal",
		BaseURL: "https://queue.fal.run", // proxy path /{app}
		Auth:    Auth{Header: "Authorization", Prefix: "Key "},
		Doors:   []Door{videos},
		Allow: []Route{
			job(AsyncPoll, "GET /{owner}/{app}/requests/{id}/status"),
			job(AsyncPoll, "GET /{owner}/{app}/requests/{id}"),
			job(AsyncCancel, "PUT /{owner}/{app}/requests/{id}/cancel"),
			create,
		},
		Headers: []string{"x-fal-request-timeout", "x-fal-queue-priority", "x-fal-runner-hint", "x-fal-no-retry"},
	}
}

func replicate() Format {
	create := func(models []ModelSource, path string) Route {
		r := creates("id", models, path)
		r.Reader = readPredict
		return r
	}
	videos := serve("videos", "/v1/models/{model}/predictions").by(readPredict)
	return Format{
		Name:    "replicate",
		BaseURL: "https://api.replicate.com", // proxy path /v1/…
		Auth:    bearer(),
		Doors:   []Door{videos},
		Allow: []Route{
			create([]ModelSource{PathCapture("owner", "name")}, "/v1/models/{owner}/{name}/predictions"),
			create([]ModelSource{BodyField("version")}, "/v1/predictions"),
			job(AsyncPoll, "GET /v1/predictions/{id}"),
			job(AsyncCancel, "POST /v1/predictions/{id}/cancel"),
			{Pattern: "GET /v1/models", Free: true},
			{Pattern: "GET /v1/models/{owner}/{name}", Models: []ModelSource{PathCapture("owner", "name")}, Free: true},
		},
		Headers: []string{"prefer", "cancel-after"},
	}
}
