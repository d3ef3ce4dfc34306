package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"modelgate/internal/provider"
	"modelgate/test/testkit"
)

// studioCase is one path that makes jobs, in the provider's own words. ID
// stands for the id that a job gets. Paths are below the provider's name.
type studioCase struct {
	format, create, pattern, body string
	made                          string
	poll, runs, ends              string
	told                          string // of ends to a key bound to a sub-account; "" is all of it
	result, done                  string // where what came of it is read elsewhere
	cancel, cancelled             string
	content                       string
	model, kind, author           string
	status                        string
	cost                          float64
	location                      string // of the download at the door; "" is bytes
}

const (
	filmBody = `{"model":"m","prompt":"a kite","duration":5,"seconds":"5","parameters":{"duration":5,"durationSeconds":5},"instances":[]}`
	queued   = `{"id":"ID","status":"queued"}`
)

// studioCases has at least one case for each path of the table that makes
// jobs. Providers are named after their formats; a second costs 0.10, a
// picture 0.04, a million output tokens 5.
func studioCases() []studioCase {
	openAI := func(format, path string) studioCase {
		return studioCase{
			format: format, create: path, body: filmBody, made: queued, poll: path + "/ID", runs: queued, ends: `{"id":"ID","status":"completed","seconds":"5"}`,
			cancel: "DELETE " + path + "/ID", cancelled: `{"id":"ID","deleted":true}`, content: path + "/ID/content",
			model: "m", kind: "video", status: "succeeded", cost: 0.5,
		}
	}
	router := openAI("openrouter", "/api/v1/videos")
	router.cancel, router.ends, router.told = "", `{"id":"ID","status":"completed","usage":{"cost":0.4}}`, `{"id":"ID","status":"completed","usage":{}}`
	dash := func(path, kind, ends string, cost float64, location string) studioCase {
		return studioCase{
			format: "dashscope", create: "/api/v1/services/" + path, body: filmBody, made: `{"output":{"task_id":"ID","task_status":"PENDING"}}`,
			poll: "/api/v1/tasks/ID", runs: `{"output":{"task_id":"ID","task_status":"RUNNING"}}`, ends: ends,
			cancel: "POST /api/v1/tasks/ID/cancel", cancelled: `{"request_id":"r"}`, model: "m", kind: kind, status: "succeeded", cost: cost, location: location,
		}
	}
	const pictures = `{"output":{"task_status":"SUCCEEDED","results":[{"url":"https://cdn.example/ID.png"}]},"usage":{"image_count":2}}`
	const filmed = `{"output":{"task_status":"SUCCEEDED","video_url":"https://cdn.example/ID.mp4"},"usage":{"output_video_duration":6.5}}`
	xai := func(path string) studioCase {
		return studioCase{
			format: "xai", create: path, body: filmBody, made: `{"request_id":"ID"}`, poll: "/v1/videos/ID", runs: `{"progress":3}`,
			ends:  `{"status":"done","video":{"url":"https://cdn.example/ID.mp4","duration":6,"respect_moderation":true}}`,
			model: "m", kind: "video", status: "succeeded", cost: 0.6, location: "https://cdn.example/ID.mp4",
		}
	}
	gemini := func(version string) studioCase {
		return studioCase{
			format: "gemini", create: version + "/models/m:predictLongRunning", pattern: version + "/models/{model}:predictLongRunning", body: filmBody,
			made: `{"name":"models/m/operations/ID"}`, poll: version + "/models/m/operations/ID", runs: `{"name":"models/m/operations/ID"}`,
			ends:  `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"SELF/gemini/v1beta/files/ID:download?alt=media"}}]}}}`,
			model: "m", kind: "video", status: "succeeded", cost: 0.5,
		}
	}
	ark := func(model, kind, author, ends string, cost float64, location string) studioCase {
		const tasks = "/api/v3/contents/generations/tasks"
		return studioCase{
			format: "ark", create: tasks, body: `{"model":"` + model + `","content":[{"type":"text","text":"x"}],"duration":5}`, made: `{"id":"ID"}`,
			poll: tasks + "/ID", runs: `{"id":"ID","status":"running"}`, ends: ends, cancel: "DELETE " + tasks + "/ID", cancelled: `{}`,
			model: model, kind: kind, author: author, status: "succeeded", cost: cost, location: location,
		}
	}
	fal := func(model, kind, author, done string, cost float64, location string) studioCase {
		app := strings.Join(strings.Split(model, "/")[:2], "/")
		return studioCase{
			format: "fal", create: "/" + model, pattern: "/**", body: `{"prompt":"x","duration":"5"}`, made: `{"request_id":"ID","status":"IN_QUEUE"}`,
			poll: "/" + app + "/requests/ID/status", runs: `{"status":"IN_PROGRESS"}`, ends: `{"status":"COMPLETED"}`,
			result: "/" + app + "/requests/ID", done: done, cancel: "PUT /" + app + "/requests/ID/cancel", cancelled: `{"status":"CANCELLED"}`,
			model: model, kind: kind, author: author, status: "succeeded", cost: cost, location: location,
		}
	}
	replicate := func(path, pattern, model string) studioCase {
		return studioCase{
			format: "replicate", create: path, pattern: pattern, body: `{"version":"` + model + `","input":{"duration":5}}`, made: `{"id":"ID","status":"starting"}`,
			poll: "/v1/predictions/ID", runs: `{"id":"ID","status":"processing"}`,
			ends:   `{"id":"ID","status":"succeeded","output":"https://cdn.example/ID.mp4","metrics":{"predict_time":1.5}}`,
			cancel: "POST /v1/predictions/ID/cancel", cancelled: `{"id":"ID","status":"canceled"}`,
			model: model, kind: "video", status: "succeeded", cost: 0.15, location: "https://cdn.example/ID.mp4",
		}
	}
	return []studioCase{
		openAI("openai", "/v1/videos"), openAI("azure-openai", "/openai/v1/videos"), router,
		gemini("/v1"), gemini("/v1beta"), xai("/v1/videos/generations"), xai("/v1/videos/edits"), xai("/v1/videos/extensions"),
		{
			format: "together", create: "/v2/videos", body: filmBody, made: `{"id":"ID","status":"in_progress"}`, poll: "/v2/videos/ID",
			runs: `{"id":"ID","status":"in_progress"}`, ends: `{"id":"ID","status":"completed","outputs":{"cost":0.28,"video_url":"https://cdn.example/ID.mp4"}}`,
			told:  `{"id":"ID","status":"completed","outputs":{"video_url":"https://cdn.example/ID.mp4"}}`,
			model: "m", kind: "video", status: "succeeded", cost: 0.5, location: "https://cdn.example/ID.mp4",
		},
		{
			format: "zhipu", create: "/api/paas/v4/videos/generations", body: filmBody, made: `{"id":"ID","task_status":"PROCESSING"}`,
			poll: "/api/paas/v4/async-result/ID", runs: `{"task_status":"PROCESSING"}`,
			ends:  `{"task_status":"SUCCESS","video_result":[{"url":"https://cdn.example/ID.mp4"}]}`,
			model: "m", kind: "video", status: "succeeded", cost: 0.5, location: "https://cdn.example/ID.mp4",
		},
		dash("aigc/video-generation/video-synthesis", "video", filmed, 0.65, "https://cdn.example/ID.mp4"),
		dash("aigc/image2video/video-synthesis", "video", filmed, 0.65, "https://cdn.example/ID.mp4"),
		dash("aigc/text2image/image-synthesis", "image", pictures, 0.08, "https://cdn.example/ID.png"),
		dash("aigc/image2image/image-synthesis", "image", pictures, 0.08, "https://cdn.example/ID.png"),
		dash("aigc/image-generation/generation", "image", pictures, 0.08, "https://cdn.example/ID.png"),
		dash("audio/asr/transcription", "audio", `{"output":{"task_status":"SUCCEEDED","results":[{"transcription_url":"https://cdn.example/ID.json"}]},"usage":{"duration":9}}`,
			0.9, "https://cdn.example/ID.json"),
		ark("seedance", "video", "", `{"id":"ID","status":"succeeded","content":{"video_url":"https://cdn.example/ID.mp4"},"usage":{"completion_tokens":100000}}`,
			1, "https://cdn.example/ID.mp4"), // 5 seconds as asked and the tokens, both of which this price has
		ark("seed3d", "3d", "bytedance", `{"id":"ID","status":"succeeded","content":{"file_url":"https://cdn.example/ID.glb"},"usage":{"completion_tokens":30000}}`,
			0.15, "https://cdn.example/ID.glb"),
		{
			format: "minimax", create: "/v2/video_generation", body: filmBody, made: `{"task_id":"ID","base_resp":{"status_code":0}}`,
			poll: "/v2/query/video_generation/ID", runs: `{"task":{"status":"running"}}`,
			ends:  `{"task":{"status":"succeeded","content":{"url":"https://cdn.example/ID.mp4"},"usage":{"total_seconds":7}}}`,
			model: "m", kind: "video", status: "succeeded", cost: 0.7, location: "https://cdn.example/ID.mp4",
		},
		{
			format: "minimax", create: "/v1/video_generation", body: filmBody, made: `{"task_id":"ID","base_resp":{"status_code":0}}`,
			poll: "/v1/query/video_generation?task_id=ID", runs: `{"status":"Processing"}`, ends: `{"status":"Success","file_id":"file-ID","base_resp":{"status_code":0}}`,
			model: "m", kind: "video", status: "succeeded", cost: 0.5, location: "https://cdn.example/ID.mp4",
		},
		fal("fal-ai/kling/v2", "video", "", `{"video":{"url":"https://cdn.example/ID.mp4","duration":6}}`, 0.6, "https://cdn.example/ID.mp4"),
		fal("fal-ai/trellis", "3d", "microsoft", `{"model_mesh":{"url":"https://cdn.example/ID.glb"}}`, 0.02, "https://cdn.example/ID.glb"),
		fal("fal-ai/flux", "image", "bfl", `{"images":[{"url":"https://cdn.example/ID.png"}]}`, 0.04, "https://cdn.example/ID.png"),
		fal("fal-ai/music/v1", "audio", "acme", `{"audio":{"url":"https://cdn.example/ID.mp3","duration":30}}`, 3, "https://cdn.example/ID.mp3"),
		replicate("/v1/models/o/n/predictions", "/v1/models/{owner}/{name}/predictions", "o/n"), replicate("/v1/predictions", "", "f00d"),
	}
}

