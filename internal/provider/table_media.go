package provider

import (
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/provider/usage"
)

// mediaFormats have native formats of their own beside or instead of
// OpenAI's.
func mediaFormats() []Format {
	return []Format{dashScope(), ark(), miniMax(), cohere(), jina(), voyage(), fal(), replicate()}
}

func dashScope() Format {
	const services = "/api/v1/services/"
	tasks := &JobProtocol{
		Name: "tasks", TaskID: "output.task_id", Poll: "GET /api/v1/tasks/{id}", Cancel: "POST /api/v1/tasks/{id}/cancel",
		JobStatus: usage.JobStatus{
			State: []string{"output.task_status"}, Words: map[string]modelgate.JobEvent{"unknown": modelgate.JobLapses}, // the task is gone
			Seconds: []string{"usage.output_video_duration", "usage.video_duration", "usage.duration"},
			Images:  []string{"usage.image_count"}, Size: "usage.size",
		},
		Download: Download{File: []string{"output.video_url", "output.results.0.url", "output.results.0.transcription_url"}},
	}
	videos := serve("videos", services+"aigc/video-generation/video-synthesis").withJobs(tasks).withUnits(dashScopeVideos)
	videos.Header = map[string]string{"X-Dashscope-Async": "enable"} // jobs are refused without it
	return Format{
		Name:    "dashscope",
		BaseURL: "https://dashscope-intl.aliyuncs.com", // proxy path /compatible-mode/v1/…, /api/v1/…
		Auth:    bearer(),
		Doors: append(compatible("/compatible-mode/v1", "chat", "completions", "embeddings"),
			serve("reranks", "/compatible-api/v1/reranks"), videos),
		Allow: slices.Concat(
			calls(usage.NativeOutput,
				services+"aigc/text-generation/generation",
				services+"aigc/multimodal-generation/generation",
				services+"embeddings/text-embedding/text-embedding",
				services+"embeddings/multimodal-embedding/multimodal-embedding",
				services+"rerank/text-rerank/text-rerank"),
			[]Route{
				creates(tasks, modelgate.Image, bodyModel(), services+"aigc/text2image/image-synthesis").withUnits(dashScopeImages),
				creates(tasks, modelgate.Image, bodyModel(), services+"aigc/image2image/image-synthesis").withUnits(dashScopeImages),
				creates(tasks, modelgate.Image, bodyModel(), services+"aigc/image-generation/generation").withUnits(dashScopeImages),
				creates(tasks, modelgate.Video, bodyModel(), services+"aigc/image2video/video-synthesis").withUnits(dashScopeVideos),
				creates(tasks, modelgate.Audio, bodyModel(), services+"audio/asr/transcription").withUnits(transcribed),
			},
			modelLists("/compatible-mode/v1/models")),
		DeferHeader:   "X-Dashscope-Async",
		StoredSchemes: []string{"fileid://", "oss://"},
		Headers:       []string{"x-dashscope-async", "x-dashscope-sse", "x-dashscope-datainspection", "x-dashscope-ossresourceresolve"},
		IncludeUsage:  true,
	}
}

func ark() Format {
	const tasks = "/api/v3/contents/generations/tasks"
	jobs := &JobProtocol{
		Name: "tasks", TaskID: "id", Poll: "GET " + tasks + "/{id}", Cancel: "DELETE " + tasks + "/{id}",
		Frames: true,
		Life:   73 * time.Hour, // its own limit is 72 at most, and 48 unless asked
		JobStatus: usage.JobStatus{State: []string{"status"}, Output: []string{"usage.completion_tokens"},
			Searches: []string{"usage.tool_usage.web_search"}, Length: []string{"duration"}, Size: "resolution", ServiceTier: "service_tier"},
		Download: Download{File: []string{"content.video_url", "content.file_url"}},
	}
	return Format{
		Name:    "ark",
		BaseURL: "https://ark.ap-southeast.bytepluses.com", // proxy path /api/v3/…
		Auth:    bearer(),
		Doors: append(compatible("/api/v3", "chat", "responses", "embeddings"),
			serve("images", "/api/v3/images/generations").withUnits(arkImages),
			serve("videos", tasks).withJobs(jobs).withUnits(arkVideos)),
		Allow: slices.Concat(
			calls(usage.Chat, "/api/v3/embeddings/multimodal"),
			free("/api/v3/tokenization")),
		Stored:       []string{"context_id", "previous_response_id"},
		IncludeUsage: true,
	}
}

func miniMax() Format {
	videos := serve("videos", "/v2/video_generation").withJobs(&JobProtocol{
		Name: "v2", TaskID: "task_id", Poll: "GET /v2/query/video_generation/{id}",
		JobStatus: usage.JobStatus{State: []string{"task.status"}, Seconds: []string{"task.usage.total_seconds", "task.usage.output_seconds"},
			Length: []string{"task.duration"}, Size: "task.resolution"},
		Download: Download{File: []string{"task.content.url"}},
	}).withUnits(miniMaxVideos)
	older := &JobProtocol{
		Name: "v1", TaskID: "task_id", Poll: "GET /v1/query/video_generation?task_id={id}",
		JobStatus: usage.JobStatus{State: []string{"status"}},
		Download:  Download{File: []string{"file_id"}, Lookup: "GET /v1/files/retrieve?file_id={file}", At: "file.download_url"},
	}
	return Format{
		Name:    "minimax",
		BaseURL: "https://api.minimax.io", // proxy path /v1/…, /v2/…, /anthropic/…
		Auth:    bearer(),
		Doors: append(compatible("/v1", "chat", "responses"),
			serve("messages", "/anthropic/v1/messages"), videos),
		Allow: slices.Concat(
			calls(usage.Chat, "/v1/text/chatcompletion_v2"),
			[]Route{
				calls(usage.Speech, "/v1/t2a_v2")[0].withUnits(speechText),
				calls(usage.Images, "/v1/image_generation")[0].withUnits(miniMaxImages),
				creates(older, modelgate.Video, bodyModel(), "/v1/video_generation").withUnits(miniMaxVideos),
			}),
		Stored:        []string{"previous_response_id"},
		StoredSchemes: []string{"mm_file://"},
		Query:         []string{"GroupId"},
	}
}

