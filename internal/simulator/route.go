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
	open    string // why no credential is needed; "" when one is
	read    func(fields) prompt
	serve   func(*Provider, *call) answer
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
		{post, "/chat/completions", formatOpenAI, "", readTurns, (*Provider).chat},
		{post, "/completions", formatOpenAI, "", readAll, (*Provider).completions},
		{post, "/responses", formatOpenAI, "", readTurns, (*Provider).responses},
		{post, "/embeddings", formatOpenAI, "", readAll, (*Provider).embeddings},
		{post, "/moderations", formatOpenAI, "", readAll, (*Provider).moderations},
		{post, "/images/generations", formatOpenAI, "", readAll, (*Provider).images},
		{post, "/images/edits", formatOpenAI, "", readAll, (*Provider).images},
		{post, "/audio/speech", formatOpenAI, "", readAll, (*Provider).speech},
		{post, "/audio/transcriptions", formatOpenAI, "", readAll, (*Provider).transcription},
		{post, "/audio/translations", formatOpenAI, "", readAll, (*Provider).transcription},
		{post, "/videos", formatOpenAI, "", readAll, (*Provider).createVideo},
		{get, "/videos", formatOpenAI, "", nil, (*Provider).listVideos},
		{get, "/videos/{}", formatOpenAI, "", nil, (*Provider).pollVideo},
		{get, "/videos/{}/content", formatOpenAI, "", nil, (*Provider).videoContent},
		{del, "/videos/{}", formatOpenAI, "", nil, (*Provider).deleteVideo},
		{post, "/messages", formatAnthropic, "", readTurns, (*Provider).messages},
		{post, "/messages/count_tokens", formatAnthropic, "", readTurns, (*Provider).countTokens},
		{post, "/v2/rerank", formatCohere, "", readAll, (*Provider).rerankCohere},
		{post, "/rerank", formatOpenAI, "", readAll, (*Provider).rerank},
		{post, "/reranks", formatOpenAI, "", readAll, (*Provider).rerank},
		{post, "/v1beta/models/{}", formatGemini, "", readTurns, (*Provider).gemini},
		{get, "/v1beta/models", formatGemini, "", nil, (*Provider).geminiModels},
		{get, "/v1beta/models/{}", formatGemini, "", nil, (*Provider).geminiModel},
		{post, "/v1/models/{}", formatGemini, "", readTurns, (*Provider).gemini},
		{get, "/models", formatOpenAI, "", nil, (*Provider).models},
		{get, "/models/{}", formatOpenAI, "", nil, (*Provider).model},
		{post, "/services/aigc/video-generation/video-synthesis", formatDashScope, "", readAll, (*Provider).createTask},
		{get, "/tasks/{}", formatDashScope, "", nil, (*Provider).pollTask},
		{post, "/tasks/{}/cancel", formatDashScope, "", nil, (*Provider).cancelTask},
		{post, "/contents/generations/tasks", formatOpenAI, "", readAll, (*Provider).createArk},
		{get, "/contents/generations/tasks/{}", formatOpenAI, "", nil, (*Provider).pollArk},
		{del, "/contents/generations/tasks/{}", formatOpenAI, "", nil, (*Provider).deleteArk},
		{get, "/files/{}", formatOpenAI, "a result's address is its own permission", nil, (*Provider).file},
	}
}

// find is the endpoint of the request. It sets the call's format, also when
// there is none, and its argument.
func find(c *call) (endpoint, bool) {
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