// studioCatalog has the models whose kind only the catalog knows.
const studioCatalog = `
  - {slug: bytedance/seed3d, kind: 3d, routes: [{provider: ark, model: seed3d}], price: {output: 5}}
  - {slug: microsoft/trellis, kind: 3d, routes: [{provider: fal, model: fal-ai/trellis}], price: {request: 0.02}}
  - {slug: bfl/flux, kind: image, routes: [{provider: fal, model: fal-ai/flux}], price: {image: 0.04}}
  - {slug: acme/music, kind: audio, routes: [{provider: fal, model: fal-ai/music/v1}], price: {second: 0.1}}`

// hangsUp has a mouthpiece end the connection in place of an answer.
const hangsUp = "\x00"

// mouthpiece is an upstream that says what it is told to, and keeps what came
// from clients.
type mouthpiece struct {
	*httptest.Server
	mu    sync.Mutex
	says  map[string]string // by method and target
	heard []string
}

func newMouthpiece(t *testing.T) *mouthpiece {
	t.Helper()
	m := &mouthpiece{says: map[string]string{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		call := r.Method + " " + r.URL.RequestURI()
		if r.Header.Get("User-Agent") != "Modelgate/1" {
			m.heard = append(m.heard, call)
		}
		said, ok := m.says[call]
		if said == hangsUp {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, said)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *mouthpiece) say(call, reply string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.says[call] = reply
}

// came is what came from clients since the last look.
func (m *mouthpiece) came() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	heard := m.heard
	m.heard = nil
	return heard
}

// TestAsyncTable makes a job on every path of the provider table that makes
// one, and follows it: who may, on every path that names it; what it costs;
// what it is in the ledger; how it is downloaded and cancelled.
func TestAsyncTable(t *testing.T) {
	t.Parallel()
	m := newMouthpiece(t)
	providers, prices := "", "prices:\n"
	formats := map[string]bool{}
	for _, c := range studioCases() {
		if !formats[c.format] {
			formats[c.format] = true
			providers += fmt.Sprintf("\n  - {name: %s, format: %[1]s, base_url: %q, region: us, credential: sk-upstream}", c.format, m.URL+"/"+c.format)
			price := "{second: 0.1, image: 0.04}"
			if c.format == "ark" {
				price = "{second: 0.1, output: 5}"
			}
			prices += fmt.Sprintf("  - {provider: %s, model: \"*\", price: %s}\n", c.format, price)
		}
	}
	complete(t, studioCases())
	g := testkit.StartGateway(t, testkit.GatewayOptions{Upstream: m.URL, Providers: providers, Catalog: studioCatalog, More: prices})
	w := &world{Gateway: g, t: t, client: g.NewClient("table")}
	w.key, _ = g.NewKey(w.client)
	s := &shoot{world: w, m: m}
	sub := func(slug string) string {
		id := w.want(200, "POST /gw/subaccounts", fmt.Sprintf(`{"name":%q,"slug":%[1]q}`, slug))["id"].(string)
		key, _ := g.NewKey(w.client, "--sub-account", id)
		return key
	}
	s.maker, s.sibling = sub("mine"), sub("other")
	s.stranger, _ = g.NewKey(g.NewClient("stranger"))
	for n, c := range studioCases() {
		s.follow(c, fmt.Sprintf("job%d", n))
		if c.cancel != "" {
			s.end(c, fmt.Sprintf("end%d", n))
		}
	}
	g.Stop()
	if stdout, stderr, code := g.Run("reconcile", "--config", g.ConfigFile); code != 0 {
		t.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
	}
	t.Logf("%d paths of %d formats make jobs; %d calls were refused", len(studioCases()), len(formats), s.refused)
}

// complete fails where the table has a path that makes jobs and no case.
func complete(t *testing.T, cases []studioCase) {
	t.Helper()
	have := map[string]bool{}
	for _, c := range cases {
		pattern := c.pattern
		if pattern == "" {
			pattern = c.create
		}
		have[c.format+" "+pattern] = true
	}
	for _, f := range provider.Formats() {
		var makes []string
		for _, d := range f.Doors {
			if d.Job != nil && f.Name != "fal" && f.Name != "replicate" { // there a path with {model} is a further path too
				path, _, _ := strings.Cut(d.Upstream, "?")
				makes = append(makes, path)
			}
		}
		for _, r := range f.Allow {
			if r.Async == provider.AsyncCreate {
				_, path, _ := strings.Cut(r.Pattern, " ")
				makes = append(makes, path)
			}
		}
		for _, path := range makes {
			if !have[f.Name+" "+path] {
				t.Errorf("format %s makes jobs at %s, which has no case", f.Name, path)
			}
		}
	}
}

// shoot is the calls about the jobs of TestAsyncTable.
type shoot struct {
	*world
	m                        *mouthpiece
	maker, sibling, stranger string
	refused                  int
}

// make asks for a job and has the ledger show it.
func (s *shoot) make(c studioCase, id string) (fill func(string) string, door string) {
	s.t.Helper()
	fill = func(text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(text, "ID", id), "SELF", s.m.URL)
	}
	base := "/" + c.format
	for call, reply := range map[string]string{
		"POST " + base + c.create: c.made, "GET " + base + c.poll: c.runs, "GET " + base + c.content: "the film",
		"GET /gemini/v1beta/files/ID:download?alt=media": "the film", "GET /minimax/v1/files/retrieve?file_id=file-ID": `{"file":{"download_url":"https://cdn.example/ID.mp4"}}`,
	} {
		s.m.say(fill(call), fill(reply))
	}
	if status, answer := s.ask(s.maker, "POST "+base+c.create, c.body); status != 200 || answer != fill(c.made) {
		s.t.Fatalf("%s %s: %d %s", c.format, c.create, status, answer)
	}
	task := id
	if c.format == "gemini" {
		task = "models/m/operations/" + id
	}
	s.stands(c, task, "pending", 0)
	return fill, "/v1/videos/" + task
}