func cohere() Format {
	return Format{
		Name:    "cohere",
		BaseURL: "https://api.cohere.com", // proxy path /v2/…, /v1/…, /compatibility/v1/…
		Auth:    bearer(),
		Doors: append(compatible("/compatibility/v1", "chat", "embeddings"),
			serve("reranks", "/v2/rerank").withReader(usage.Billed)),
		Allow: slices.Concat(
			calls(usage.Billed, "/v2/chat", "/v1/chat", "/v2/embed", "/v1/embed", "/v1/rerank", "/v1/classify", "/v1/summarize"),
			free("/v1/tokenize", "/v1/detokenize"),
			modelLists("/v1/models", "page_size", "page_token", "endpoint", "default_only")),
		Stored: []string{"conversation_id"},
	}
}

func jina() Format {
	return Format{
		Name:    "jina",
		BaseURL: "https://api.jina.ai", // proxy path /v1/…
		Auth:    bearer(),
		Doors:   append(compatible("/v1", "embeddings"), serve("reranks", "/v1/rerank")),
		Allow:   slices.Concat(calls(usage.Chat, "/v1/classify"), modelLists("/v1/models")),
		Stored:  []string{"classifier_id"},
	}
}

func voyage() Format {
	return Format{
		Name:    "voyage",
		BaseURL: "https://api.voyageai.com", // proxy path /v1/…
		Auth:    bearer(),
		Doors:   append(compatible("/v1", "embeddings"), serve("reranks", "/v1/rerank")),
		Allow:   calls(usage.Chat, "/v1/multimodalembeddings", "/v1/contextualizedembeddings"),
	}
}

// fal runs models by path: at queue.fal.run as jobs, at fal.run while the
// client waits.
func fal() Format {
	const request = "/{app}/requests/{id}"
	jobs := &JobProtocol{
		Name: "requests", TaskID: "request_id", Asks: true, Query: []string{"logs"},
		Poll: "GET " + request + "/status", Result: "GET " + request, Cancel: "PUT " + request + "/cancel",
		JobStatus: usage.JobStatus{State: []string{"status"}, Seconds: []string{"video.duration", "audio.duration"}, Images: []string{"images.#"},
			Refusal: []string{"error_type", "detail.0.type"}, Units: "X-Fal-Billable-Units"},
		Download: Download{File: []string{"video.url", "images.0.url", "image.url", "audio.url", "audio_file.url", "model_mesh.url"}},
	}
	return Format{
		Name:    "fal",
		BaseURL: "https://queue.fal.run", // proxy path /{app}
		Auth:    Auth{Header: "Authorization", Prefix: "Key "},
		Doors:   []Door{serve("videos", "/{model}").withJobs(jobs).withUnits(falUnits)},
		Allow:   []Route{creates(jobs, "", []ModelSource{PathCapture("**")}, "/**").withReader(usage.Images).withUnits(falUnits)},
		Query:   []string{"fal_webhook"},
		// What is below a request is its maker's.
		Except:  []string{"POST /{owner}/{alias}/requests/**", "POST /{namespace}/{owner}/{alias}/requests/**"},
		Headers: []string{"x-fal-request-timeout", "x-fal-queue-priority", "x-fal-runner-hint", "x-fal-no-retry"},
	}
}

func replicate() Format {
	jobs := &JobProtocol{
		Name: "predictions", TaskID: "id", Poll: "GET /v1/predictions/{id}", Cancel: "POST /v1/predictions/{id}/cancel",
		JobStatus: usage.JobStatus{State: []string{"status"}, Seconds: []string{"metrics.predict_time"},
			Images: []string{"metrics.image_count"}, Output: []string{"metrics.output_token_count"}},
		Download: Download{File: []string{"output", "output.0"}},
	}
	models := lists("/v1/models", "/v1/models/{owner}/{name}")
	models[0].Query, models[1].Models = []string{"cursor"}, []ModelSource{PathCapture("owner", "name")}
	return Format{
		Name:    "replicate",
		BaseURL: "https://api.replicate.com", // proxy path /v1/…
		Auth:    bearer(),
		Doors:   []Door{serve("videos", "/v1/models/{model}/predictions").withJobs(jobs).withReader(usage.Prediction)},
		Allow: append([]Route{
			creates(jobs, "", []ModelSource{PathCapture("owner", "name")}, "/v1/models/{owner}/{name}/predictions").withReader(usage.Prediction),
			creates(jobs, "", []ModelSource{BodyField("version")}, "/v1/predictions").withReader(usage.Prediction),
		}, models...),
		Headers: []string{"prefer", "cancel-after"},
	}
}
