package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modelgate"
	"modelgate/internal/provider"
)

// ledger is the jobs that a gate's calls have made, as its books know them.
type ledger struct {
	books *books
	mu    sync.Mutex
	ended map[modelgate.UUID]modelgate.JobFinal
	// hidden: the jobs are not in the ledger yet. looked is a token for each
	// look-up.
	hidden bool
	looked chan struct{}
	broken error // what FinishJobs fails with
}

func newLedger(b *books) *ledger {
	return &ledger{books: b, ended: make(map[modelgate.UUID]modelgate.JobFinal), looked: make(chan struct{}, 1000)}
}

func (l *ledger) Job(_ context.Context, client modelgate.ClientID, at string, task modelgate.TaskID) (*modelgate.Job, error) {
	l.looked <- struct{}{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hidden {
		return nil, modelgate.ErrNoTask
	}
	l.books.mu.Lock()
	defer l.books.mu.Unlock()
	for i := range l.books.ends {
		b, e := &l.books.begins[i], &l.books.ends[i]
		if e.Job == nil || e.Job.TaskID != task || b.ClientID != client || at != "" && at != b.Provider {
			continue
		}
		j := &modelgate.Job{
			NewJob: *e.Job, ID: b.ID, ClientID: b.ClientID, KeyID: b.KeyID, SubAccountID: b.SubAccountID, Provider: b.Provider,
			Model: b.Model, Slug: b.Slug, Author: b.Author, Usage: e.Usage, Provisional: e.Cost, Status: modelgate.JobPending, CreatedAt: b.At,
		}
		if f, ok := l.ended[b.ID]; ok {
			j.Status, j.Reason, j.Final = f.Status, f.Reason, f.Cost
		}
		return j, nil
	}
	return nil, modelgate.ErrNoTask
}

func (l *ledger) FinishJobs(_ context.Context, finals []modelgate.JobFinal) (ended []modelgate.JobFinal, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	for _, f := range finals {
		if _, ok := l.ended[f.Job.ID]; !ok {
			l.ended[f.Job.ID] = f
			ended = append(ended, f)
		}
	}
	return ended, nil
}

// only is the end of the one job that has ended.
func (l *ledger) only(t testing.TB) modelgate.JobFinal {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) != 1 {
		t.Fatalf("%d jobs have ended, want 1", len(l.ended))
	}
	for _, f := range l.ended {
		return f
	}
	return modelgate.JobFinal{}
}

// studio is an upstream of jobs: each path answers as it is told, and what
// came is kept.
type studio struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]string // "METHOD /path" → "STATUS body"
	came    []string
	keys    []string
}

func newStudio(t testing.TB, answers map[string]string) *studio {
	t.Helper()
	s := &studio{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.came = append(s.came, r.Method+" "+r.URL.RequestURI())
		s.keys = append(s.keys, r.Header.Get("Authorization")+r.Header.Get("X-Goog-Api-Key"))
		status, body, _ := strings.Cut(s.answers[r.Method+" "+r.URL.RequestURI()], " ")
		code := 404
		_, _ = fmt.Sscan(status, &code) // stays 404
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusFound {
			w.Header().Set("Location", body)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *studio) set(call, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[call] = answer
}

// heard is what came since the last look.
func (s *studio) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := s.came
	s.came = nil
	return came
}

// asks makes a call of any method.
func (g *gate) asks(t testing.TB, call, body string) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	r := g.request(t.Context(), path, body)
	r.Method = method
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimRight(string(answer), "\n")
}

