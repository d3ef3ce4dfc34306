//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// cloudReplies are replies by the path and the body of a request: 200 pieces of a
// stream, in each of three framings, or one value.
func cloudReplies() http.Handler {
	const text, usage = `word `, `{"prompt_tokens":300,"completion_tokens":200,"total_tokens":500}`
	var events, converse, invoke []byte
	for range 200 {
		events = fmt.Appendf(events, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", text)
		converse = append(converse, cloud.Event("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":%q},"p":"abcdefghijklmnopqrstuvwxyz"}`, text))...)
		invoke = append(invoke, cloud.Chunk(fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text))...)
	}
	events = append(events, "data: {\"id\":\"c\",\"choices\":[],\"usage\":"+usage+"}\n\ndata: [DONE]\n\n"...)
	converse = append(converse, cloud.Event("metadata", `{"usage":{"inputTokens":300,"outputTokens":200,"totalTokens":500},"metrics":{"latencyMs":5}}`)...)
	invoke = slices.Concat(invoke, cloud.Chunk(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":300,"output_tokens":200}}`), cloud.Chunk(`{"type":"message_stop"}`))
	value := []byte(`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat(text, 200) + `"},"finish_reason":"stop"}],"usage":` + usage + `}`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		media, reply := "application/json", value
		switch {
		case strings.HasSuffix(r.URL.Path, "/converse-stream"):
			media, reply = "application/vnd.amazon.eventstream", converse
		case strings.HasSuffix(r.URL.Path, "/invoke-with-response-stream"):
			media, reply = "application/vnd.amazon.eventstream", invoke
		case bytes.HasPrefix(body, []byte(`{"stream":true`)):
			media, reply = "text/event-stream", events
		}
		w.Header().Set("Content-Type", media)
		for piece := range slices.Chunk(reply, len(reply)/40) {
			_, _ = w.Write(piece)
			if media != "application/json" {
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
}

// BenchmarkCloudCall measures the processor's time of the gateway for two kinds of
// calls in turns, and reports their ratio: signed ones and those with a cloud's token
// over those with a key, by size of the body, and streams in Amazon's binary messages
// over those in server-sent events. The last compares two gateways, of which one has
// identities that the calls do not use. One iteration is twenty turns of each.
func BenchmarkCloudCall(b *testing.B) {
	provider := httptest.NewServer(cloudReplies())
	b.Cleanup(provider.Close)
	tokens := cloud.NewTokenService(b)
	file := filepath.Join(b.TempDir(), "gcp.json")
	if err := os.WriteFile(file, tokens.ServiceAccount(), 0o600); err != nil {
		b.Fatal(err)
	}
	keyed := fmt.Sprintf("\n  - {name: keyed, format: bedrock, base_url: %q, credential: %s}\n  - {name: plain, format: openai, base_url: %q, credential: k}", provider.URL, cloud.BedrockKey, provider.URL)
	start := func(more string) *metered {
		g := testkit.StartGateway(b, testkit.GatewayOptions{Metering: "fsync: interval", Providers: keyed + more})
		key, _ := g.NewKey(g.NewClient("bench"))
		return &metered{g, key, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	}
	g := start(fmt.Sprintf("\n  - {name: signed, format: bedrock, base_url: %q, identity: {aws: {region: eu-central-1, service: bedrock, access_key_id: %s, secret_access_key: %s}}}", provider.URL, cloud.AccessKeyID, cloud.SecretKey) +
		fmt.Sprintf("\n  - {name: token, format: openai, base_url: %q, identity: {google: {credentials_file: %q}}}", provider.URL, file))
	alone := start("")
	message := func(size int) string {
		return `"messages":[{"role":"user","content":"` + strings.Repeat("word ", size/5) + `"}],"model":"m"}`
	}
	small, large, streamed := "{"+message(1000), "{"+message(100_000), `{"stream":true,"stream_options":{"include_usage":true},`+message(1000)
	const chat, own = "/openai/v1/chat/completions", "/keyed/model/m/"
	for _, c := range []struct {
		name        string
		over, under run
	}{
		{"signed_over_key,1KB", run{g, "/signed" + chat, small, 100}, run{g, "/keyed" + chat, small, 100}},
		{"signed_over_key,100KB", run{g, "/signed" + chat, large, 25}, run{g, "/keyed" + chat, large, 25}},
		{"signed_over_key,stream", run{g, "/signed" + chat, streamed, 50}, run{g, "/keyed" + chat, streamed, 50}},
		{"token_over_key,1KB", run{g, "/token/v1/chat/completions", small, 100}, run{g, "/plain/v1/chat/completions", small, 100}},
		{"Converse_over_events", run{g, own + "converse-stream", small, 50}, run{g, "/keyed" + chat, streamed, 50}},
		{"InvokeModel_over_events", run{g, own + "invoke-with-response-stream", small, 50}, run{g, "/keyed" + chat, streamed, 50}},
		{"key_beside_identities_over_key_alone,1KB", run{g, "/plain/v1/chat/completions", small, 100}, run{alone, "/plain/v1/chat/completions", small, 100}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.over.calls(b, 200)
			c.under.calls(b, 200)
			var over, under, turns int64
			for b.Loop() {
				for range 20 {
					over += c.over.turn(b)
					under += c.under.turn(b)
					turns++
				}
			}
			b.ReportMetric(float64(over)/float64(under), "ratio")
			b.ReportMetric(float64(under)*1e4/float64(turns*int64(c.under.count)), "µs/call")
		})
	}
}

// metered is a gateway whose processor's time is measured.
type metered struct {
	*testkit.Gateway
	key    string
	client *http.Client
}

// run is a number of equal calls, eight at a time.
type run struct {
	gateway    *metered
	path, body string
	count      int
}

// turn makes the calls, and returns what the gateway has used meanwhile.
func (r run) turn(b *testing.B) (ticks int64) {
	before := processTicks(b, r.gateway.Pid())
	r.calls(b, r.count)
	return processTicks(b, r.gateway.Pid()) - before
}

func (r run) calls(b *testing.B, n int) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for range n {
		group.Go(func() error {
			req, err := http.NewRequest(http.MethodPost, r.gateway.URL+r.path, strings.NewReader(r.body))
			if err != nil {
				return err
			}
			req.Header.Set("Authorization", "Bearer "+r.gateway.key)
			req.Header.Set("Content-Type", "application/json")
			resp, err := r.gateway.client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < 1000 || resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: status %d, %d bytes, %v", r.path, resp.StatusCode, n, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// processTicks is what a process has used of the processor, in hundredths of a
// second.
func processTicks(b *testing.B, pid int) (sum int64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}
