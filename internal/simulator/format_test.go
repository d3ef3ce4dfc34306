package simulator_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/internal/simulator"
)

func TestGemini(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	const body = `{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"hello world [[cached=5]] [[reasoning=3]] [[cache_write=9]]"}]}]}`
	const usage = `"usageMetadata":{"cachedContentTokenCount":5,"candidatesTokenCount":8,"promptTokenCount":9,`
	for _, version := range []string{"v1", "v1beta"} {
		_, got, err := u.post(t, "/"+version+"/models/gemini-x:generateContent", body)
		if err != nil || !strings.Contains(got, usage) || !strings.Contains(got, `"thoughtsTokenCount":3,"totalTokenCount":20`) || !strings.Contains(got, `"modelVersion":"gemini-x"`) {
			t.Errorf("%s: %v\n%s", version, err, got)
		}
	}
	_, sse, err := u.post(t, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", body)
	if err != nil || strings.Count(sse, "data: ") != 8 || strings.Count(sse, `"finishReason":"STOP"`) != 1 || strings.Count(sse, usage) != 1 {
		t.Errorf("sse: %v\n%s", err, sse)
	}
	_, array, err := u.post(t, "/v1beta/models/gemini-x:streamGenerateContent", body)
	var chunks []struct {
		UsageMetadata struct{ TotalTokenCount int }
	}
	if err := json.Unmarshal([]byte(array), &chunks); err != nil || len(chunks) != 8 || chunks[0].UsageMetadata.TotalTokenCount != 13 || chunks[7].UsageMetadata.TotalTokenCount != 20 {
		t.Errorf("array: %v, %+v", err, chunks)
	}
	if err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		"/v1beta/models/g:countTokens":  `{"totalTokens":4}`,
		"/v1beta/models/g:embedContent": `{"embedding":{"values":[`,
		"/v1beta/models/g:nothing":      `"status":"NOT_FOUND"`,
	} {
		if _, got, err := u.post(t, path, body); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s = %s, %v, want %s", path, got, err, want)
		}
	}
	if _, got := u.get(t, "/v1beta/models"); !strings.Contains(got, `"name":"models/gemini-2.5-flash"`) {
		t.Errorf("models = %s", got)
	}
	for _, s := range u.ledger.Marked("")[:4] {
		if s.Model != "gemini-x" || s.InputTokens != 4 || s.CachedTokens != 5 || s.CacheWriteTokens != 0 || s.OutputTokens != 11 || !s.Usage {
			t.Errorf("record = %+v, want 4 in, 5 cached, 11 out", s)
		}
	}
}

func TestRerank(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	const body = `{"model":"r","query":"red kite","documents":["a green car",{"text":"the red kite"},"one kite"],"top_n":2,"return_documents":true}`
	for _, path := range []string{"/v1/rerank", "/v1/reranks", "/compatible-api/v1/reranks"} {
		_, got, err := u.post(t, path, body)
		want := `"results":[{"document":{"text":"the red kite"},"index":1,"relevance_score":1},{"document":{"text":"one kite"},"index":2,"relevance_score":0.5}],"usage":{"total_tokens":10}`
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s = %s, %v, want %s", path, got, err, want)
		}
	}
	_, got, err := u.post(t, "/v2/rerank", body)
	want := `"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}},"results":[{"index":1,"relevance_score":1},{"index":2,"relevance_score":0.5}]`
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("cohere = %s, %v, want %s", got, err, want)
	}
	if s := u.ledger.All()[3]; s.SearchUnits != 1 || !s.Usage {
		t.Errorf("record = %+v, want one search unit", s)
	}
	if res, got, err := u.post(t, "/v2/rerank", `{"query":"x"}`); err != nil || res.StatusCode != 400 || got != `{"message":"Missing required parameter: 'documents'."}` {
		t.Errorf("no documents = %s, %v", got, err)
	}
}

// poll asks for path until the answer contains want, at most five times, and
// returns how often it asked.
func (u *upstream) poll(t *testing.T, path, want string) int {
	t.Helper()
	for n := 1; n <= 5; n++ {
		if _, got := u.get(t, path); strings.Contains(got, want) {
			return n
		}
	}
	t.Errorf("%s never says %s", path, want)
	return 0
}

