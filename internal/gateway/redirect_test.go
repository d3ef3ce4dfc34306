package gateway

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelgate/internal/provider"
)

// TestHandOver downloads results from providers that have no path for it: the
// address they name is the answer, unless it is one that only the provider's
// credential opens.
func TestHandOver(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		format, native, create, made, task string
		poll, says                         string // SELF stands for the provider's address
		more                               map[string]string
		status                             int
		answer                             string // the body, or the address of a redirect
		heard                              []string
	}{
		"an address": {
			format: "together", native: "m", create: "POST /v2/videos", made: `{"id":"t1"}`, task: "t1",
			poll: "GET /v2/videos/t1", says: `{"status":"completed","outputs":{"video_url":"https://cdn.example/a.mp4?sig=1"}}`,
			status: 302, answer: "https://cdn.example/a.mp4?sig=1",
		},
		"the second that may be": {
			format: "ark", native: "seed3d", create: "POST /api/v3/contents/generations/tasks", made: `{"id":"c1"}`, task: "c1",
			poll: "GET /api/v3/contents/generations/tasks/c1", says: `{"status":"succeeded","content":{"file_url":"https://cdn.example/a.glb"}}`,
			status: 302, answer: "https://cdn.example/a.glb",
		},
		"a list of addresses": {
			format: "replicate", native: "o/n", create: "POST /v1/models/o/n/predictions", made: `{"id":"r1"}`, task: "r1",
			poll: "GET /v1/predictions/r1", says: `{"status":"succeeded","output":["https://cdn.example/1.mp4","https://cdn.example/2.mp4"]}`,
			status: 302, answer: "https://cdn.example/1.mp4",
		},
		"in the result": {
			format: "fal", native: "fal-ai/kling/v2", create: "POST /fal-ai/kling/v2", made: `{"request_id":"f1"}`, task: "f1",
			poll: "GET /fal-ai/kling/requests/f1/status", says: `{"status":"COMPLETED"}`,
			more:   map[string]string{"GET /fal-ai/kling/requests/f1": `200 {"video":{"url":"https://cdn.example/f.mp4"}}`},
			status: 302, answer: "https://cdn.example/f.mp4",
		},
		"at the provider, whose credential is needed": {
			format: "gemini", native: "veo", create: "POST /v1beta/models/veo:predictLongRunning", made: `{"name":"models/veo/operations/g1"}`, task: "models/veo/operations/g1",
			poll:   "GET /v1beta/models/veo/operations/g1",
			says:   `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"SELF/v1beta/files/abc:download?alt=media&key=sk-theirs"}}]}}}`,
			more:   map[string]string{"GET /v1beta/files/abc:download?alt=media": "200 the film"},
			status: 200, answer: "the film", heard: []string{"GET /v1beta/files/abc:download?alt=media"},
		},
		"at the provider, by way of another path": {
			format: "gemini", native: "veo", create: "POST /v1beta/models/veo:predictLongRunning", made: `{"name":"models/veo/operations/g1"}`, task: "models/veo/operations/g1",
			poll: "GET /v1beta/models/veo/operations/g1",
			says: `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"SELF/v1beta/files/abc:download?alt=media"}}]}}}`,
			more: map[string]string{
				"GET /v1beta/files/abc:download?alt=media":          "302 SELF/download/v1beta/files/abc:download?alt=media",
				"GET /download/v1beta/files/abc:download?alt=media": "200 the film",
			},
			status: 200, answer: "the film", heard: []string{"GET /download/v1beta/files/abc:download?alt=media"},
		},
		"at the provider, with a space in its address": {
			format: "gemini", native: "veo", create: "POST /v1beta/models/veo:predictLongRunning", made: `{"name":"models/veo/operations/g1"}`, task: "models/veo/operations/g1",
			poll:   "GET /v1beta/models/veo/operations/g1",
			says:   `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"SELF/v1beta/files/abc:download?alt=media&name=a b"}}]}}}`,
			more:   map[string]string{"GET /v1beta/files/abc:download?alt=media&name=a%20b": "200 the film"},
			status: 200, answer: "the film", heard: []string{"GET /v1beta/files/abc:download?alt=media&name=a%20b"},
		},
		"at the provider, with a line in its address": {
			format: "gemini", native: "veo", create: "POST /v1beta/models/veo:predictLongRunning", made: `{"name":"models/veo/operations/g1"}`, task: "models/veo/operations/g1",
			poll:   "GET /v1beta/models/veo/operations/g1",
			says:   `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"SELF/v1beta/files/abc:download?alt=media&name=a HTTP/1.1\r\nX: y"}}]}}}`,
			status: 404, answer: "names no result",
		},
		"elsewhere, with a space in its address": {
			format: "together", native: "m", create: "POST /v2/videos", made: `{"id":"t1"}`, task: "t1",
			poll: "GET /v2/videos/t1", says: `{"status":"completed","outputs":{"video_url":"https://cdn.example/a.mp4?sig=1 2"}}`,
			status: 302, answer: "https://cdn.example/a.mp4?sig=1%202",
		},
		"with a credential in it": {
			format: "together", native: "m", create: "POST /v2/videos", made: `{"id":"t1"}`, task: "t1",
			poll: "GET /v2/videos/t1", says: `{"status":"completed","outputs":{"video_url":"https://cdn.example/a.mp4?key=sk-one"}}`,
			status: 404, answer: "names no result",
		},
		"another path of the provider is not fetched": {
			format: "gemini", native: "veo", create: "POST /v1beta/models/veo:predictLongRunning", made: `{"name":"models/veo/operations/g1"}`, task: "models/veo/operations/g1",
			poll:   "GET /v1beta/models/veo/operations/g1",
			says:   `{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"SELF/v1beta/cachedContents/abc"}}]}}}`,
			status: 302, answer: "SELF/v1beta/cachedContents/abc",
		},
		"not fetched where a customer's model names it": {
			format: "replicate", native: "o/n", create: "POST /v1/models/o/n/predictions", made: `{"id":"r1"}`, task: "r1",
			poll: "GET /v1/predictions/r1", says: `{"status":"succeeded","output":"SELF/v1/predictions/r2"}`,
			status: 302, answer: "SELF/v1/predictions/r2",
		},
		"not an address": {
			format: "replicate", native: "o/n", create: "POST /v1/models/o/n/predictions", made: `{"id":"r1"}`, task: "r1",
			poll: "GET /v1/predictions/r1", says: `{"status":"succeeded","output":"javascript:alert(1)"}`,
			status: 404, answer: "names no result",
		},
		"deleted at the provider": {
			format: "replicate", native: "o/n", create: "POST /v1/models/o/n/predictions", made: `{"id":"r1"}`, task: "r1",
			poll: "GET /v1/predictions/r1", says: `{"status":"succeeded","output":null}`,
			status: 404, answer: "names no result",
		},
		"it runs": {
			format: "together", native: "m", create: "POST /v2/videos", made: `{"id":"t1"}`, task: "t1",
			poll: "GET /v2/videos/t1", says: `{"status":"in_progress"}`,
			status: 409, answer: "has not ended",
		},
		"it has failed": {
			format: "together", native: "m", create: "POST /v2/videos", made: `{"id":"t1"}`, task: "t1",
			poll: "GET /v2/videos/t1", says: `{"status":"failed"}`,
			status: 409, answer: "has not succeeded",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStudio(t, map[string]string{tt.create: "200 " + tt.made})
			s.set(tt.poll, "200 "+strings.ReplaceAll(tt.says, "SELF", s.URL))
			for call, answer := range tt.more {
				s.set(call, strings.ReplaceAll(answer, "SELF", s.URL))
			}
			g := open(t, "", plan{live: films(t, tt.native, provider.Config{Format: tt.format, BaseURL: s.URL})})
			if status, answer := g.asks(t, "POST /v1/videos", `{"model":"acme/film","duration":5}`); status != 200 {
				t.Fatalf("creation: %d %s", status, answer)
			}
			g.books.only(t)
			for range 2 { // the second time the ledger knows how the job has ended
				s.heard()
				status, answer := g.download(t, tt.task)
				if want := strings.ReplaceAll(tt.answer, "SELF", s.URL); status != tt.status || !strings.Contains(answer, want) {
					t.Errorf("%d %s, want %d %s", status, answer, tt.status, want)
				}
				if came := s.heard(); len(tt.heard) > 0 && !slices.Equal(came[len(came)-1:], tt.heard) {
					t.Errorf("the provider heard %q, want %q in the end", came, tt.heard)
				} else if slices.Contains(came, "GET /v1/predictions/r2") || slices.Contains(came, "GET /v1beta/cachedContents/abc") {
					t.Errorf("the provider heard %q", came)
				}
			}
			if begins, ends := g.books.counts(); begins != 1 || ends != 1 {
				t.Errorf("%d BEGIN, %d END: downloads are not booked", begins, ends)
			}
		})
	}
}

