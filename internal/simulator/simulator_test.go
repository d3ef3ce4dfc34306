package simulator_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate/internal/simulator"
)

// upstream is a simulator on loopback whose clock stands still.
type upstream struct {
	*httptest.Server
	ledger *simulator.Memory
}

func start(t *testing.T, opts simulator.Options) *upstream {
	t.Helper()
	ledger := &simulator.Memory{}
	if opts.Ledger == nil {
		opts.Ledger = ledger
	}
	if opts.Now == nil {
		opts.Now = func() time.Time { return time.Unix(1_790_000_000, 0) }
	}
	srv := httptest.NewServer(simulator.New(opts))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return &upstream{srv, ledger}
}

func (u *upstream) post(t *testing.T, path, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	return u.do(t, req)
}

func (u *upstream) do(t *testing.T, req *http.Request) (*http.Response, string, error) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

func (u *upstream) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, body, err := u.do(t, req)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// last waits for the only record with the marker.
func (u *upstream) last(t *testing.T, marker string) simulator.Served {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	found, err := u.ledger.Wait(ctx, marker, 1)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

func chatBody(extra, prompt string) string {
	return fmt.Sprintf(`{"model":"m"%s,"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":%q}]}`, extra, prompt)
}

func TestAnswerDependsOnTheRequestOnly(t *testing.T) {
	t.Parallel()
	a, b := start(t, simulator.Options{}), start(t, simulator.Options{})
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models/m:generateContent"} {
		body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"one two"}],"input":"one two","contents":[{"parts":[{"text":"one two"}]}]}`
		_, first, _ := a.post(t, path, body)
		_, again, _ := a.post(t, path, body)
		_, elsewhere, _ := b.post(t, path, body)
		if first != again || first != elsewhere {
			t.Errorf("%s: equal requests, different answers:\n%s\n%s\n%s", path, first, again, elsewhere)
		}
	}
}

func TestBillCanBeCheckedByHand(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	_, body, err := u.post(t, "/v1/chat/completions", chatBody(`,"n":2`, "three more words [[cached=64]] [[cache_write=7]] [[reasoning=5]] [[words=4]]"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Total      int `json:"total_tokens"`
			PD         struct {
				Cached int `json:"cached_tokens"`
				Write  int `json:"cache_write_tokens"`
			} `json:"prompt_tokens_details"`
			CD struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 2 || got.Choices[1].Message.Content != "This is a simulated" {
		t.Errorf("choices = %+v, want two of four words", got.Choices)
	}
	if u := got.Usage; u.Prompt != 5+64+7 || u.Completion != 2*4+5 || u.Total != 89 || u.PD.Cached != 64 || u.PD.Write != 7 || u.CD.Reasoning != 5 {
		t.Errorf("usage = %+v, want 76 in (64 cached, 7 written), 13 out (5 reasoning)", u)
	}
}

func TestLedgerEqualsWhatWasAnswered(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{KeepRequests: true})
	body := chatBody(`,"stream":true,"stream_options":{"include_usage":true}`, "hello there [[mark=m1]] [[cached=3]]")
	_, text, err := u.post(t, "/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	got := u.last(t, "m1")
	if got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("header = %v, want the request's", got.Header)
	}
	got.Header = nil
	want := simulator.Served{
		Seq: 1, Marker: "m1", Method: "POST", Path: "/v1/chat/completions", Model: "m", Status: 200,
		InputTokens: 4, CachedTokens: 3, OutputTokens: 8, Usage: true, Complete: true,
		Chunks: strings.Count(text, "data: "), Bytes: int64(len(text)), Body: []byte(body),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if !strings.Contains(text, `"prompt_tokens":7,`) || !strings.Contains(text, `"total_tokens":15}`) {
		t.Errorf("the answer states another usage:\n%s", text)
	}
}

func TestStreamShape(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	_, plain, _ := u.post(t, "/v1/chat/completions", chatBody(`,"stream":true`, "a"))
	if strings.Contains(plain, `"usage"`) {
		t.Errorf("usage though it was not asked for:\n%s", plain)
	}
	_, asked, _ := u.post(t, "/v1/chat/completions", chatBody(`,"stream":true,"stream_options":{"include_usage":true}`, "a"))
	frames := strings.Split(strings.TrimSuffix(asked, "\n\n"), "\n\n")
	end := frames[len(frames)-2:]
	if !strings.Contains(end[0], `"choices":[],`) || !strings.Contains(end[0], `"usage":{`) || end[1] != "data: [DONE]" {
		t.Errorf("end = %q, want the usage chunk and [DONE]", end)
	}
	for _, f := range frames[:len(frames)-2] {
		if !strings.Contains(f, `"usage":null`) {
			t.Errorf("frame without a null usage: %s", f)
		}
	}
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	stream := `,"stream":true,"stream_options":{"include_usage":true}`
	for _, tt := range []struct {
		name, extra, prompt string
		status              int
		contains, lacks     string
		broken              bool // the connection ends before the body does
		usage               bool
	}{
		{"status", "", "[[status=503]]", 503, `"type":"server_error"`, "", false, false},
		{"last wins", "", "[[status=503]] [[status=429]]", 429, "rate_limit_exceeded", "", false, false},
		{"for another", "", "[[status@eu=503]]", 200, "chat.completion", "", false, true},
		{"for this one", "", "[[status@here=503]]", 503, "server_error", "", false, false},
		{"unknown", "", "[[nonsense]]", 400, "known: after, arguments, cache_write", "", false, false},
		{"bad value", "", "[[status=200]]", 400, "status wants 400..599", "", false, false},
		{"words", "", "x [[words=3]]", 200, `"This is a"`, "", false, true},
		{"no usage", "", "[[no_usage]]", 200, "chat.completion", `"usage"`, false, false},
		{"no usage streamed", stream, "[[no_usage]]", 200, "[DONE]", `"usage"`, false, false},
		{"usage null", "", "[[usage_null]]", 200, `"usage":null`, `"prompt_tokens"`, false, false},
		{"tier", "", "[[tier=flex]]", 200, `"service_tier":"flex"`, "", false, true},
		{"stated counts", "", "[[input=1000]] [[output=2000]]", 200, `"total_tokens":3000`, "", false, true},
		{"cut body", "", "[[cut=1]]", 200, `"chatcmpl-`, `"total_tokens"`, true, false},
		{"cut stream", stream, "[[cut=2]]", 200, `"content":"This"`, `"content":" is"`, true, false},
		{"cut after all", stream, "[[words=1]] [[cut=5]]", 200, "[DONE]", "", true, true},
		{"error in stream", stream, "[[error_in_stream=2]]", 200, `data: {"error":{`, "[DONE]", false, false},
		{"error at half", stream, "[[error_in_stream]]", 200, `data: {"error":{`, "[DONE]", false, false},
		{"chunks", stream, "[[words=100]] [[chunks=2]]", 200, "[DONE]", "", false, true},
		{"delay and gap", stream, "[[delay=1ms]] [[gap=1ms]]", 200, "[DONE]", "", false, true},
		{"redirect", "", "[[redirect=http://localhost/elsewhere]]", 302, "", "chat", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := start(t, simulator.Options{Name: "here"})
			res, body, err := u.post(t, "/v1/chat/completions", chatBody(tt.extra, tt.prompt))
			if (err != nil) != tt.broken {
				t.Fatalf("error = %v, want broken %t", err, tt.broken)
			}
			if res.StatusCode != tt.status {
				t.Errorf("status = %d, want %d", res.StatusCode, tt.status)
			}
			if !strings.Contains(body, tt.contains) || (tt.lacks != "" && strings.Contains(body, tt.lacks)) {
				t.Errorf("body = %q, want %q in it and %q not", body, tt.contains, tt.lacks)
			}
			got := u.last(t, "")
			if got.Status != tt.status || got.Complete == tt.broken || got.Usage != tt.usage || got.Bytes != int64(len(body)) {
				t.Errorf("record = %+v, want status %d, complete %t, usage %t, %d bytes", got, tt.status, !tt.broken, tt.usage, len(body))
			}
		})
	}
}