// stands holds a job against the ledger.
func (s *shoot) stands(c studioCase, task, status string, cost float64) {
	s.t.Helper()
	var found gjson.Result
	s.eventually(task+" is in the ledger", patience, func() bool {
		_, page := s.ask(s.key, "GET /gw/async?scope=client&limit=500", "")
		found = gjson.Get(page, fmt.Sprintf(`data.#(task_id==%q)`, task))
		return found.Exists()
	})
	vendor := c.author
	if vendor == "" {
		vendor = "other"
	}
	got := struct {
		Kind, Provider, Model, Status string
		Final                         float64 `json:"final_cost_usd"`
		Finalized                     *string `json:"finalized_at"`
	}{}
	if err := json.Unmarshal([]byte(found.Raw), &got); err != nil {
		s.t.Fatalf("%s %s: job %s in the ledger: %v", c.format, c.create, task, err)
	}
	if got.Kind != c.kind || got.Provider != vendor || got.Model != c.model || got.Status != status || got.Final != cost || (got.Finalized == nil) != (status == "pending") {
		s.t.Errorf("%s %s: %s, want a %s of %s by %s that is %s at %v", c.format, c.create, found.Raw, c.kind, c.model, vendor, status, cost)
	}
}

// refuse asks for a job of others on every path that names it: it is none, as
// one that nobody has made, and the provider is not asked.
func (s *shoot) refuse(c studioCase, paths []string) {
	s.t.Helper()
	const missing = `{"error":{"type":"not_found","message":"async task not found"}}`
	s.m.came()
	for _, key := range []string{s.stranger, s.sibling} {
		for _, path := range paths {
			status, answer := s.ask(key, path, "")
			if status != 404 || strings.TrimSpace(answer) != missing {
				s.t.Errorf("%s: %s of somebody else: %d %s", c.format, path, status, answer)
			}
			s.refused++
		}
	}
	if came := s.m.came(); len(came) != 0 {
		s.t.Errorf("%s: the provider heard %q", c.format, came)
	}
}