// TestJobs follows one job in each way that a format has: its creation at the
// door or a path, a poll while it runs, and one that ends it.
func TestJobs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		format, native string
		create, body   string // of the client
		upstream       string // the creation as the provider gets it
		made           string
		task           string
		poll           string // of the client; "" is the door's
		asked          string // the poll as the provider gets it
		runs, ends     string
		more           map[string]string
		provisional    modelgate.Nano
		status         modelgate.JobStatus
		cost           modelgate.Nano
	}{
		"openai": {
			format: "openai", native: "sora", create: "POST /v1/videos", body: `{"model":"acme/film","seconds":"8"}`, upstream: "POST /v1/videos",
			made: `{"id":"v1","status":"queued","seconds":"8"}`, task: "v1", asked: "GET /v1/videos/v1",
			runs: `{"id":"v1","status":"in_progress","seconds":"8"}`, ends: `{"id":"v1","status":"completed","seconds":"8"}`,
			provisional: 800_000_000, status: modelgate.JobSucceeded, cost: 800_000_000,
		},
		"length from the reply": {
			format: "openai", native: "sora", create: "POST /v1/videos", body: `{"model":"acme/film"}`, upstream: "POST /v1/videos",
			made: `{"id":"v1","status":"queued","seconds":"4"}`, task: "v1", asked: "GET /v1/videos/v1",
			runs: `{}`, ends: `{"status":"failed","seconds":"4","error":{"code":"x"}}`,
			provisional: 400_000_000, status: modelgate.JobFailed, cost: 0,
		},
		"through the proxy": {
			format: "openai", native: "sora", create: "POST /openai/v1/videos", body: `{"model":"sora","seconds":"8"}`, upstream: "POST /v1/videos",
			made: `{"id":"v1","status":"queued"}`, task: "v1", poll: "GET /openai/v1/videos/v1", asked: "GET /v1/videos/v1",
			runs: `{"status":"queued"}`, ends: `{"status":"completed"}`, provisional: 800_000_000, status: modelgate.JobSucceeded, cost: 800_000_000,
		},
		"together": {
			format: "together", native: "m", create: "POST /v1/videos", body: `{"model":"acme/film","seconds":"5"}`, upstream: "POST /v2/videos",
			made: `{"id":"t1","status":"in_progress"}`, task: "t1", asked: "GET /v2/videos/t1",
			runs: `{"status":"in_progress"}`, ends: `{"status":"completed","outputs":{"cost":0.28,"video_url":"u"}}`,
			provisional: 500_000_000, status: modelgate.JobSucceeded, cost: 500_000_000,
		},
		"openrouter, charged though failed": {
			format: "openrouter", native: "m", create: "POST /v1/videos", body: `{"model":"acme/film","duration":5}`, upstream: "POST /api/v1/videos",
			made: `{"id":"o1","status":"pending"}`, task: "o1", asked: "GET /api/v1/videos/o1",
			runs: `{"status":"pending"}`, ends: `{"status":"failed","usage":{"cost":0.05}}`,
			provisional: 500_000_000, status: modelgate.JobFailed, cost: 50_000_000,
		},
		"xai, moderated": {
			format: "xai", native: "grok", create: "POST /v1/videos", body: `{"model":"acme/film","duration":5}`, upstream: "POST /v1/videos/generations",
			made: `{"request_id":"x1"}`, task: "x1", asked: "GET /v1/videos/x1",
			runs: `{"progress":3}`, ends: `{"status":"done","video":{"url":"u","duration":6,"respect_moderation":false}}`,
			provisional: 500_000_000, status: modelgate.JobFailed, cost: 600_000_000,
		},
		"zhipu": {
			format: "zhipu", native: "m", create: "POST /v1/videos", body: `{"model":"acme/film","duration":5}`, upstream: "POST /api/paas/v4/videos/generations",
			made: `{"id":"z1","task_status":"PROCESSING"}`, task: "z1", asked: "GET /api/paas/v4/async-result/z1",
			runs: `{"task_status":"PROCESSING"}`, ends: `{"task_status":"SUCCESS"}`, provisional: 500_000_000, status: modelgate.JobSucceeded, cost: 500_000_000,
		},
		"dashscope": {
			format: "dashscope", native: "wan", create: "POST /v1/videos", body: `{"model":"acme/film","parameters":{"duration":5}}`,
			upstream: "POST /api/v1/services/aigc/video-generation/video-synthesis",
			made:     `{"output":{"task_id":"d1","task_status":"PENDING"}}`, task: "d1", asked: "GET /api/v1/tasks/d1",
			runs: `{"output":{"task_status":"RUNNING"}}`, ends: `{"output":{"task_status":"SUCCEEDED"},"usage":{"output_video_duration":6.5}}`,
			provisional: 500_000_000, status: modelgate.JobSucceeded, cost: 650_000_000,
		},
		"dashscope, forgotten": {
			format: "dashscope", native: "wan", create: "POST /dashscope/api/v1/services/aigc/text2image/image-synthesis", body: `{"model":"wan","parameters":{"n":2}}`,
			upstream: "POST /api/v1/services/aigc/text2image/image-synthesis",
			made:     `{"output":{"task_id":"d2"}}`, task: "d2", poll: "GET /dashscope/api/v1/tasks/d2", asked: "GET /api/v1/tasks/d2",
			runs: `{"output":{"task_status":"PENDING"}}`, ends: `{"output":{"task_status":"UNKNOWN"}}`,
			provisional: 0, status: modelgate.JobExpired, cost: 0,
		},
		"ark": {
			format: "ark", native: "seedance", create: "POST /v1/videos", body: `{"model":"acme/film","duration":5}`, upstream: "POST /api/v3/contents/generations/tasks",
			made: `{"id":"cgt-1"}`, task: "cgt-1", asked: "GET /api/v3/contents/generations/tasks/cgt-1",
			runs: `{"status":"queued"}`, ends: `{"status":"succeeded","usage":{"completion_tokens":1000}}`,
			provisional: 500_000_000, status: modelgate.JobSucceeded, cost: 500_000_000, // priced by the second
		},
		"minimax": {
			format: "minimax", native: "h3", create: "POST /v1/videos", body: `{"model":"acme/film","duration":6}`, upstream: "POST /v2/video_generation",
			made: `{"task_id":"m2","base_resp":{"status_code":0}}`, task: "m2", asked: "GET /v2/query/video_generation/m2",
			runs: `{"task":{"status":"running"}}`, ends: `{"task":{"status":"succeeded","usage":{"total_seconds":7}}}`,
			provisional: 600_000_000, status: modelgate.JobSucceeded, cost: 700_000_000,
		},
		"minimax of old, by a query": {
			format: "minimax", native: "h1", create: "POST /minimax/v1/video_generation", body: `{"model":"h1","duration":6}`, upstream: "POST /v1/video_generation",
			made: `{"task_id":"m1","base_resp":{"status_code":0}}`, task: "m1", poll: "GET /minimax/v1/query/video_generation?task_id=m1",
			asked: "GET /v1/query/video_generation?task_id=m1",
			runs:  `{"status":"Processing"}`, ends: `{"status":"Fail","base_resp":{"status_code":0}}`, provisional: 600_000_000, status: modelgate.JobFailed, cost: 0,
		},
		"minimax of old, with a reason": {
			format: "minimax", native: "h1", create: "POST /minimax/v1/video_generation", body: `{"model":"h1","duration":6}`, upstream: "POST /v1/video_generation",
			made: `{"task_id":"m1","base_resp":{"status_code":0}}`, task: "m1", poll: "GET /minimax/v1/query/video_generation?task_id=m1",
			asked: "GET /v1/query/video_generation?task_id=m1",
			runs:  `{"task_id":"m1","status":"","base_resp":{"status_code":1002,"status_msg":"rate limit"}}`,
			ends:  `{"task_id":"m1","status":"Fail","file_id":"","base_resp":{"status_code":1027,"status_msg":"new_sensitive"}}`, provisional: 600_000_000, status: modelgate.JobFailed, cost: 0,
		},
		"fal": {
			format: "fal", native: "fal-ai/kling/v2", create: "POST /v1/videos", body: `{"model":"acme/film","duration":"5"}`, upstream: "POST /fal-ai/kling/v2",
			made: `{"request_id":"f1","status":"IN_QUEUE"}`, task: "f1", asked: "GET /fal-ai/kling/requests/f1/status",
			runs: `{"status":"IN_QUEUE"}`, ends: `{"status":"COMPLETED"}`,
			more:        map[string]string{"GET /fal-ai/kling/requests/f1": `200 {"video":{"url":"u","duration":6}}`},
			provisional: 500_000_000, status: modelgate.JobSucceeded, cost: 600_000_000,
		},
		"fal, a result that is an error": {
			format: "fal", native: "fal-ai/kling/v2", create: "POST /v1/videos", body: `{"model":"acme/film","duration":"5"}`, upstream: "POST /fal-ai/kling/v2",
			made: `{"request_id":"f1"}`, task: "f1", asked: "GET /fal-ai/kling/requests/f1/status",
			runs: `{"status":"IN_PROGRESS"}`, ends: `{"status":"COMPLETED"}`,
			more:        map[string]string{"GET /fal-ai/kling/requests/f1": `422 {"detail":"no"}`},
			provisional: 500_000_000, status: modelgate.JobFailed, cost: 0,
		},
		"fal, a result that its runner has failed": {
			format: "fal", native: "fal-ai/kling/v2", create: "POST /v1/videos", body: `{"model":"acme/film","duration":"5"}`, upstream: "POST /fal-ai/kling/v2",
			made: `{"request_id":"f1"}`, task: "f1", asked: "GET /fal-ai/kling/requests/f1/status",
			runs: `{"status":"IN_PROGRESS"}`, ends: `{"status":"COMPLETED"}`,
			more:        map[string]string{"GET /fal-ai/kling/requests/f1": `500 {"detail":"Runner error","error_type":"runner_server_error"}`},
			provisional: 500_000_000, status: modelgate.JobFailed, cost: 0,
		},
		"fal, a result that its model has failed": {
			format: "fal", native: "fal-ai/kling/v2", create: "POST /v1/videos", body: `{"model":"acme/film","duration":"5"}`, upstream: "POST /fal-ai/kling/v2",
			made: `{"request_id":"f1"}`, task: "f1", asked: "GET /fal-ai/kling/requests/f1/status",
			runs: `{"status":"IN_PROGRESS"}`, ends: `{"status":"COMPLETED"}`,
			more:        map[string]string{"GET /fal-ai/kling/requests/f1": `504 {"detail":[{"loc":["body"],"msg":"too long","type":"generation_timeout"}]}`},
			provisional: 500_000_000, status: modelgate.JobFailed, cost: 0,
		},
		"replicate": {
			format: "replicate", native: "o/n", create: "POST /v1/videos", body: `{"model":"acme/film","input":{"duration":5}}`, upstream: "POST /v1/models/o/n/predictions",
			made: `{"id":"r1","status":"starting"}`, task: "r1", asked: "GET /v1/predictions/r1",
			runs: `{"status":"processing"}`, ends: `{"status":"canceled","metrics":{"predict_time":1.5}}`,
			provisional: 500_000_000, status: modelgate.JobCancelled, cost: 150_000_000,
		},
		"gemini": {
			format: "gemini", native: "veo", create: "POST /v1/videos", body: `{"model":"acme/film","instances":[],"parameters":{"durationSeconds":8}}`,
			upstream: "POST /v1beta/models/veo:predictLongRunning", made: `{"name":"models/veo/operations/abc"}`, task: "models/veo/operations/abc",
			asked: "GET /v1beta/models/veo/operations/abc", runs: `{"name":"models/veo/operations/abc"}`, ends: `{"done":true,"response":{}}`,
			provisional: 800_000_000, status: modelgate.JobSucceeded, cost: 800_000_000,
		},
		"gemini through the proxy": {
			format: "gemini", native: "veo", create: "POST /gemini/v1/models/veo:predictLongRunning", body: `{"instances":[],"parameters":{"durationSeconds":8,"sampleCount":2}}`,
			upstream: "POST /v1/models/veo:predictLongRunning", made: `{"name":"models/veo/operations/abc"}`, task: "models/veo/operations/abc",
			poll: "GET /gemini/v1/models/veo/operations/abc", asked: "GET /v1/models/veo/operations/abc",
			runs: `{"done":false}`, ends: `{"done":true,"error":{"code":3}}`, provisional: 1_600_000_000, status: modelgate.JobFailed, cost: 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := map[string]string{tt.upstream: "200 " + tt.made, tt.asked: "200 " + tt.runs}
			for call, answer := range tt.more {
				answers[call] = answer
			}
			s := newStudio(t, answers)
			g := open(t, "", plan{live: films(t, tt.native, provider.Config{Format: tt.format, BaseURL: s.URL})})
			if status, answer := g.asks(t, tt.create, tt.body); status != 200 || answer != tt.made {
				t.Fatalf("creation: %d %s", status, answer)
			}
			end := g.books.only(t)
			if end.Job == nil || end.ParseStatus != modelgate.ParseProvisional || string(end.Job.TaskID) != tt.task {
				t.Fatalf("END %+v, job %+v, want %s", end, end.Job, tt.task)
			}
			if end.Cost != tt.provisional && end.Job.Kind == modelgate.Video {
				t.Errorf("provisional cost %s, want %s", end.Cost, tt.provisional)
			}
			if tt.poll == "" {
				tt.poll = "GET /v1/videos/" + tt.task
			}
			s.heard()
			if status, answer := g.asks(t, tt.poll, ""); status != 200 || answer != tt.runs {
				t.Errorf("poll: %d %s, want %s", status, answer, tt.runs)
			}
			if came := s.heard(); !slices.Equal(came, []string{tt.asked}) {
				t.Errorf("the provider heard %q, want %q", came, tt.asked)
			}
			if len(g.jobs.ended) != 0 {
				t.Errorf("a job that runs has ended: %+v", g.jobs.only(t))
			}
			s.set(tt.asked, "200 "+tt.ends)
			if status, answer := g.asks(t, tt.poll, ""); status != 200 || answer != tt.ends {
				t.Errorf("poll: %d %s, want %s", status, answer, tt.ends)
			}
			if f := g.jobs.only(t); f.Status != tt.status || f.Cost != tt.cost {
				t.Errorf("the job has %s at %s, want %s at %s", f.Status, f.Cost, tt.status, tt.cost)
			}
			if begins, ends := g.books.counts(); begins != 1 || ends != 1 {
				t.Errorf("%d BEGIN, %d END: polls are not booked", begins, ends)
			}
			for _, key := range s.keys {
				if strings.Contains(key, "gw_live_") || !strings.Contains(key, "sk-one") {
					t.Errorf("the provider got the credential %q", key)
				}
			}
		})
	}
}