func TestDashScopeTasks(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	const path = "/api/v1/services/aigc/video-generation/video-synthesis"
	create := func(prompt string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+path, strings.NewReader(
			`{"model":"wan","input":{"prompt":"`+prompt+`"},"parameters":{"duration":7}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-DashScope-Async", "enable")
		_, body, err := u.do(t, req)
		var got struct {
			Output struct {
				ID     string `json:"task_id"`
				Status string `json:"task_status"`
			}
		}
		if err != nil || json.Unmarshal([]byte(body), &got) != nil || got.Output.Status != "PENDING" {
			t.Fatalf("create = %s, %v", body, err)
		}
		return got.Output.ID
	}
	if res, body, _ := u.post(t, path, `{"model":"wan","input":{"prompt":"x"}}`); res.StatusCode != 403 || !strings.Contains(body, "does not support synchronous calls") {
		t.Errorf("without the header = %d %s, want 403", res.StatusCode, body)
	}
	id := create("a kite [[mark=d]]")
	if n := u.poll(t, "/api/v1/tasks/"+id, `"usage":{"SR":720,"duration":7,`); n != 2 {
		t.Errorf("done at poll %d, want 2", n)
	}
	if s := u.ledger.Marked("d"); len(s) != 3 || s[2].Seconds != 7 || s[2].Model != "wan" || !s[2].Usage {
		t.Errorf("records = %+v, want create and two polls, the last of 7 s", s)
	}
	u.poll(t, "/api/v1/tasks/"+create("x [[job=failed]] [[polls=1]]"), `"task_status":"FAILED"`)
	waiting := create("y")
	if res, body, err := u.post(t, "/api/v1/tasks/"+waiting+"/cancel", ""); err != nil || res.StatusCode != 200 {
		t.Errorf("cancel = %s, %v", body, err)
	}
	u.poll(t, "/api/v1/tasks/"+waiting, `"task_status":"CANCELED"`)
	if res, _, _ := u.post(t, "/api/v1/tasks/"+id+"/cancel", ""); res.StatusCode != 400 {
		t.Errorf("cancel of a done task = %d, want 400", res.StatusCode)
	}
	u.poll(t, "/api/v1/tasks/none", `"task_status":"UNKNOWN"`)
}

func TestArkTasks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Unix(1_790_000_000, 0)
	u := start(t, simulator.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	const path = "/api/v3/contents/generations/tasks"
	create := func(prompt string) string {
		_, body, err := u.post(t, path, `{"model":"seedance","content":[{"type":"text","text":"`+prompt+`"}],"duration":4}`)
		var got struct{ ID string }
		if err != nil || json.Unmarshal([]byte(body), &got) != nil || !strings.HasPrefix(got.ID, "cgt-") {
			t.Fatalf("create = %s, %v", body, err)
		}
		return got.ID
	}
	remove := func(id string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, u.URL+path+"/"+id, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, _, err := u.do(t, req)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	id := create("a kite [[after=10s]] [[mark=a]]")
	for range 5 {
		if _, body := u.get(t, path+"/"+id); !strings.Contains(body, `"status":"running"`) {
			t.Fatalf("before its time: %s", body)
		}
	}
	if got := remove(id); got != 400 {
		t.Errorf("delete of a running task = %d, want 400", got)
	}
	mu.Lock()
	now = now.Add(10 * time.Second)
	mu.Unlock()
	u.poll(t, path+"/"+id, `"usage":{"completion_tokens":4000,"total_tokens":4000}`)
	if s := u.ledger.Marked("a"); s[len(s)-1].OutputTokens != 4000 || s[len(s)-1].Seconds != 4 {
		t.Errorf("record = %+v, want 4000 tokens", s[len(s)-1])
	}
	if got := remove(id); got != 200 {
		t.Errorf("delete = %d, want 200", got)
	}
	if res, _ := u.get(t, path+"/"+id); res.StatusCode != 404 {
		t.Errorf("deleted task = %d, want 404", res.StatusCode)
	}
	queued := create("b")
	if got := remove(queued); got != 200 {
		t.Errorf("delete of a queued task = %d, want 200", got)
	}
	u.poll(t, path+"/"+queued, `"status":"cancelled"`)
	u.poll(t, path+"/"+create("c [[job=expired]]"), `"status":"expired"`)
}

func TestAudioStreams(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	_, got, err := u.post(t, "/v1/audio/speech", `{"model":"gpt-4o-mini-tts","input":"two words","voice":"alloy","stream_format":"sse","response_format":"wav"}`)
	if err != nil || strings.Count(got, `"type":"speech.audio.delta"`) != 2 || !strings.Contains(got, `"usage":{"input_tokens":2,"output_tokens":2,"total_tokens":4}`) {
		t.Errorf("speech = %.300s, %v", got, err)
	}
	for _, tt := range []struct{ extra, value, want string }{
		{"stream", "true", `"type":"transcript.text.done","usage":{`},
		{"response_format", "text", "This is a simulated answer to: Ada\n"},
		{"response_format", "verbose_json", `"duration":12.5`},
		{"response_format", "vtt", "WEBVTT"},
	} {
		body, kind := form(t, map[string]string{"model": "gpt-4o-transcribe", "prompt": "Ada [[seconds=12.5]]", tt.extra: tt.value}, []byte("sound"))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+"/v1/audio/transcriptions", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		if _, got, err := u.do(t, req); err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s=%s: %s, %v, want %s", tt.extra, tt.value, got, err, tt.want)
		}
	}
	for _, s := range u.ledger.All()[1:] {
		if s.Seconds != 12.5 || s.InputTokens != 126 || s.OutputTokens != 7 {
			t.Errorf("record = %+v, want 12.5 s, 126 in, 7 out", s)
		}
	}
}

func TestMemoryWait(t *testing.T) {
	t.Parallel()
	var m simulator.Memory
	go func() {
		for _, marker := range []string{"a", "b", "a"} {
			m.Record(simulator.Served{Marker: marker})
		}
	}()
	got, err := m.Wait(t.Context(), "a", 2)
	if err != nil || len(got) != 2 || m.Len() != 3 {
		t.Errorf("Wait = %d of %d records, %v, want 2 of 3", len(got), m.Len(), err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Wait(gone, "c", 1); err == nil {
		t.Error("Wait for nothing ended without error")
	}
}

// lastServed is a ledger of one goroutine that keeps the last record.
type lastServed struct {
	records int
	last    simulator.Served
}

func (l *lastServed) Record(s simulator.Served) {
	l.records++
	l.last = s
}

// FuzzServe sends any body to each kind of endpoint: the answer must be JSON or
// a stream, and be recorded once.
func FuzzServe(f *testing.F) {
	paths := []string{
		"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/moderations", "/v1/images/generations",
		"/v1/audio/transcriptions", "/v1/videos", "/v1/messages", "/v2/rerank", "/v1/rerank",
		"/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent", "/api/v3/contents/generations/tasks", "/v2/chat",
	}
	f.Add(uint8(0), `{"model":"m","n":3,"messages":[{"role":"user","content":"hi [[words=3]] [[chunks=2]]"}]}`)
	f.Add(uint8(3), `{"model":"m","input":[[1,2],[3]],"dimensions":1e300}`)
	f.Add(uint8(9), `{"query":"q","documents":["a",{"text":"b"},null],"top_n":-1}`)
	f.Add(uint8(12), `{"contents":[{"parts":[{"text":"[[words=0]]"}]}]}`)
	f.Add(uint8(7), `{"prompt":"x [[job=expired]]","seconds":"-4"}`)
	f.Add(uint8(1), "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x--")
	// Nothing here waits, hijacks or writes megabytes.
	quick := strings.NewReplacer("[[hang", "[[", "[[delay", "[[", "[[gap", "[[", "[[cut", "[[", "[[gzip", "[[", "@", "", "\\u", "")
	var ledger lastServed
	var p *simulator.Provider
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		body = quick.Replace(body)
		if ledger.records%4096 == 0 { // a provider remembers its jobs
			p = simulator.New(simulator.Options{Ledger: &ledger})
		}
		before := ledger.records
		r := httptest.NewRequest(http.MethodPost, paths[int(which)%len(paths)], strings.NewReader(body))
		if strings.HasPrefix(body, "--x") {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if got := w.Result().Header.Get("Content-Type"); got == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("answer is not JSON: %s", w.Body)
		}
		if ledger.records != before+1 || ledger.last.Status != w.Code {
			t.Errorf("%d records, the last %+v, want one with status %d", ledger.records-before, ledger.last, w.Code)
		}
	})
}

func BenchmarkChat(b *testing.B) {
	p := simulator.New(simulator.Options{})
	const body = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		p.ServeHTTP(httptest.NewRecorder(), r)
	}
}
