package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// bench is a gateway with one organization and key.
type bench struct {
	*testkit.Gateway
	key string
}

func newBench(t *testing.T, o testkit.GatewayOptions) *bench {
	t.Helper()
	g := testkit.StartGateway(t, o)
	key, _ := g.NewKey(g.NewClient(t.Name()))
	return &bench{g, key}
}

// post sends a body as the key's owner; headers come in pairs.
func (b *bench) post(t *testing.T, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return exchange(t, req)
}

// served is the last request that reached the provider.
func (b *bench) served(t *testing.T) simulator.Served {
	t.Helper()
	all := b.Upstream.Ledger.All()
	if len(all) == 0 {
		t.Fatal("nothing reached the provider")
	}
	return all[len(all)-1]
}

// TestBodiesPassByteForByte sends bodies that a decoder would tidy up.
func TestBodiesPassByteForByte(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	bodies := map[string]string{
		"white space":    "{ \n\t\"model\"  :\r\n \"openai/gpt-5-mini\" ,\n " + messages + " }  \n",
		"model last":     `{` + messages + `,"model":"openai/gpt-5-mini"}`,
		"escapes":        `{"model":"openai\/gpt-5-mini","user":"\u0061\ud83d\ude00\/","messages":[{"role":"user","content":"caf\u00e9 \u2028"}]}`,
		"nested models":  `{"metadata":{"model":"x","Model":"y"},"model":"openai/gpt-5-mini",` + messages + `,"tools":[{"model":"z"}]}`,
		"big numbers":    `{"model":"openai/gpt-5-mini","seed":12345678901234567890,"temperature":1.0000000000000000001,"x":1.50E+2,` + messages + `}`,
		"unknown fields": `{"new_in_2027":{"deep":[1,2,{"a":null}]},"model":"openai/gpt-5-mini",` + messages + `}`,
		"raw UTF-8":      `{"model":"openai/gpt-5-mini","user":"naïve 🪁",` + messages + `}`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			resp, answer := b.post(t, "/v1/chat/completions", body)
			if resp.StatusCode != 200 {
				t.Fatalf("status %d: %s", resp.StatusCode, answer)
			}
			got := b.served(t)
			want := strings.Replace(strings.Replace(body, `"openai/gpt-5-mini"`, `"gpt-5-mini"`, 1), `"openai\/gpt-5-mini"`, `"gpt-5-mini"`, 1)
			if string(got.Body) != want {
				t.Errorf("the provider got\n%q, want\n%q", got.Body, want)
			}
		})
	}
	t.Run("proxy", func(t *testing.T) {
		body := "{ \"model\" : \"m\" ,\t" + messages + "}\n"
		if resp, answer := b.post(t, "/openai/v1/chat/completions?key=%20x", body); resp.StatusCode != 200 {
			t.Fatalf("status %d: %s", resp.StatusCode, answer)
		}
		if got := b.served(t); string(got.Body) != body {
			t.Errorf("the provider got %q, want %q", got.Body, body)
		}
	})
}

// TestRepliesPassByteForByte replays recorded replies with odd bytes.
func TestRepliesPassByteForByte(t *testing.T) {
	t.Parallel()
	replies := map[string]struct{ contentType, body string }{
		"json":   {"application/json", "{ \"id\" : \"x\",\r\n\t\"choices\":[{\"a\":\"\\u00e9\"}], \"usage\": {\"prompt_tokens\":3 , \"completion_tokens\": 4,\"total_tokens\":7},\"n\":1e400 }\n\n"},
		"stream": {"text/event-stream", ": hello\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\nid: 7\ndata:{\"choices\":[],\"x\":1}\n\n\n\ndata: [DONE]\n\ntrailing"},
	}
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", reply.contentType)
				w.Header().Set("OpenAI-Organization", "org-secret")
				w.Header().Set("X-RateLimit-Limit-Requests", "10")
				w.Header().Set("Set-Cookie", "a=b")
				w.Header().Set("OpenAI-Version", "2020-10-01")
				io.WriteString(w, reply.body)
			})
			b := newBench(t, testkit.GatewayOptions{Upstream: upstream})
			resp, answer := b.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","stream_options":{"include_usage":true},"messages":[]}`)
			if answer != reply.body {
				t.Errorf("the client got\n%q, want\n%q", answer, reply.body)
			}
			for _, gone := range []string{"OpenAI-Organization", "X-RateLimit-Limit-Requests", "Set-Cookie"} {
				if resp.Header.Get(gone) != "" {
					t.Errorf("header %s reached the client", gone)
				}
			}
			if resp.Header.Get("OpenAI-Version") == "" || resp.Header.Get("X-Gateway-Request-Id") == "" {
				t.Errorf("headers %v", resp.Header)
			}
		})
	}
}