// filming is a gate with a job that runs.
func filming(t *testing.T, o Options, configure func(*provider.Config)) (*gate, *studio) {
	t.Helper()
	s := newStudio(t, map[string]string{"POST /v1/videos": `200 {"id":"v1","status":"queued"}`, "GET /v1/videos/v1": `200 {"status":"queued"}`})
	cfg := provider.Config{Format: "openai", BaseURL: s.URL}
	if configure != nil {
		configure(&cfg)
	}
	g := open(t, "", plan{live: films(t, "sora", cfg), options: o})
	if status, answer := g.asks(t, "POST /v1/videos", `{"model":"acme/film","seconds":"8"}`); status != 200 {
		t.Fatalf("creation: %d %s", status, answer)
	}
	g.books.only(t)
	s.heard()
	return g, s
}

// Whose job it is decides on every path that names one, and an id that is
// somebody else's is told apart from none by nothing.
func TestJobsOfOthers(t *testing.T) {
	t.Parallel()
	g, s := filming(t, Options{}, nil)
	paths := []string{"GET /v1/videos/%s", "GET /v1/videos/%s/content", "DELETE /v1/videos/%s",
		"GET /openai/v1/videos/%s", "GET /openai/v1/videos/%s/content", "DELETE /openai/v1/videos/%s"}
	const missing = `{"error":{"type":"not_found","message":"async task not found"}}`
	strangers := map[string]func(*modelgate.Caller){
		"another organization": func(c *modelgate.Caller) { c.ClientID = "other" },
		"another sub-account":  func(c *modelgate.Caller) { c.SubAccountID = "s2" },
	}
	for who, change := range strangers {
		stranger := *g.caller
		change(&stranger)
		g.keys.set(stranger)
		for _, path := range paths {
			for _, id := range []string{"v1", "v2"} {
				for len(g.jobs.looked) > 0 {
					<-g.jobs.looked
				}
				if status, answer := g.asks(t, fmt.Sprintf(path, id), ""); status != 404 || answer != missing {
					t.Errorf("%s, %s of %s: %d %s", who, path, id, status, answer)
				}
				if n := len(g.jobs.looked); n != 2 { // the second time once all calls are booked
					t.Errorf("%s, %s of %s: looked for %d times: how long it takes tells whether there is one", who, path, id, n)
				}
			}
		}
	}
	other := *g.caller
	other.KeyID, other.Entitlements = "k2", modelgate.Entitlements{}
	g.keys.set(other)
	if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 403 {
		t.Errorf("a key that may not use the model: %d %s", status, answer)
	}
	other.Entitlements = modelgate.OpenEntitlements()
	g.keys.set(other)
	if came := s.heard(); len(came) != 0 {
		t.Errorf("the provider heard %q", came)
	}
	if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 200 {
		t.Errorf("another key of the organization: %d %s", status, answer)
	}
	for _, call := range []string{"POST /v1/videos/v1/remix", "PUT /v1/videos/v1", "POST /v1/videos/v1/content"} {
		if status, answer := g.asks(t, call, `{}`); status != 405 {
			t.Errorf("%s: %d %s, want 405", call, status, answer)
		}
	}
	if status, _ := g.asks(t, "GET /openai/v1/videos", ""); status != 403 {
		t.Errorf("the list of everybody's videos: %d, want 403", status)
	}
}

