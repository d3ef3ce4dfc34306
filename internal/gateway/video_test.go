package gateway

import (
	"bytes"
	"cmp"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"modelgate"
	"modelgate/internal/provider"
)

// arrival is a request as an upstream got it.
type arrival struct {
	method, path, contentType, body string
	header                          http.Header
}

// recording is an upstream that answers 200 with a JSON text and keeps what
// it got last.
func recording(t testing.TB, answer string) (*raw, *atomic.Pointer[arrival]) {
	var last atomic.Pointer[arrival]
	u := rawUpstream(t, func(conn net.Conn, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body) // already in memory
		last.Store(&arrival{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), string(body), r.Header})
		_, err := io.WriteString(conn, sized("application/json", answer))
		return err == nil
	})
	return u, &last
}

// films is a model acme/film at 0.10 USD a second, with a route to each of the
// providers, which are named after their formats.
func films(t testing.TB, native string, configs ...provider.Config) *Snapshot {
	t.Helper()
	price, err := modelgate.ParseUSD("0.1")
	film := &modelgate.Model{Slug: "acme/film", Kind: modelgate.Video, Price: new(modelgate.Price)}
	if err == nil {
		err = film.Price.Base.Set(modelgate.UnitSecond, price)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range configs {
		film.Routes = append(film.Routes, modelgate.Route{Provider: cfg.Format, Model: native})
	}
	return liveOf(t, []*modelgate.Model{film}, configs...)
}

// liveOf is a catalog and providers that are named after their formats, where
// they have no other name.
func liveOf(t testing.TB, models []*modelgate.Model, configs ...provider.Config) *Snapshot {
	t.Helper()
	providers := make(map[string]*provider.Provider)
	for _, cfg := range configs {
		cfg.Name = cmp.Or(cfg.Name, cfg.Format)
		cfg.Region = cmp.Or(cfg.Region, "eu")
		if cfg.Credentials == nil {
			cfg.Credentials = []string{"sk-one"}
		}
		p, err := provider.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		providers[cfg.Name] = p
	}
	catalog, err := modelgate.NewCatalog(models, nil)
	if err != nil {
		t.Fatal(err)
	}
	return NewSnapshot(catalog, providers)
}

const videoJob = `{"id":"video_9","object":"video","status":"queued","seconds":"8","error":null}`

func TestVideoDoor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		format, native, body string
		path, sent           string
		header               string // that the provider needs
		cost                 modelgate.Nano
		parse                modelgate.ParseStatus
	}{
		"OpenAI": {
			"openai", "sora", `{"model":"acme/film","prompt":"a kite","seconds":"8","size":"1280x720"}`,
			"/v1/videos", `{"model":"sora","prompt":"a kite","seconds":"8","size":"1280x720"}`, "", 800_000_000, modelgate.ParseProvisional,
		},
		"its own JSON": {
			"ark", "seedance", `{"content":[{"type":"text","text":"x"}],"duration":5,"model":"acme/film"}`,
			"/api/v3/contents/generations/tasks", `{"content":[{"type":"text","text":"x"}],"duration":5,"model":"seedance"}`, "", 500_000_000, modelgate.ParseProvisional,
		},
		"nested": {
			"dashscope", "wan", `{"model":"acme/film","input":{"prompt":"x"},"parameters":{"duration":10}}`,
			"/api/v1/services/aigc/video-generation/video-synthesis", `{"model":"wan","input":{"prompt":"x"},"parameters":{"duration":10}}`, "X-Dashscope-Async", 1_000_000_000, modelgate.ParseOK,
		},
		"in the path": {
			"replicate", "owner/name", `{"model":"acme/film","input":{"prompt":"x","duration":5}}`,
			"/v1/models/owner/name/predictions", `{"input":{"prompt":"x","duration":5}}`, "", 500_000_000, modelgate.ParseProvisional,
		},
		"the path alone": {
			"fal", "fal-ai/kling/v2", `{"prompt":"x", "duration":"5", "model":"acme/film"}`,
			"/fal-ai/kling/v2", `{"prompt":"x", "duration":"5"}`, "", 500_000_000, modelgate.ParseOK,
		},
		"no length": {
			"openai", "sora", `{"model":"acme/film","prompt":"a kite"}`,
			"/v1/videos", `{"model":"sora","prompt":"a kite"}`, "", 800_000_000, modelgate.ParseProvisional,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, last := recording(t, videoJob)
			g := open(t, "", plan{live: films(t, tt.native, provider.Config{Format: tt.format, BaseURL: u.URL})})
			resp, answer, _ := g.do(t, "/v1/videos", tt.body)
			if resp.StatusCode != 200 || string(answer) != videoJob {
				t.Fatalf("status %d, body %s", resp.StatusCode, answer)
			}
			got := last.Load()
			if got.path != tt.path || got.body != tt.sent || got.method != "POST" {
				t.Errorf("the provider got %s %s %s, want %s %s", got.method, got.path, got.body, tt.path, tt.sent)
			}
			if tt.header != "" && got.header.Get(tt.header) != "enable" {
				t.Errorf("header %s is %q", tt.header, got.header.Get(tt.header))
			}
			if end := g.books.only(t); end.Cost != tt.cost || end.ParseStatus != tt.parse {
				t.Errorf("END %+v, want cost %d, %s", end, tt.cost, tt.parse)
			}
		})
	}
}