// follow takes a job from its creation to its result.
func (s *shoot) follow(c studioCase, id string) {
	s.t.Helper()
	fill, door := s.make(c, id)
	base := "/" + c.format
	poll := fill("GET " + base + c.poll)
	paths := []string{poll, "GET " + door, "GET " + door + "/content", "DELETE " + door}
	for _, path := range []string{c.cancel, "GET " + c.result, "GET " + c.content} {
		if method, target, ok := strings.Cut(fill(path), " "); ok && target != "" {
			paths = append(paths, method+" "+base+target)
		}
	}
	s.refuse(c, paths)
	for _, path := range []string{poll, "GET " + door} {
		if status, answer := s.ask(s.maker, path, ""); status != 200 || answer != fill(c.runs) {
			s.t.Errorf("%s: %s: %d %s", c.format, path, status, answer)
		}
	}
	if came := s.m.came(); !slices.Equal(came, []string{poll, poll}) {
		s.t.Errorf("%s: the provider heard %q, want %q twice", c.format, came, poll)
	}
	s.m.say(poll, fill(c.ends))
	if c.result != "" {
		s.m.say(fill("GET "+base+c.result), fill(c.done))
	}
	if status, answer := s.ask(s.maker, poll, ""); status != 200 || answer != fill(cmp.Or(c.told, c.ends)) {
		s.t.Errorf("%s: %s: %d %s", c.format, poll, status, answer)
	}
	s.stands(c, strings.TrimPrefix(door, "/v1/videos/"), c.status, c.cost)
	s.refuse(c, paths)
	if status, to := s.download(door); c.location == "" && (status != 200 || to != "the film") || c.location != "" && (status != 302 || to != fill(c.location)) {
		s.t.Errorf("%s %s: download: %d %s, want %s", c.format, c.create, status, to, c.location)
	}
	if c.content != "" {
		if status, answer := s.ask(s.maker, fill("GET "+base+c.content), ""); status != 200 || answer != "the film" {
			s.t.Errorf("%s: %s: %d %s", c.format, c.content, status, answer)
		}
	}
}

// end cancels a job on the provider's own path.
func (s *shoot) end(c studioCase, id string) {
	s.t.Helper()
	fill, door := s.make(c, id)
	method, target, _ := strings.Cut(fill(c.cancel), " ")
	cancel := method + " /" + c.format + target
	s.m.say(cancel, fill(c.cancelled))
	s.refuse(c, []string{cancel, "DELETE " + door})
	if status, answer := s.ask(s.maker, cancel, ""); status != 200 || answer != fill(c.cancelled) {
		s.t.Errorf("%s: %s: %d %s", c.format, cancel, status, answer)
	}
	s.stands(c, strings.TrimPrefix(door, "/v1/videos/"), "cancelled", 0)
}

// download asks the door for a result: its bytes, or where it lies.
func (s *shoot) download(door string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+door+"/content", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.maker)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "" {
		return resp.StatusCode, to
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