// A job that was made a moment ago is waited for.
func TestJobOnItsWay(t *testing.T) {
	t.Parallel()
	flushed := make(chan struct{}, 1)
	g, _ := filming(t, Options{Lag: patience, Flushed: func(context.Context) error { flushed <- struct{}{}; return nil }}, nil)
	g.jobs.mu.Lock()
	g.jobs.hidden = true
	g.jobs.mu.Unlock()
	done := make(chan int)
	go func() {
		status, _ := g.asks(t, "GET /v1/videos/v1", "")
		done <- status
	}()
	wait(t, flushed, "flush")
	for range 3 {
		wait(t, g.jobs.looked, "look-up")
	}
	g.jobs.mu.Lock()
	g.jobs.hidden = false
	g.jobs.mu.Unlock()
	if status := <-done; status != 200 {
		t.Errorf("status %d, want 200 once the job is in the ledger", status)
	}
}

// While the calls of this instance cannot be booked, a job that is not in the
// ledger may be one of theirs: 503, and 404 once they are.
func TestJobBehindABacklog(t *testing.T) {
	t.Parallel()
	var behind atomic.Bool
	g, s := filming(t, Options{Flushed: func(context.Context) error {
		if behind.Load() {
			return context.DeadlineExceeded
		}
		return nil
	}}, nil)
	hide := func(yes bool) {
		g.jobs.mu.Lock()
		defer g.jobs.mu.Unlock()
		g.jobs.hidden = yes
	}
	hide(true)
	behind.Store(true)
	for _, call := range []string{"GET /v1/videos/v1", "DELETE /v1/videos/v1", "GET /openai/v1/videos/v1/content"} {
		if status, answer := g.asks(t, call, ""); status != 503 || !strings.Contains(answer, `"type":"unavailable"`) {
			t.Errorf("%s: %d %s, want 503", call, status, answer)
		}
	}
	if came := s.heard(); len(came) != 0 {
		t.Errorf("the provider heard %q", came)
	}
	hide(false)
	if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 200 {
		t.Errorf("one that is in the ledger: %d %s", status, answer)
	}
	hide(true)
	behind.Store(false)
	if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 404 {
		t.Errorf("all calls are booked: %d %s, want 404", status, answer)
	}
}

