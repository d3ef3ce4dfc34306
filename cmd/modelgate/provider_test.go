package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelgate/test/testkit"
)

// TestVideoForGo makes, follows, downloads and deletes a video with OpenAI's
// own client, which sends a form.
func TestVideoForGo(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{Catalog: `
  - {slug: acme/film, kind: video, routes: [{provider: openai, model: sora-native}], price: {second: 0.1}}`})
	client := openai.NewClient(option.WithBaseURL(b.URL+"/v1"), option.WithAPIKey(b.key), option.WithMaxRetries(0))
	job, err := client.Videos.New(t.Context(), openai.VideoNewParams{Model: "acme/film", Prompt: "a kite", Seconds: openai.VideoSeconds8})
	if err != nil || job.ID == "" || job.Status != openai.VideoStatusQueued {
		t.Fatalf("job %+v, %v", job, err)
	}
	if got := b.served(t); got.Model != "sora-native" || got.Job != job.ID {
		t.Errorf("the provider made %q of model %q", got.Job, got.Model)
	}
	booked := func(status string) {
		t.Helper()
		if _, rows := b.get(t, "/gw/usage"); !strings.Contains(rows, `"cost_usd":0.8`) || !strings.Contains(rows, `"parse_status":"`+status+`"`) {
			t.Errorf("rows %s, want one that is %s", rows, status)
		}
	}
	booked("provisional")
	done, err := client.Videos.PollStatus(t.Context(), job.ID, 10)
	if err != nil || done.ID != job.ID || done.Status != openai.VideoStatusCompleted {
		t.Fatalf("poll: %+v, %v", done, err)
	}
	booked("ok")
	resp, err := client.Videos.DownloadContent(t.Context(), job.ID, openai.VideoDownloadContentParams{})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if film, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(film), "ftyp") {
		t.Errorf("%d bytes of a film, %v", len(film), err)
	}
	if gone, err := client.Videos.Delete(t.Context(), job.ID); err != nil || !gone.Deleted {
		t.Errorf("delete: %+v, %v", gone, err)
	}
	booked("ok") // what has ended stays as it is
	if _, err := client.Videos.Get(t.Context(), "video_of_nobody"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a job of nobody's: %v", err)
	}
}

// compatible is a server that speaks OpenAI's format under paths and with a
// header of its own.
func compatible(t *testing.T) (url string, last func() *http.Request) {
	var mu sync.Mutex
	var seen *http.Request
	url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = r
		mu.Unlock()
		if r.Header.Get("X-House-Key") != "Key sk-house" {
			w.WriteHeader(401)
			return
		}
		switch r.URL.Path {
		case "/llm/chat", "/llm/v1/embeddings":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"data":[{"embedding":[1],"index":0}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
		default:
			w.WriteHeader(404)
		}
	})
	return url, func() *http.Request {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// TestProviderFromConfigurationAlone adds a provider that no row of the table
// describes, by each of the two ways there are.
func TestProviderFromConfigurationAlone(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"generic", "openai"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			upstream, last := compatible(t)
			b := newBench(t, testkit.GatewayOptions{
				Providers: `
  - name: house
    format: ` + format + `
    base_url: ` + upstream + `/llm
    credential: sk-house
    auth: {header: X-House-Key, prefix: "Key "}
    headers: {X-Project: p1}
    paths: {chat: "/chat?tenant=one", embeddings: /v1/embeddings}
    allow: ["POST /tools/{model}/run"]`,
				Catalog: `
  - {slug: house/chat, kind: llm, routes: [{provider: house, model: big-1}], price: {input: 1, output: 2}}
  - {slug: house/embed, kind: embedding, routes: [{provider: house, model: vec-1}], price: {input: 1}}`,
			})
			client := openai.NewClient(option.WithBaseURL(b.URL+"/v1"), option.WithAPIKey(b.key), option.WithMaxRetries(0))
			chat, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
				Model: "house/chat", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
			})
			if err != nil || chat.Choices[0].Message.Content != "ok" {
				t.Fatalf("chat: %+v, %v", chat, err)
			}
			if r := last(); r.URL.RawQuery != "tenant=one" || r.Header.Get("X-Project") != "p1" || r.Header.Get("Authorization") != "" {
				t.Errorf("the provider got %s with %v", r.URL, r.Header)
			}
			if resp, answer := b.post(t, "/v1/embeddings", `{"model":"house/embed","input":"x"}`); resp.StatusCode != 200 {
				t.Errorf("embeddings: %d %s", resp.StatusCode, answer)
			}
			if resp, answer := b.post(t, "/v1/messages", `{"model":"house/chat"}`); resp.StatusCode != 400 || !strings.Contains(answer, "use /v1/chat/completions or the service SDK") {
				t.Errorf("a door without a path: %d %s", resp.StatusCode, answer)
			}
			if resp, answer := b.post(t, "/house/tools/big-1/run", `{}`); resp.StatusCode != 404 || answer != "" {
				t.Errorf("an allowed path: %d %s, want the provider's own 404", resp.StatusCode, answer)
			}
			_, rows := b.get(t, "/gw/usage")
			for _, want := range []string{`"cost_usd":0.000007`, `"cost_usd":0.000003`, `"provider":"house","model":"big-1"`} {
				if !strings.Contains(rows, want) {
					t.Errorf("rows %s, want %s", rows, want)
				}
			}
		})
	}
}

