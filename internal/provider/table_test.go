package provider

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/provider/usage"
)

func TestEveryRow(t *testing.T) {
	t.Parallel()
	want := strings.Fields("openai anthropic gemini azure-openai mistral deepseek xai groq together fireworks openrouter moonshot " +
		"zhipu dashscope ark minimax cohere jina voyage fal replicate bedrock vertex vllm ollama generic")
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
		base := f.BaseURL
		if base == "" {
			base = "http://localhost"
		}
		p, err := New(Config{Name: "p", Format: f.Name, BaseURL: base})
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		for _, d := range f.Doors {
			door := p.Door(d.Path)
			if std, ok := doorNamed(d.Path); !ok || door == nil || std.path != door.Path {
				t.Errorf("%s: door %q is not one of the gateway's", f.Name, d.Path)
				continue
			}
			if len(door.Models) == 0 || !door.Free && door.Reader == nil && door.Job == nil {
				t.Errorf("%s: door %s: no model or no way to meter it", f.Name, d.Path)
			}
			if (door.Path == "/v1/videos") != (door.Job != nil) {
				t.Errorf("%s: door %s: the way of its jobs is %v", f.Name, d.Path, door.Job)
			}
			path, _ := door.Target("m", false)
			if route, _ := p.Route("POST", path); route == nil || route.Reader != door.Reader || route.Job != door.Job {
				t.Errorf("%s: the proxy does not take %s as the door does", f.Name, path)
			}
		}
		for _, r := range f.Allow {
			if r.Reader == nil && !r.Free && r.Async == "" {
				t.Errorf("%s: %s can cost and is not metered", f.Name, r.Pattern)
			}
			if !r.Free && len(r.Models) == 0 {
				t.Errorf("%s: %s can cost and names no model", f.Name, r.Pattern)
			}
		}
		if dark := p.BodyNames(); !slices.Contains(dark, "model") && f.Name != "fal" {
			t.Errorf("%s: bodies are not searched for a model: %q", f.Name, dark)
		}
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format, method, path string
		allowed              bool
		models               []string
	}{
		{"openai", "POST", "/v1/chat/completions", true, nil},
		{"openai", "GET", "/v1/chat/completions", false, nil},
		{"openai", "GET", "/v1/models", true, nil},
		{"openai", "GET", "/v1/models/gpt", true, []string{"gpt"}},
		{"openai", "GET", "/v1/files", false, nil},
		{"openai", "POST", "/v1/batches", false, nil},
		{"openai", "GET", "/v1/responses/resp_1", false, nil},
		{"openai", "GET", "/v1/videos", false, nil},
		{"openai", "POST", "/v1/organization/admin_api_keys", false, nil},
		{"anthropic", "POST", "/v1/messages/count_tokens", true, nil},
		{"anthropic", "POST", "/v1/messages/batches", false, nil},
		{"gemini", "POST", "/v1beta/models/gemini-x:generateContent", true, []string{"gemini-x"}},
		{"gemini", "POST", "/v1beta/tunedModels/t:generateContent", false, nil},
		{"gemini", "GET", "/v1beta/files", false, nil},
		{"azure-openai", "POST", "/openai/deployments/mine/chat/completions", true, []string{"mine"}},
		{"replicate", "POST", "/v1/models/o/n/predictions", true, []string{"o/n"}},
		{"replicate", "GET", "/v1/predictions", false, nil},
		{"fal", "POST", "/fal-ai/flux/dev", true, []string{"fal-ai/flux/dev"}},
		{"fireworks", "GET", "/inference/v1/models/accounts/fireworks/models/x", true, []string{"accounts/fireworks/models/x"}},
		{"deepseek", "GET", "/user/balance", false, nil},
		{"ollama", "DELETE", "/api/delete", false, nil},
		{"ark", "GET", "/api/v3/contents/generations/tasks", false, nil},
		{"ark", "DELETE", "/api/v3/contents/generations/tasks/cgt-1", true, nil},
		{"generic", "PATCH", "/anything/at/all", true, nil},
		{"bedrock", "POST", "/anthropic/v1/messages", true, nil},
		{"bedrock", "GET", "/openai/v1/models", true, nil},
		{"bedrock", "POST", "/async-invoke", false, nil},
		{"bedrock", "POST", "/guardrail/g/version/1/apply", false, nil},
	}
	for _, test := range tests {
		p := setup(t, Config{Format: test.format})
		route, captures := p.Route(test.method, test.path)
		if (route != nil) != test.allowed {
			t.Errorf("%s %s %s: allowed %v, want %v", test.format, test.method, test.path, route != nil, test.allowed)
		}
		if route == nil || test.models == nil {
			continue
		}
		if got, err := Models(route.Models, &Request{Path: captures}); err != nil || !slices.Equal(got, test.models) {
			t.Errorf("%s %s %s: models %q, %v, want %q", test.format, test.method, test.path, got, err, test.models)
		}
	}
}