// What cannot be found out or stored is a 503 or the provider's own answer,
// and the job stays pending.
func TestJobTrouble(t *testing.T) {
	t.Parallel()
	g, s := filming(t, Options{}, nil)
	s.set("GET /v1/videos/v1", `500 {"oops":1}`)
	if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 500 || answer != `{"oops":1}` {
		t.Errorf("%d %s, want the provider's own answer", status, answer)
	}
	s.set("GET /v1/videos/v1", `200 {"status":"completed"}`)
	g.jobs.broken = errors.New("no database")
	if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 503 || !strings.Contains(answer, "unavailable") {
		t.Errorf("%d %s, want 503", status, answer)
	}
	g.jobs.broken = nil
	if len(g.jobs.ended) != 0 {
		t.Error("the job has ended")
	}
	s.Close()
	for _, call := range []string{"GET /v1/videos/v1", "DELETE /v1/videos/v1"} {
		if status, answer := g.asks(t, call, ""); status != 503 || !strings.Contains(answer, "unavailable") {
			t.Errorf("%s: %d %s, want 503", call, status, answer)
		}
	}
	if status, answer := g.asks(t, "GET /v1/videos/v1/content", ""); status != 502 || answer != "" {
		t.Errorf("a download from a provider that is away: %d %s, want a bare 502", status, answer)
	}
}

