package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/provider"
)

// kinds are all that a model can be, and the doors that serve it in the order
// in which an answer would name one.
var kinds = []struct {
	kind  modelgate.ModelKind
	doors []string
}{
	{modelgate.LLM, []string{"/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/completions"}},
	{modelgate.Image, []string{"/v1/images/generations", "/v1/images/edits"}},
	{modelgate.Video, []string{"/v1/videos"}},
	{modelgate.Embedding, []string{"/v1/embeddings"}},
	{modelgate.Rerank, []string{"/v1/reranks", "/v1/rerank", "/v2/rerank"}},
	{modelgate.Audio, []string{"/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations"}},
	{modelgate.ThreeD, nil},
}

// everyFormat is a provider of each format, named after it, and a model of each
// kind at each: acme/KIND-FORMAT.
func everyFormat(t testing.TB, upstream string) *Snapshot {
	t.Helper()
	price := new(modelgate.Price)
	var models []*modelgate.Model
	for _, f := range provider.Formats() {
		for _, k := range kinds {
			models = append(models, &modelgate.Model{Slug: fmt.Sprintf("acme/%s-%s", k.kind, f.Name), Kind: k.kind, Price: price,
				Routes: []modelgate.Route{{Provider: f.Name, Model: "owner/name"}}})
		}
	}
	return liveOf(t, models, configsOf(upstream)...)
}

func configsOf(upstream string) (configs []provider.Config) {
	for _, f := range provider.Formats() {
		configs = append(configs, provider.Config{Format: f.Name, BaseURL: upstream})
	}
	return configs
}

// asksFor is a request that names a model, as JSON or as a form.
func (g *gate) asksFor(t testing.TB, path, model string, form bool) *http.Request {
	t.Helper()
	if !form {
		return g.request(t.Context(), path, fmt.Sprintf(`{"model":%q,"input":"x"}`, model))
	}
	r := g.request(t.Context(), path, "--XyZ\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n"+model+"\r\n--XyZ--\r\n")
	r.Header.Set("Content-Type", "multipart/form-data; boundary=XyZ")
	return r
}

// refusal is what a request is answered with, "" where it was passed on.
func (g *gate) refusal(t testing.TB, r *http.Request) (status int, kind, message string) {
	t.Helper()
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		Error struct{ Type, Message string }
	}
	if resp.StatusCode != 200 {
		if err := json.Unmarshal(body, &envelope); err != nil {
			t.Fatalf("%s %s: %s is no envelope: %v", r.Method, r.URL.Path, body, err)
		}
	}
	return resp.StatusCode, envelope.Error.Type, envelope.Error.Message
}

// served is an upstream that answers everything with an empty object and
// counts what it was asked for.
func served(t testing.TB) (url string, calls func() []string) {
	heard := make(chan string, 100_000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Method + " " + r.URL.RequestURI()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}") // the gateway sees a broken connection
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (all []string) {
		for {
			select {
			case call := <-heard:
				all = append(all, call)
			default:
				return all
			}
		}
	}
}

// Every door refuses every kind but its own, in the words that
// clients may match on.
func TestWrongKindAtEveryDoor(t *testing.T) {
	t.Parallel()
	upstream, calls := served(t)
	g := open(t, "", plan{live: everyFormat(t, upstream)})
	tried := 0
	for _, serves := range kinds {
		for _, path := range serves.doors {
			for _, k := range kinds {
				if k.kind == serves.kind {
					continue
				}
				for _, form := range []bool{false, true} {
					tried++
					slug := fmt.Sprintf("acme/%s-openai", k.kind)
					want := fmt.Sprintf(`model "%s" has kind "%s"; this endpoint serves only %s models`, slug, k.kind, serves.kind)
					if status, kind, message := g.refusal(t, g.asksFor(t, path, slug, form)); status != 400 || kind != "bad_request" || message != want {
						t.Errorf("%s: %d %s %q, want 400 bad_request %q", path, status, kind, message, want)
					}
				}
			}
		}
	}
	if got := calls(); tried != 2*15*6 || len(got) != 0 {
		t.Errorf("%d tried, %d passed on", tried, len(got))
	}
}