func TestDoorTarget(t *testing.T) {
	t.Parallel()
	tests := []struct{ format, door, override, model, path, query string }{
		{"openai", "/v1/chat/completions", "", "m", "/v1/chat/completions", ""},
		{"groq", "/v1/chat/completions", "", "m", "/openai/v1/chat/completions", ""},
		{"cohere", "/v1/reranks", "", "m", "/v2/rerank", ""},
		{"dashscope", "/v1/reranks", "", "m", "/compatible-api/v1/reranks", ""},
		{"replicate", "/v1/videos", "", "o/n", "/v1/models/o/n/predictions", ""},
		{"azure-openai", "/v1/chat/completions", "/openai/deployments/{model}/chat/completions?api-version=2024-10-21", "a b", "/openai/deployments/a%20b/chat/completions", "api-version=2024-10-21"},
		{"generic", "/v1/chat/completions", "/chat", "m", "/chat", ""},
	}
	for _, test := range tests {
		cfg := Config{Format: test.format}
		if test.override != "" {
			cfg.Paths = map[string]string{"chat": test.override}
		}
		p := setup(t, cfg)
		door := p.Door(test.door)
		if door == nil {
			t.Errorf("%s does not serve %s", test.format, test.door)
			continue
		}
		if path, query := door.Target(test.model, false); path != test.path || query != test.query {
			t.Errorf("%s %s: %s?%s, want %s?%s", test.format, test.door, path, query, test.path, test.query)
		}
		if place := map[bool]Place{true: ModelInPath}[strings.Contains(test.path+test.override, "{model}") || test.format == "replicate"]; door.Place != place {
			t.Errorf("%s %s: model in %q, want %q", test.format, test.door, door.Place, place)
		}
	}
	if setup(t, Config{Format: "anthropic"}).Door("/v1/chat/completions") != nil {
		t.Error("a Messages provider serves the chat door")
	}
}

func TestFormatsThatAskForUsage(t *testing.T) {
	t.Parallel()
	want := map[string]bool{"openai": true, "azure-openai": true, "deepseek": true, "moonshot": true, "dashscope": true, "together": true,
		"fireworks": true, "xai": true, "bedrock": true, "vertex": true, "vllm": true, "ollama": true, "ark": true, "groq": false, "mistral": false, "openrouter": false}
	for format, asks := range want {
		p := setup(t, Config{Format: format})
		if d := p.Door("/v1/chat/completions"); d.IncludeUsage != asks {
			t.Errorf("%s: streams must be asked for usage: %v, want %v", format, d.IncludeUsage, asks)
		}
		if d := p.Door("/v1/embeddings"); d != nil && d.IncludeUsage {
			t.Errorf("%s: embeddings are asked for usage", format)
		}
	}
}

func TestOperatorPaths(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "openai", Allow: []string{"GET /v1/files/**", "POST /v1/agents/{model}/run"}})
	route, _ := p.Route("GET", "/v1/files/f/content")
	if route == nil || !route.Free {
		t.Errorf("route %+v, want a free one", route)
	}
	route, captures := p.Route("POST", "/v1/agents/x/run")
	if route == nil || route.Free || route.Reader != usage.Any {
		t.Fatalf("route %+v, want one that is metered", route)
	}
	if got, err := Models(route.Models, &Request{Path: captures}); err != nil || !slices.Equal(got, []string{"x"}) {
		t.Errorf("models %q, %v", got, err)
	}
	if !slices.Contains(route.Stored, "previous_response_id") {
		t.Error("the operator's path lets stored objects through")
	}
	p = setup(t, Config{Format: "generic", Allow: []string{"POST /model/{model}/invoke"}})
	if route, captures = p.Route("POST", "/model/x/invoke"); route == nil || captures.Get("model") != "x" {
		t.Errorf("a path of a generic provider of which the operator has said where its model is: %+v, %v", route, captures)
	}
	for _, path := range []string{"/%6dodel/x/invoke", "/model/x/invok%65", "/m%6Fdel/%78/invoke"} {
		if route, _ = p.Route("POST", path); route != nil {
			t.Errorf("%s is served as %s", path, route.Pattern)
		}
	}
	if route, captures = p.Route("POST", "/model/a%20b%3A0/invoke"); captures.Get("model") != "a b:0" {
		t.Errorf("a model that needs escapes: %+v, %v", route, captures)
	}
}