// What a provider says after the end, or otherwise than before, changes
// nothing.
func TestContradictoryAnswers(t *testing.T) {
	t.Parallel()
	g, s := filming(t, Options{}, nil)
	for _, says := range []string{"failed", "completed", "queued", "failed", "cancelled", "expired"} {
		s.set("GET /v1/videos/v1", `200 {"status":"`+says+`"}`)
		if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 200 || !strings.Contains(answer, says) {
			t.Errorf("%s: %d %s", says, status, answer)
		}
		if f := g.jobs.only(t); f.Status != modelgate.JobFailed || f.Cost != 0 {
			t.Errorf("after %s the job has %s at %s", says, f.Status, f.Cost)
		}
	}
}

// A deletion cancels a job that runs; one that has come to its end unnoticed
// is charged.
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state, answer string
		status        int
		want          modelgate.JobStatus
		cost          modelgate.Nano
	}{
		"running":          {"in_progress", `200 {"deleted":true}`, 200, modelgate.JobCancelled, 0},
		"refused":          {"in_progress", `409 {"error":{}}`, 409, "", 0},
		"ended unnoticed":  {"completed", `200 {"deleted":true}`, 200, modelgate.JobSucceeded, 800_000_000},
		"failed unnoticed": {"failed", `200 {"deleted":true}`, 200, modelgate.JobFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, s := filming(t, Options{}, nil)
			s.set("GET /v1/videos/v1", `200 {"status":"`+tt.state+`"}`)
			s.set("DELETE /v1/videos/v1", tt.answer)
			if status, answer := g.asks(t, "DELETE /v1/videos/v1", ""); status != tt.status {
				t.Errorf("%d %s, want %d", status, answer, tt.status)
			}
			if came := s.heard(); !slices.Contains(came, "DELETE /v1/videos/v1") {
				t.Errorf("the provider heard %q", came)
			}
			if tt.want == "" {
				if len(g.jobs.ended) != 0 {
					t.Errorf("the job has ended: %+v", g.jobs.only(t))
				}
				return
			}
			if f := g.jobs.only(t); f.Status != tt.want || f.Cost != tt.cost {
				t.Errorf("the job has %s at %s, want %s at %s", f.Status, f.Cost, tt.want, tt.cost)
			}
		})
	}
}