// Every door passes a model of its kind on where the format has a path for
// it, and otherwise names the door that serves the model, if there is one.
func TestEveryFormatAtEveryDoor(t *testing.T) {
	t.Parallel()
	upstream, calls := served(t)
	live := everyFormat(t, upstream)
	g := open(t, "", plan{live: live})
	entry := func(path string) string {
		if path == "/v1/rerank" || path == "/v2/rerank" {
			return "/v1/reranks"
		}
		return path
	}
	passed := 0
	for _, f := range provider.Formats() {
		upstreams := make(map[string]string)
		for _, d := range f.Doors {
			upstreams[d.Path] = strings.ReplaceAll(strings.ReplaceAll(d.Upstream, "{publisher}/models/{model}", "owner/models/name"), "{model}", "owner/name")
		}
		for _, k := range kinds {
			first, hint := "", "use the service SDK"
			for i := len(k.doors) - 1; i >= 0; i-- {
				if upstreams[k.doors[i]] != "" {
					first, hint = k.doors[i], "use "+k.doors[i]+" or the service SDK"
				}
			}
			slug := fmt.Sprintf("acme/%s-%s", k.kind, f.Name)
			if got := live.doorOf(live.Catalog.Find(slug)); got != first {
				t.Errorf("the first door of %s is %q, want %q", slug, got, first)
			}
			for _, path := range k.doors {
				status, kind, message := g.refusal(t, g.asksFor(t, path, slug, false))
				called := calls()
				if to := upstreams[entry(path)]; to != "" {
					passed++
					if status != 200 || len(called) != 1 || called[0] != "POST "+to {
						t.Errorf("%s at %s: %d %q, %v, want it at %s", slug, path, status, message, called, to)
					}
					continue
				}
				want := fmt.Sprintf("model %s is not served by this endpoint; %s", slug, hint)
				if status != 400 || kind != "bad_request" || message != want || len(called) != 0 {
					t.Errorf("%s at %s: %d %s %q, %v, want 400 %q", slug, path, status, kind, message, called, want)
				}
			}
		}
	}
	if passed < 100 {
		t.Errorf("%d combinations are served, want 100 at least", passed)
	}
}

// The other refusals of a door are the same at all of them.
func TestRefusalsAtEveryDoor(t *testing.T) {
	t.Parallel()
	upstream, calls := served(t)
	live := everyFormat(t, upstream)
	var models []*modelgate.Model
	for _, k := range kinds {
		models = append(models, &modelgate.Model{Slug: fmt.Sprintf("acme/%s-gone", k.kind), Kind: k.kind,
			Routes: []modelgate.Route{{Provider: "gone", Model: "m"}}})
	}
	g := open(t, "", plan{live: liveOf(t, append(models, live.Catalog.Models()...))})
	const required = `"model" is required: name a catalog slug 'author/model' (see GET /v1/models)`
	for _, k := range kinds {
		for _, path := range k.doors {
			tests := []struct {
				body, kind, message string
				status              int
			}{
				{`{"model":"bare"}`, "bad_request", `model "bare" is not a catalog slug; use 'author/model' (see GET /v1/models)`, 400},
				{`{"model":"no/such"}`, "not_found", `model "no/such" not found in catalog (see GET /v1/models)`, 404},
				{fmt.Sprintf(`{"model":"acme/%s-gone"}`, k.kind), "bad_gateway", fmt.Sprintf(`inference route for model "acme/%s-gone" is not available`, k.kind), 502},
				{`{"input":"x"}`, "bad_request", required, 400},
				{`{"model":7}`, "bad_request", `"model" must be a string: a catalog slug 'author/model' (see GET /v1/models)`, 400},
				{strings.Repeat(" ", 1<<20) + `{}`, "request_too_large", "request body too large", 413},
			}
			for _, tt := range tests {
				status, kind, message := g.refusal(t, g.request(t.Context(), path, tt.body))
				if status != tt.status || kind != tt.kind || message != tt.message {
					t.Errorf("%s with %.40s: %d %s %q, want %d %s %q", path, tt.body, status, kind, message, tt.status, tt.kind, tt.message)
				}
			}
			if status, kind, _ := g.refusal(t, g.request(t.Context(), path, "")); status != 405 || kind != "bad_request" {
				t.Errorf("GET %s: %d %s, want 405", path, status, kind)
			}
		}
	}
	if got := calls(); len(got) != 0 {
		t.Errorf("passed on: %v", got)
	}
}