// TestMultipartModelIsRewritten keeps every byte of a form but the model.
func TestMultipartModelIsRewritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("response_format", "json")
	_ = w.WriteField("model", "openai/whisper-1")
	file, _ := w.CreateFormFile("file", "a.wav")
	_, _ = file.Write([]byte("RIFF\x00\x01 model openai/whisper-1"))
	_ = w.Close()
	sent := form.String()
	resp, answer := b.post(t, "/v1/audio/transcriptions", sent, "Content-Type", w.FormDataContentType())
	if resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, answer)
	}
	want := strings.Replace(sent, "\r\n\r\nopenai/whisper-1\r\n", "\r\n\r\nwhisper-1\r\n", 1)
	if got := b.served(t); string(got.Body) != want {
		t.Errorf("the provider got\n%q, want\n%q", got.Body, want)
	}
}

// TestUsageIsAskedForAndHidden streams without include_usage: the provider is
// asked for it, the caller does not see the extra chunk, and the row is exact.
func TestUsageIsAskedForAndHidden(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	body := `{"model":"openai/gpt-5-mini","stream":true,"messages":[{"role":"user","content":"one two [[words=3]]"}]}`
	resp, answer := b.post(t, "/v1/chat/completions", body)
	if resp.StatusCode != 200 || !strings.HasSuffix(answer, "data: [DONE]\n\n") {
		t.Fatalf("status %d: %s", resp.StatusCode, answer)
	}
	if strings.Contains(answer, `"choices":[]`) || strings.Contains(answer, `"prompt_tokens"`) {
		t.Errorf("the caller sees the usage chunk:\n%s", answer)
	}
	if got := b.served(t); !bytes.Contains(got.Body, []byte(`"stream_options":{"include_usage":true}`)) {
		t.Errorf("the provider got %s", got.Body)
	}
	asked := strings.Replace(body, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	if _, answer := b.post(t, "/v1/chat/completions", asked); !strings.Contains(answer, `"prompt_tokens":2`) {
		t.Errorf("a caller who asked does not get the usage chunk:\n%s", answer)
	}
	_, rows := b.get(t, "/gw/usage")
	if n := strings.Count(rows, `"cost_usd":0.0000065,"total_tokens":5,"status_code":200`); n != 2 {
		t.Errorf("%d exact rows, want 2: %s", n, rows)
	}
}

// exchange makes a call and reads its answer.
func exchange(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := bounded().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

// bounded gives up after a while, so that a call that hangs fails its own test
// and not the whole run.
func bounded() *http.Client { return &http.Client{Timeout: 2 * time.Minute, Transport: loopback} }

// loopback takes a gateway's certificate for granted.
var loopback = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	return t
}()

func (b *bench) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	return exchange(t, req)
}

