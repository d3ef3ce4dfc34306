package security

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/provider"
	"modelgate/test/testkit"
)

// filmPath is a path that makes films, as its provider reads it: this table is
// the providers' documentation and not the gateway's own.
type filmPath struct {
	format, path string
	pattern      string  // of the provider table; "" is the path
	seconds      string  // the member that holds the length, "" where there is none
	usual        float64 // seconds of a film that is not asked to have any length
	count        string  // the member that holds how many, "" where there is none
	body         string  // further members
}

func filmPaths() []filmPath {
	const wan = "/api/v1/services/aigc/"
	return []filmPath{
		{format: "openai", path: "/v1/videos", seconds: "seconds", usual: 4},
		{format: "azure-openai", path: "/openai/v1/videos", seconds: "seconds", usual: 4},
		{format: "gemini", path: "/v1/models/m:predictLongRunning", pattern: "/v1/models/{model}:predictLongRunning",
			seconds: "parameters.durationSeconds", usual: 8, count: "parameters.sampleCount"},
		{format: "gemini", path: "/v1beta/models/m:predictLongRunning", pattern: "/v1beta/models/{model}:predictLongRunning",
			seconds: "parameters.durationSeconds", usual: 8, count: "parameters.sampleCount"},
		{format: "xai", path: "/v1/videos/generations", seconds: "duration", usual: 8},
		{format: "xai", path: "/v1/videos/edits", usual: 8},
		{format: "xai", path: "/v1/videos/extensions", seconds: "duration", usual: 6},
		{format: "together", path: "/v2/videos", seconds: "seconds", usual: 5},
		{format: "openrouter", path: "/api/v1/videos", seconds: "duration", usual: 5},
		{format: "zhipu", path: "/api/paas/v4/videos/generations", seconds: "duration", usual: 5},
		{format: "dashscope", path: wan + "video-generation/video-synthesis", seconds: "parameters.duration", usual: 5},
		{format: "dashscope", path: wan + "image2video/video-synthesis", seconds: "parameters.duration", usual: 5},
		{format: "ark", path: "/api/v3/contents/generations/tasks", seconds: "duration", usual: 5},
		{format: "minimax", path: "/v2/video_generation", seconds: "duration", usual: 6},
		{format: "minimax", path: "/v1/video_generation", seconds: "duration", usual: 6},
		{format: "fal", path: "/fal-ai/kling/v2", pattern: "/**", seconds: "duration", usual: 5},
		{format: "replicate", path: "/v1/models/o/n/predictions", pattern: "/v1/models/{owner}/{name}/predictions", seconds: "input.duration", usual: 5},
		{format: "replicate", path: "/v1/predictions", seconds: "input.duration", usual: 5, body: `"version":"v1"`},
	}
}

// TestNoFilmIsFree asks for films on every path that makes them: without a
// length, with one where the provider does not look, and with one that means
// nothing. None costs less than the provider bills, which is its usual length
// where it was not told another one that it understands.
func TestNoFilmIsFree(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		id := fmt.Sprint("job-", made.Add(1))
		fmt.Fprintf(w, `{"id":%q,"task_id":%[1]q,"request_id":%[1]q,"name":"models/m/operations/%[1]s","output":{"task_id":%[1]q},"status":"queued"}`, id)
	}))
	t.Cleanup(upstream.Close)
	var providers, prices strings.Builder
	prices.WriteString("prices:\n")
	names := map[string]bool{}
	for _, p := range filmPaths() {
		if !names[p.format] {
			names[p.format] = true
			fmt.Fprintf(&providers, "\n  - {name: %s, format: %[1]s, base_url: %q, region: us, credential: sk-upstream}", p.format, upstream.URL)
			fmt.Fprintf(&prices, "  - {provider: %s, model: \"*\", price: {second: 0.1}}\n", p.format)
		}
	}
	allFilmPaths(t)
	g := testkit.StartGateway(t, testkit.GatewayOptions{Upstream: upstream.URL, Providers: providers.String(), More: prices.String()})
	key, _ := g.NewKey(g.NewClient("films"))
	for _, p := range filmPaths() {
		t.Run(p.format+" "+p.path, func(t *testing.T) {
			t.Parallel()
			f := filming{t, g.For(t), key, p}
			f.costs("nothing said", f.make(nil), p.usual)
			f.decoys()
			if p.seconds == "" {
				return
			}
			f.costs("a length", f.make(map[string]string{p.seconds: "10"}), 10)
			f.costs("a length as text", f.make(map[string]string{p.seconds: `"10"`}), 10)
			f.costs("no length", f.make(map[string]string{p.seconds: "null"}), p.usual)
			for _, absurd := range []string{"0", "-1", "1e-6", "0.000001", `"0"`, `"5s"`, `""`, `"x"`, "[]", "{}", "[8]", "true", "1e12", "1e300", `"NaN"`, `"Infinity"`, "-0"} {
				f.refusedOrCosts("the length "+absurd, f.make(map[string]string{p.seconds: absurd}), p.seconds, min(p.usual, 5))
			}
			if p.count == "" {
				return
			}
			f.costs("two", f.make(map[string]string{p.count: "2"}), 2*p.usual)
			for _, absurd := range []string{"0", "-1", "0.5", `"x"`, "[]", "1e9"} {
				f.refusedOrCosts("the number "+absurd, f.make(map[string]string{p.count: absurd}), p.count, p.usual)
			}
		})
	}
}