// Jobs that are made at a path of the operator's are followed below it where
// the format follows them below its own.
func TestOperatorVideoPath(t *testing.T) {
	t.Parallel()
	j := &modelgate.Job{NewJob: modelgate.NewJob{TaskID: "v1"}, Model: "m"}
	for _, tt := range []struct {
		format, path      string
		poll, query, stop string // stop "" is no way
	}{
		{"openai", "/llm/videos", "/llm/videos/v1", "", "/llm/videos/v1"},
		{"azure-openai", "/openai/v1/videos?api-version=preview", "/openai/v1/videos/v1", "api-version=preview", "/openai/v1/videos/v1"},
		{"openrouter", "/proxy/videos", "/proxy/videos/v1", "", ""},
		{"generic", "/make/videos", "/make/videos/v1", "", "/make/videos/v1"},
		{"ark", "/eu/tasks", "/eu/tasks/v1", "", "/eu/tasks/v1"},
		{"xai", "/eu/v1/videos/generations", "/v1/videos/v1", "", ""},
	} {
		p := setup(t, Config{Format: tt.format, Paths: map[string]string{"videos": tt.path}})
		way := p.Door("/v1/videos").Job
		if p.JobProtocol(way.Name) != way {
			t.Errorf("%s: jobs of the door are followed as another way", tt.format)
		}
		poll, err := way.Call(AsyncPoll, j)
		if err != nil || poll.Path != tt.poll || poll.Query != tt.query {
			t.Errorf("%s: polled at %s?%s, %v, want %s?%s", tt.format, poll.Path, poll.Query, err, tt.poll, tt.query)
		}
		stop, _ := way.Call(AsyncCancel, j)
		if stop.Path != tt.stop {
			t.Errorf("%s: cancelled at %q, want %q", tt.format, stop.Path, tt.stop)
		}
		if way.Has(AsyncContent) != (tt.format != "ark" && tt.format != "xai") {
			t.Errorf("%s: downloads at %q", tt.format, way.Content)
		}
		if route, _ := p.Route("GET", tt.poll); route == nil || route.Async != AsyncPoll {
			t.Errorf("%s: GET %s is %+v", tt.format, tt.poll, route)
		}
	}
}

// What stands below a job that somebody has made is no model of one's own,
// also where a format takes any path for one.
func TestPathsBelowAJob(t *testing.T) {
	t.Parallel()
	p := setup(t, Config{Format: "fal"})
	for _, path := range []string{
		"/o/a/requests/x", "/o/a/requests/x/cancel", "/o/a/requests/x/status/stream", "/workflows/o/a/requests/x/cancel",
		"/o/a/%72equests/x/cancel", "/o/a/requests/%78/cancel",
	} {
		if route, _ := p.Route("POST", path); route != nil {
			t.Errorf("POST %s is served as %s", path, route.Pattern)
		}
	}
	for _, path := range []string{"/fal-ai/kling/v2", "/fal-ai/kling/requests", "/o/a/v1/image-to-video", "/o/requests/v1"} {
		if route, _ := p.Route("POST", path); route == nil || route.Async != AsyncCreate {
			t.Errorf("POST %s: %+v, want one that makes jobs", path, route)
		}
	}
	if route, _ := p.Route("PUT", "/o/a/requests/x/cancel"); route == nil || route.Async != AsyncCancel {
		t.Errorf("the way to cancel a job is %+v", route)
	}
}

// A provider is its row: its name stands in no other source of the package.
func TestProvidersAreData(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "table") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Formats() {
			quoted := regexp.MustCompile(`"` + regexp.QuoteMeta(f.Name) + `"`)
			if at := quoted.FindIndex(source); at != nil {
				t.Errorf("%s names the provider %s: %s", file, f.Name, source[max(0, at[0]-30):at[1]])
			}
		}
	}
}