// TestEveryEventIsFlushed lets the provider send an event only after the
// client has read the one before.
func TestEveryEventIsFlushed(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
		io.WriteString(w, "data: [DONE]\n\n")
	})
	b := newBench(t, testkit.GatewayOptions{Upstream: upstream})
	req, err := http.NewRequest(http.MethodPost, b.URL+"/v1/chat/completions", strings.NewReader(`{"model":"openai/gpt-5-mini","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	resp, err := bounded().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	seen := 0
	for lines.Scan() {
		if strings.Contains(lines.Text(), fmt.Sprintf(`"content":"%d"`, seen)) {
			seen++
			next <- struct{}{}
		}
	}
	if seen != 5 || lines.Err() != nil {
		t.Fatalf("%d events, want 5 (%v)", seen, lines.Err())
	}
}

// TestNothingOfTheClientLeaves sends the key wherever a key can travel and
// headers that would name an account, and looks at what the provider gets.
func TestNothingOfTheClientLeaves(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Clone(r.Context())
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	})
	b := newBench(t, testkit.GatewayOptions{Upstream: upstream})
	headers := []string{
		"X-Api-Key", b.key, "Api-Key", b.key, "X-Goog-Api-Key", b.key, "X-Gateway-Attribution", "team=secret-team",
		"Connection", "Authorization, X-Extra", "X-Extra", "1", "OpenAI-Organization", "org-mine", "Idempotency-Key", "k",
		"X-Forwarded-For", "10.0.0.1", "Cookie", "session=1", "X-Stainless-Lang", "python", "Accept-Encoding", "gzip, br",
	}
	resp, answer := b.post(t, "/v1/chat/completions?api_key="+b.key, `{"model":"openai/gpt-5-mini","messages":[]}`, headers...)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, answer)
	}
	r := <-got
	dump := fmt.Sprint(r.URL, r.Header)
	for _, secret := range []string{b.key, "gw_live_", "secret-team", "org-mine", "10.0.0.1", "session=1"} {
		if strings.Contains(dump, secret) {
			t.Errorf("%q reached the provider: %s", secret, dump)
		}
	}
	if auth := r.Header["Authorization"]; len(auth) != 1 || auth[0] != "Bearer sk-upstream" {
		t.Errorf("Authorization %q, want the provider's credential once", auth)
	}
	if r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Extra") != "" || r.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("headers %v", r.Header)
	}
	if r.Header.Get("X-Stainless-Lang") != "python" {
		t.Error("a harmless SDK header was dropped")
	}
}

// TestFallback moves on from a route that fails and names the one that
// answered, in one row.
func TestFallback(t *testing.T) {
	t.Parallel()
	dead := serve(t, nil)
	o := testkit.GatewayOptions{Providers: `
  - {name: dead, format: openai, base_url: "` + dead + `", region: us, credential: sk-upstream}
  - {name: openai, format: openai, base_url: "$UPSTREAM", region: eu, credential: sk-upstream}
  - {name: second, format: openai, base_url: "$UPSTREAM", region: us, credential: sk-upstream}`, Catalog: `
  - {slug: acme/dead, kind: llm, routes: [{provider: dead, model: a}, {provider: openai, model: b}], price: {input: 1, output: 1}}
  - {slug: acme/busy, kind: llm, routes: [{provider: openai, model: first}, {provider: second, model: second}], price: {input: 1, output: 1}}`}
	b := newBench(t, o)
	resp, answer := b.post(t, "/v1/chat/completions", `{"model":"acme/dead","messages":[{"role":"user","content":"hello"}]}`)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, answer)
	}
	_, rows := b.get(t, "/gw/usage?id="+resp.Header.Get("X-Gateway-Request-Id"))
	if !strings.Contains(rows, `"provider":"openai","model":"b"`) || strings.Count(rows, `"id"`) != 1 {
		t.Errorf("rows %s", rows)
	}
	// Both routes answer 503: each is tried once, and the last answer stands.
	before := b.Upstream.Ledger.Len()
	resp, _ = b.post(t, "/v1/chat/completions", `{"model":"acme/busy","messages":[{"role":"user","content":"hello [[status=503]]"}]}`)
	if tried := b.Upstream.Ledger.Len() - before; resp.StatusCode != 503 || tried != 2 {
		t.Errorf("status %d after %d tries, want 503 after 2", resp.StatusCode, tried)
	}
	_, rows = b.get(t, "/gw/usage?id="+resp.Header.Get("X-Gateway-Request-Id"))
	if !strings.Contains(rows, `"provider":"second"`) || !strings.Contains(rows, `"cost_usd":0,`) {
		t.Errorf("rows %s", rows)
	}
}

// TestTransportFailuresAreBare answers without a body when a provider cannot
// be reached.
func TestTransportFailuresAreBare(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{Upstream: serve(t, nil)})
	resp, answer := b.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[]}`)
	if resp.StatusCode != 502 || answer != "" || resp.Header.Get("X-Gateway-Request-Id") == "" {
		t.Errorf("status %d, body %q, headers %v", resp.StatusCode, answer, resp.Header)
	}
	_, rows := b.get(t, "/gw/usage")
	if !strings.Contains(rows, `"cost_usd":0,"total_tokens":0,"status_code":502`) {
		t.Errorf("rows %s", rows)
	}
}