// TestProviderBehindProxyAndPrivateCA reaches a provider only through an HTTPS
// proxy, by a name that only the proxy knows, with a certificate that only the
// configured file vouches for, over HTTP/2.
func TestProviderBehindProxyAndPrivateCA(t *testing.T) {
	t.Parallel()
	protocols := make(chan int, 10)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols <- r.ProtoMajor
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
	}))
	secure.EnableHTTP2 = true
	secure.StartTLS() // its certificate is for example.com
	t.Cleanup(secure.Close)
	proxied := make(chan string, 10)
	proxy := serve(t, tunnel(secure.Listener.Addr().String(), proxied))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	options := func(caFile string) testkit.GatewayOptions {
		return testkit.GatewayOptions{
			Env: []string{"HTTPS_PROXY=" + proxy, "NO_PROXY="},
			Providers: `
  - {name: far, format: openai, base_url: "https://example.com", credential: sk-far` + caFile + `}`,
			Catalog: `
  - {slug: far/chat, kind: llm, routes: [{provider: far, model: m}], price: {input: 1, output: 2}}`,
		}
	}
	trusting := newBench(t, options(", ca_file: "+ca))
	resp, answer := trusting.post(t, "/v1/chat/completions", `{"model":"far/chat","messages":[]}`)
	if resp.StatusCode != 200 || !strings.Contains(answer, "prompt_tokens") {
		t.Fatalf("%d %s\n%s", resp.StatusCode, answer, trusting.Log())
	}
	if target, major := <-proxied, <-protocols; target != "example.com:443" || major != 2 {
		t.Errorf("the proxy was asked for %s and the provider spoke HTTP/%d, want example.com:443 and 2", target, major)
	}
	wary := newBench(t, options(""))
	if resp, answer := wary.post(t, "/v1/chat/completions", `{"model":"far/chat","messages":[]}`); resp.StatusCode != 502 || answer != "" {
		t.Errorf("without the CA: %d %q, want a bare 502", resp.StatusCode, answer)
	}
	if len(protocols) != 0 {
		t.Error("a request reached a provider whose certificate nobody vouches for")
	}
}

// tunnel is an HTTPS proxy that leads every CONNECT to one address.
func tunnel(address string, asked chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		asked <- r.Host
		far, err := net.Dial("tcp", address)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer far.Close()
		near, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer near.Close()
		if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
		var copies sync.WaitGroup
		copies.Go(func() { _, _ = io.Copy(far, buffered); far.Close() }) // one end closing ends both
		copies.Go(func() { _, _ = io.Copy(near, far); near.Close() })
		copies.Wait()
	}
}