func TestDirectiveHeaders(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	res, _, _ := u.post(t, "/v1/chat/completions", chatBody("", "[[redirect=http://localhost/x]] [[retry_after=7]]"))
	if got := res.Header.Get("Location") + " " + res.Header.Get("Retry-After"); got != "http://localhost/x 7" {
		t.Errorf("Location and Retry-After = %q", got)
	}
	res, body, err := u.post(t, "/v1/chat/completions", chatBody(`,"stream":true`, "[[gzip]]"))
	if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("encoding = %q, %v, want gzip", res.Header.Get("Content-Encoding"), err)
	}
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) {
		t.Errorf("decompressed = %q, %v, want a whole stream", text, err)
	}
}

func TestCutBeforeTheStatusLine(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	res, _, err := u.post(t, "/v1/chat/completions", chatBody("", "[[cut=0]] [[mark=gone]]"))
	if err == nil {
		t.Fatalf("answered %d, want a closed connection", res.StatusCode)
	}
	if got := u.last(t, "gone"); got.Status != 0 || got.Complete || got.Bytes != 0 {
		t.Errorf("record = %+v, want nothing sent", got)
	}
}

func TestHangEndsWithTheClient(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{"[[hang]] [[mark=h]]", "[[hang=2]] [[mark=h]]"} {
		u := start(t, simulator.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.URL+"/v1/chat/completions", strings.NewReader(chatBody(`,"stream":true`, prompt)))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		if strings.Contains(prompt, "=2") {
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			buf := make([]byte, 1)
			if _, err := io.ReadFull(res.Body, buf); err != nil {
				t.Fatal(err)
			}
			cancel()
			_, err = io.Copy(io.Discard, res.Body)
			done <- err
		} else {
			cancelled, stop := context.WithTimeout(ctx, 50*time.Millisecond)
			res, err := http.DefaultClient.Do(req.WithContext(cancelled))
			stop()
			if err == nil {
				res.Body.Close()
			}
			done <- err
		}
		if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error = %v, want the client's own", prompt, err)
		}
		if got := u.last(t, "h"); got.Complete {
			t.Errorf("%s: record = %+v, want incomplete", prompt, got)
		}
		cancel()
	}
}