// The OpenAI SDKs send this door a form, with a file or without.
func TestVideoDoorByForm(t *testing.T) {
	t.Parallel()
	write := func(fields ...string) (contentType, body string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		_ = w.SetBoundary("XyZ") // a legal one
		for _, f := range fields {
			name, text, _ := strings.Cut(f, "=")
			if name == "input_reference" {
				part, _ := w.CreateFormFile(name, "a.png") // a buffer takes everything
				_, _ = io.WriteString(part, text)
				continue
			}
			_ = w.WriteField(name, text)
		}
		_ = w.Close()
		return w.FormDataContentType(), b.String()
	}
	for format, tt := range map[string]struct {
		want []string
		cost modelgate.Nano
	}{
		"openai": {[]string{"prompt=a kite", "model=native/film", "seconds=4", "input_reference=\x89PNG\x00\r\n"}, 400_000_000},
		// its models call the length duration; without one it is the usual 8
		"fal": {[]string{"prompt=a kite", "seconds=4", "input_reference=\x89PNG\x00\r\n"}, 800_000_000},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			u, last := recording(t, strings.Replace(videoJob, `"8"`, `"4"`, 1))
			g := open(t, "", plan{live: films(t, "native/film", provider.Config{Format: format, BaseURL: u.URL})})
			contentType, body := write("prompt=a kite", "model=acme/film", "seconds=4", "input_reference=\x89PNG\x00\r\n")
			r := g.request(t.Context(), "/v1/videos", body)
			r.Header.Set("Content-Type", contentType)
			resp, err := g.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if _, sent := write(tt.want...); last.Load() == nil || last.Load().body != sent || last.Load().contentType != contentType {
				t.Errorf("the provider got %+v, want %q", last.Load(), sent)
			}
			if end := g.books.only(t); end.Cost != tt.cost {
				t.Errorf("END %+v, want a cost of %s", end, tt.cost)
			}
		})
	}
}

// A job that one provider may have accepted is never given to another.
func TestVideoDoorDoesNotFallBack(t *testing.T) {
	t.Parallel()
	first, second := rawUpstream(t, sends(status("503 Away"))), rawUpstream(t, sends(sized("application/json", videoJob)))
	g := open(t, "", plan{live: films(t, "sora", provider.Config{Format: "openai", BaseURL: first.URL}, provider.Config{Format: "together", BaseURL: second.URL})})
	resp, _, _ := g.do(t, "/v1/videos", `{"model":"acme/film","seconds":"4"}`)
	if resp.StatusCode != 503 || first.hits.Load() != 1 || second.hits.Load() != 0 {
		t.Errorf("status %d, %d and %d calls, want 503 of the first route", resp.StatusCode, first.hits.Load(), second.hits.Load())
	}
	if end := g.books.only(t); end.Cost != 0 || end.ParseStatus != modelgate.ParseOK {
		t.Errorf("END %+v, want nothing charged", end)
	}
}
