package simulator

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// endpoint is one route: the end of a path, and who answers there.
type endpoint struct {
	method  string
	pattern string // segments; {} stands for any one
	format  format
	needs   string              // members that a request must have, separated by spaces
	read    func(fields) prompt // nil: the request has no text
	serve   func(*call) answer
}

// bases is what may stand before an endpoint's pattern: the base paths of the
// providers that speak the same format.
func bases() []string {
	return []string{
		"", "/v1", "/api/v1", "/api/v3", "/openai/v1", "/api/openai/v1", "/v1beta/openai", "/compatible-mode/v1",
		"/compatible-api/v1", "/compatibility/v1", "/inference/v1", "/api/paas/v4", "/anthropic/v1",
	}
}

func endpoints() []endpoint {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []endpoint{
		{post, "/chat/completions", formatOpenAI, "messages model", readTurns, (*call).chat},
		{post, "/completions", formatOpenAI, "", readAll, (*call).completions},
		{post, "/responses", formatOpenAI, "input", readTurns, (*call).responses},
		{post, "/embeddings", formatOpenAI, "input", readAll, (*call).embeddings},
		{post, "/moderations", formatOpenAI, "input", readAll, (*call).moderations},
		{post, "/images/generations", formatOpenAI, "prompt", readAll, (*call).images},
		{post, "/images/edits", formatOpenAI, "prompt", readAll, (*call).images},
		{post, "/audio/speech", formatOpenAI, "input", readAll, (*call).speech},
		{post, "/audio/transcriptions", formatOpenAI, "file", readAll, (*call).transcription},
		{post, "/audio/translations", formatOpenAI, "file", readAll, (*call).transcription},
		{post, "/videos", formatOpenAI, "prompt", readAll, (*call).createVideo},
		{get, "/videos", formatOpenAI, "", nil, (*call).listVideos},
		{get, "/videos/{}", formatOpenAI, "", nil, (*call).pollVideo},
		{get, "/videos/{}/content", formatOpenAI, "", nil, (*call).videoContent},
		{del, "/videos/{}", formatOpenAI, "", nil, (*call).deleteVideo},
		{post, "/messages", formatAnthropic, "max_tokens messages", readTurns, (*call).messages},
		{post, "/messages/count_tokens", formatAnthropic, "", readTurns, (*call).countTokens},
		{post, "/v2/chat", formatCohere, "messages model", readTurns, (*call).cohereChat},
		{post, "/v2/rerank", formatCohere, "query documents", readAll, (*call).rerankCohere},
		{post, "/rerank", formatOpenAI, "query documents", readAll, (*call).rerank},
		{post, "/reranks", formatOpenAI, "query documents", readAll, (*call).rerank},
		{post, "/model/{}/converse", formatBedrock, "messages", readTurns, (*call).converse},
		{post, "/model/{}/converse-stream", formatBedrock, "messages", readTurns, (*call).converse},
		{post, "/model/{}/invoke", formatBedrock, "max_tokens messages", readTurns, (*call).invoke},
		{post, "/model/{}/invoke-with-response-stream", formatBedrock, "max_tokens messages", readTurns, (*call).invoke},
		{post, "/model/{}/count-tokens", formatBedrock, "", readTurns, (*call).bedrockTokens},
		{post, "/v1beta/models/{}", formatGemini, "", readTurns, (*call).gemini},
		{get, "/v1beta/models", formatGemini, "", nil, (*call).listModels},
		{get, "/v1beta/models/{}", formatGemini, "", nil, (*call).oneModel},
		{post, "/v1/models/{}", formatGemini, "", readTurns, (*call).gemini},
		{get, "/models", formatOpenAI, "", nil, (*call).listModels},
		{get, "/models/{}", formatOpenAI, "", nil, (*call).oneModel},
		{post, "/services/aigc/video-generation/video-synthesis", formatDashScope, "", readAll, (*call).createTask},
		{get, "/tasks/{}", formatDashScope, "", nil, (*call).pollTask},
		{post, "/tasks/{}/cancel", formatDashScope, "", nil, (*call).cancelTask},
		{post, "/contents/generations/tasks", formatOpenAI, "model", readAll, (*call).createArk},
		{get, "/contents/generations/tasks/{}", formatOpenAI, "", nil, (*call).pollArk},
		{del, "/contents/generations/tasks/{}", formatOpenAI, "", nil, (*call).deleteArk},
		{get, "/files/{}", formatOpenAI, "", nil, (*call).file},
	}
}

// find is the endpoint of the request. It sets the call's format, also when
// there is none, and its argument.
func (c *call) find() (endpoint, bool) {
	path := strings.Split(c.r.URL.EscapedPath(), "/")
	for _, e := range endpoints() {
		arg, ok := match(path, e.pattern)
		if !ok {
			continue
		}
		c.format = e.format
		if e.method == c.r.Method {
			c.arg = arg
			return e, true
		}
	}
	return endpoint{}, false
}

func match(path []string, pattern string) (arg string, ok bool) {
	want := strings.Split(pattern, "/")[1:]
	at := len(path) - len(want)
	if at < 0 || !slices.Contains(bases(), strings.Join(path[:at], "/")) {
		return "", false
	}
	for i, segment := range want {
		got := path[at+i]
		if segment != "{}" {
			if got != segment {
				return "", false
			}
			continue
		}
		value, err := url.PathUnescape(got)
		if err != nil || value == "" {
			return "", false
		}
		arg = value
	}
	return arg, true
}

// open reports whether no credential is needed: the address of a result is its
// own permission.
func (e endpoint) open() bool { return e.pattern == "/files/{}" }