func TestOnlyTheLastUserTurnSteers(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	body := `{"model":"m","messages":[{"role":"user","content":"[[status=503]]"},{"role":"assistant","content":"[[status=500]]"},{"role":"user","content":[{"type":"text","text":"again"}]}]}`
	res, text, err := u.post(t, "/v1/chat/completions", body)
	if err != nil || res.StatusCode != 200 || !strings.Contains(text, `"prompt_tokens":1,`) {
		t.Errorf("answer = %d %s, want 200 with one word of input", res.StatusCode, text)
	}
}

func TestCredential(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{Credential: "right"})
	for _, tt := range []struct {
		path, header, value string
		status              int
		contains            string
	}{
		{"/v1/chat/completions", "Authorization", "Bearer right", 200, "chat.completion"},
		{"/v1/chat/completions", "Authorization", "Bearer wrong", 401, `"code":"invalid_api_key"`},
		{"/v1/chat/completions", "X-None", "", 401, `"code":"invalid_api_key"`},
		{"/v1/chat/completions", "api-key", "right", 200, "chat.completion"},
		{"/v1/messages", "x-api-key", "right", 200, `"type":"message"`},
		{"/v1/messages", "x-api-key", "wrong", 401, `"type":"authentication_error"`},
		{"/v1beta/models/m:generateContent", "x-goog-api-key", "right", 200, "candidates"},
		{"/v1beta/models/m:generateContent?key=right", "X-None", "", 200, "candidates"},
		{"/v1beta/models/m:generateContent?key=wrong", "X-None", "", 401, `"status":"UNAUTHENTICATED"`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.URL+tt.path, strings.NewReader(
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi [[mark=`+tt.header+`]]"}],"contents":[{"parts":[{"text":"hi"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(tt.header, tt.value)
		res, body, err := u.do(t, req)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != tt.status || !strings.Contains(body, tt.contains) {
			t.Errorf("%s with %s: %q = %d %s, want %d and %s", tt.path, tt.header, tt.value, res.StatusCode, body, tt.status, tt.contains)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	for _, path := range []string{"/v1/nothing", "/v1/v1/chat/completions", "/chat", "/v2/chat/completions", "/"} {
		res, body, err := u.post(t, path, `{}`)
		if err != nil || res.StatusCode != 404 || !strings.Contains(body, `"type":"invalid_request_error"`) {
			t.Errorf("%s = %d %s, want 404 in OpenAI's shape", path, res.StatusCode, body)
		}
	}
	for _, base := range []string{"", "/v1", "/openai/v1", "/compatible-mode/v1", "/v1beta/openai", "/api/paas/v4"} {
		res, _, err := u.post(t, base+"/chat/completions", chatBody("", "x"))
		if err != nil || res.StatusCode != 200 {
			t.Errorf("%s/chat/completions = %d, want 200", base, res.StatusCode)
		}
	}
}

// form is a multipart body.
func form(t *testing.T, values map[string]string, file []byte) (body *bytes.Buffer, kind string) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for k, v := range values {
		if err := w.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if file != nil {
		part, err := w.CreateFormFile("file", "f.bin")
		if err != nil {
			t.Fatal(err)
		}
		part.Write(file)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return body, w.FormDataContentType()
}