// TestHandOverLookup asks for the address of a file that a reply names by id;
// such jobs are made on the provider's own path and downloaded at the door.
func TestHandOverLookup(t *testing.T) {
	t.Parallel()
	s := newStudio(t, map[string]string{
		"POST /v1/video_generation":                     `200 {"task_id":"m1","base_resp":{"status_code":0}}`,
		"GET /v1/query/video_generation?task_id=m1":     `200 {"status":"Success","file_id":"77&x","base_resp":{"status_code":0}}`,
		"GET /v1/files/retrieve?file_id=77%26x":         `200 {"file":{"file_id":77,"download_url":"https://cdn.example/m.mp4"}}`,
		"GET /v1/query/video_generation?task_id=m1%26x": `200 {}`,
	})
	g := open(t, "", plan{live: films(t, "h1", provider.Config{Format: "minimax", BaseURL: s.URL})})
	if status, answer := g.asks(t, "POST /minimax/v1/video_generation", `{"model":"h1","duration":6}`); status != 200 {
		t.Fatalf("creation: %d %s", status, answer)
	}
	if status, answer := g.download(t, "m1"); status != 302 || answer != "https://cdn.example/m.mp4" {
		t.Errorf("%d %s", status, answer)
	}
	// A client that follows a redirect would take such a header along.
	r := g.request(t.Context(), "/v1/videos/m1/content", "")
	r.Method = http.MethodGet
	r.Header.Set("X-Api-Key", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	r.Header.Del("Authorization")
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a key in X-Api-Key: %d, want 400", resp.StatusCode)
	}
	s.set("GET /v1/files/retrieve?file_id=77%26x", "503 away")
	if status, answer := g.download(t, "m1"); status != 503 {
		t.Errorf("%d %s, want 503", status, answer)
	}
	s.set("GET /v1/files/retrieve?file_id=77%26x", "404 gone")
	if status, answer := g.download(t, "m1"); status != 404 {
		t.Errorf("%d %s, want 404", status, answer)
	}
}

// download asks the door for the result of a job, and returns the body or the
// address of a redirect.
func (g *gate) download(t testing.TB, task string) (int, string) {
	t.Helper()
	r := g.request(t.Context(), "/v1/videos/"+task+"/content", "")
	r.Method = http.MethodGet
	client := *g.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "" {
		return resp.StatusCode, to
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