// allFilmPaths fails where the provider table makes films on a path that has no
// row here.
func allFilmPaths(t *testing.T) {
	t.Helper()
	have := map[string]bool{}
	for _, p := range filmPaths() {
		pattern := p.pattern
		if pattern == "" {
			pattern = p.path
		}
		have[p.format+" "+pattern] = true
	}
	for _, f := range provider.Formats() {
		for _, d := range f.Doors {
			path, _, _ := strings.Cut(d.Upstream, "?")
			if d.Job != nil && f.Name != "fal" && f.Name != "replicate" && !have[f.Name+" "+path] {
				t.Errorf("%s makes films at %s", f.Name, path)
			}
		}
		for _, r := range f.Allow {
			_, path, _ := strings.Cut(r.Pattern, " ")
			if r.Async == provider.AsyncCreate && (r.Kind == modelgate.Video || r.Kind == "") && !have[f.Name+" "+path] {
				t.Errorf("%s makes films at %s", f.Name, path)
			}
		}
	}
}

// filming is the calls of one path.
type filming struct {
	t *testing.T
	*testkit.Gateway
	key string
	filmPath
}

// make is a body with the members, whose names are paths.
func (f *filming) make(members map[string]string) string {
	inner := map[string][]string{"input": {`"prompt":"a kite"`}}
	var top []string
	if f.body != "" {
		top = append(top, f.body)
	} else {
		top = append(top, `"model":"m"`)
	}
	for name, value := range members {
		if object, member, ok := strings.Cut(name, "."); ok {
			inner[object] = append(inner[object], fmt.Sprintf("%q:%s", member, value))
		} else {
			top = append(top, fmt.Sprintf("%q:%s", name, value))
		}
	}
	for object, list := range inner {
		top = append(top, fmt.Sprintf("%q:{%s}", object, strings.Join(list, ",")))
	}
	slices.Sort(top)
	return "{" + strings.Join(top, ",") + "}"
}

// decoys are lengths and counts at places where other formats have theirs.
func (f *filming) decoys() {
	f.t.Helper()
	all := map[string]string{}
	for _, name := range []string{"seconds", "duration", "durationSeconds", "duration_seconds", "length", "n", "sampleCount", "num_images", "num_outputs"} {
		for _, place := range []string{"", "parameters.", "input."} {
			if place+name != f.seconds && place+name != f.count {
				all[place+name] = "0.000001"
			}
		}
	}
	switch f.format {
	case "fal": // its models have schemas of their own, of which each of these may be a member
		delete(all, "num_images")
	case "replicate":
		delete(all, "input.num_outputs")
	}
	f.costs("decoys", f.make(all), f.usual)
	if f.seconds != "" {
		all[f.seconds] = "10"
		f.costs("decoys beside a length", f.make(all), 10)
	}
}

func (f *filming) call(body string) (answer, gjson.Result) {
	f.t.Helper()
	a := ask(f.t, f.URL, f.key, "POST", "/"+f.format+f.path, body, "Content-Type", "application/json")
	if a.StatusCode != 200 {
		return a, gjson.Result{}
	}
	rows := ask(f.t, f.URL, f.key, "GET", "/gw/usage?id="+a.Header.Get("X-Gateway-Request-Id"), "")
	return a, gjson.Get(rows.body, "0")
}

// costs holds the row of a call against what so many seconds are billed at.
func (f *filming) costs(what, body string, seconds float64) {
	f.t.Helper()
	a, row := f.call(body)
	if got := row.Get("cost_usd").Num; a.StatusCode != 200 || got < seconds*0.1-1e-9 {
		f.t.Errorf("%s: %s is answered %d and costs %v, want %v at least\n%s", what, body, a.StatusCode, got, seconds*0.1, a.body)
	}
}

// refusedOrCosts wants the member named in a refusal, or the cost.
func (f *filming) refusedOrCosts(what, body, member string, seconds float64) {
	f.t.Helper()
	a, row := f.call(body)
	if a.StatusCode == 400 {
		name, _ := json.Marshal(member)
		if message := gjson.Get(a.body, "error.message").Str; !strings.Contains(message, string(name)) {
			f.t.Errorf("%s: the refusal does not name %s: %s", what, name, message)
		}
		return
	}
	if got := row.Get("cost_usd").Num; a.StatusCode != 200 || got < seconds*0.1-1e-9 {
		f.t.Errorf("%s: %s is answered %d and costs %v, want 400 or %v", what, body, a.StatusCode, got, seconds*0.1)
	}
}