// A job is asked for with the credential that made it, an older one too; once
// that is gone it is gone.
func TestRotation(t *testing.T) {
	t.Parallel()
	g, s := filming(t, Options{}, nil)
	rotate := func(previous ...string) {
		live := films(t, "sora", provider.Config{Format: "openai", BaseURL: s.URL, Credentials: []string{"sk-two"}, PreviousCredentials: previous})
		g.live.Store(live)
	}
	rotate("sk-one")
	if status, answer := g.asks(t, "GET /v1/videos/v1", ""); status != 200 {
		t.Errorf("%d %s while the credential is kept", status, answer)
	}
	if key := s.keys[len(s.keys)-1]; key != "Bearer sk-one" {
		t.Errorf("asked with %q", key)
	}
	rotate()
	for range 2 {
		status, answer := g.asks(t, "GET /v1/videos/v1", "")
		if status != 410 || answer != `{"error":{"type":"gone","message":"credential rotated after task creation; re-issue the task"}}` {
			t.Errorf("%d %s", status, answer)
		}
	}
	if f := g.jobs.only(t); f.Status != modelgate.JobExpired || f.Reason != modelgate.ReasonRotated || f.Cost != 0 {
		t.Errorf("the job has %+v", f)
	}
	rotate("sk-one")
	if status, _ := g.asks(t, "GET /v1/videos/v1", ""); status != 410 {
		t.Errorf("%d, want 410: the job is over", status)
	}
}

// A download goes through as it comes, with its range.
func TestDownload(t *testing.T) {
	t.Parallel()
	g, s := filming(t, Options{}, nil)
	s.set("GET /v1/videos/v1/content?variant=thumbnail", "200 picture")
	if status, answer := g.asks(t, "GET /v1/videos/v1/content?variant=thumbnail", ""); status != 200 || answer != "picture" {
		t.Errorf("%d %s", status, answer)
	}
	if begins, ends := g.books.counts(); begins != 1 || ends != 1 {
		t.Errorf("%d BEGIN, %d END: a download is not booked", begins, ends)
	}
	if came := s.heard(); !slices.Equal(came, []string{"GET /v1/videos/v1/content?variant=thumbnail"}) {
		t.Errorf("the provider heard %q", came)
	}
}
