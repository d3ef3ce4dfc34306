package security

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// said is one piece of a reply, and the output tokens that all pieces up to it
// have delivered.
type said struct {
	text   string
	tokens int
}

// speech is a reply of one provider on one path, in pieces that a cut can fall
// between.
type speech struct {
	name, format, path, media string
	body                      string // members of the request
	pieces                    []said
}

// unasked names the replies in which the gateway asks for usage in the caller's
// place, and takes out the "usage":null that each chunk then has.
var unasked = [...]string{"two choices", "visible reasoning"}

// passed is how many bytes of the first n pieces reach the caller.
func (s *speech) passed(n int) (length int) {
	for _, p := range s.pieces[:n] {
		text := p.text
		if slices.Contains(unasked[:], s.name) {
			text = strings.ReplaceAll(text, `,"usage":null`, "")
		}
		length += len(text)
	}
	return length
}

// words is text of so many tokens, with what JSON writes as escapes.
func words(tokens int) string { return strings.Repeat("né\n", tokens) }

// speak makes pieces from a pattern in which %s stands for text, a JSON string
// without its quotes. Each says so many tokens.
func speak(pattern string, tokens ...int) (pieces []said) {
	sum := 0
	for _, n := range tokens {
		sum += n
		text := strings.ReplaceAll(words(n), "\n", `\n`)
		if n%2 == 1 { // some encoders write ASCII alone
			text = strings.ReplaceAll(text, "é", `\u00e9`)
		}
		pieces = append(pieces, said{strings.Replace(pattern, "%s", text, 1), sum})
	}
	return pieces
}

// silent adds pieces without output.
func silent(pieces []said, texts ...string) []said {
	sum := 0
	if len(pieces) > 0 {
		sum = pieces[len(pieces)-1].tokens
	}
	for _, text := range texts {
		pieces = append(pieces, said{text, sum})
	}
	return pieces
}

// then puts pieces one after another.
func then(parts ...[]said) (all []said) {
	sum := 0
	for _, part := range parts {
		base := sum
		for _, p := range part {
			sum = base + p.tokens
			all = append(all, said{p.text, sum})
		}
	}
	return all
}

// The media of streams in events, and in Amazon's binary messages.
const (
	eventStream = "text/event-stream"
	eventFrames = "application/vnd.amazon.eventstream"
)

// wrap puts each piece into another form.
func wrap(pieces []said, form func(text string) []byte) []said {
	wrapped := make([]said, len(pieces))
	for i, p := range pieces {
		wrapped[i] = said{string(form(p.text)), p.tokens}
	}
	return wrapped
}

// framed are replies in Amazon's binary messages, the last of which is not whole. As
// there, some have padding that is no output.
func framed() []speech {
	event := func(name string) func(string) []byte {
		return func(payload string) []byte { return cloud.Event(name, payload) }
	}
	half := func(text string) []byte { return cloud.Event("contentBlockDelta", text)[:60] }
	const padding = `"p":"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"`
	delta := event("contentBlockDelta")
	converse := then(wrap(silent(nil, `{"role":"assistant",`+padding+`}`), event("messageStart")),
		wrap(speak(`{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"%s"}},`+padding+`}`, 100, 41), delta),
		wrap(speak(`{"contentBlockIndex":1,"delta":{"text":"%s"},`+padding+`}`, 31, 100, 1, 200), delta),
		wrap(silent(nil, `{"contentBlockIndex":2,"start":{"toolUse":{"name":"go","toolUseId":"tooluse_1"}}}`), event("contentBlockStart")),
		wrap(speak(`{"contentBlockIndex":2,"delta":{"toolUse":{"input":"%s"}},`+padding+`}`, 60, 61), delta),
		wrap(silent(nil, `{"contentBlockIndex":2}`), half))
	invoke := wrap(then([]said{{`{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`, 1}},
		speak(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"%s"}}`, 100, 41),
		speak(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"%s"}}`, 100, 201),
		speak(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"%s"}}`, 100)), cloud.Chunk)
	other := wrap(speak(`{"generation":"%s","prompt_token_count":null,"generation_token_count":1,"stop_reason":null}`, 100, 31, 80), cloud.Chunk)
	const path = "/model/native-cut/"
	return []speech{
		{"Converse", "bedrock", path + "converse-stream", eventFrames, `"messages":[]`, converse},
		{"InvokeModel, Claude", "bedrock", path + "invoke-with-response-stream", eventFrames, `"max_tokens":4096`, then(invoke, wrap(silent(nil, "{}"), half))},
		{"InvokeModel, Llama", "bedrock", path + "invoke-with-response-stream", eventFrames, `"prompt":"x"`, other},
	}
}

// speeches are replies of every format whose output is tokens, on each kind of
// path. None of them states its usage before its last piece, but where the
// format does.
func speeches() []speech {
	chatEvent := func(delta string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}],"usage":null}` + "\n\n"
	}
	chatPieces := then(silent(nil, chatEvent(`{"role":"assistant","content":""}`)), speak(chatEvent(`{"content":"%s"}`), 31, 100, 1, 200, 400),
		speak(chatEvent(`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}`), 60, 61), silent(nil, "data: [DO"))
	chat := func(format, path string) speech {
		return speech{format + " chat", format, path, eventStream, `"stream":true,"stream_options":{"include_usage":true}`, chatPieces}
	}
	list := []speech{
		chat("openai", "/v1/chat/completions"), chat("deepseek", "/chat/completions"), chat("groq", "/openai/v1/chat/completions"),
		chat("together", "/v1/chat/completions"), chat("fireworks", "/inference/v1/chat/completions"), chat("openrouter", "/api/v1/chat/completions"),
		chat("moonshot", "/v1/chat/completions"), chat("zhipu", "/api/paas/v4/chat/completions"), chat("xai", "/v1/chat/completions"),
		chat("mistral", "/v1/chat/completions"), chat("azure-openai", "/openai/deployments/native-cut/chat/completions"), chat("gemini", "/v1beta/openai/chat/completions"),
		chat("dashscope", "/compatible-mode/v1/chat/completions"), chat("ark", "/api/v3/chat/completions"), chat("vllm", "/v1/chat/completions"),
		chat("cohere", "/compatibility/v1/chat/completions"), chat("minimax", "/v1/text/chatcompletion_v2"), chat("ollama", "/v1/chat/completions"),
		chat("anthropic", "/v1/chat/completions"), chat("generic", "/v1/chat/completions"),
	}
	crlf, lines := chat("openai", "/v1/chat/completions"), chat("openai", "/v1/chat/completions")
	crlf.name, lines.name = "CRLF", "several lines of data"
	crlf.pieces, lines.pieces = nil, nil
	for _, p := range chatPieces {
		crlf.pieces = append(crlf.pieces, said{strings.ReplaceAll(p.text, "\n", "\r\n"), p.tokens})
		lines.pieces = append(lines.pieces, said{strings.NewReplacer(`,"`, ",\ndata: \"", `":"`, "\"\ndata:  :\ndata:\"").Replace(p.text), p.tokens})
	}
	thinking := speech{"visible reasoning", "deepseek", "/chat/completions", eventStream, `"stream":true`,
		then(speak(chatEvent(`{"reasoning_content":"%s","content":null}`), 100, 101), speak(chatEvent(`{"content":"%s"}`), 50))}
	twice := speech{"reasoning by two names", "openrouter", "/api/v1/chat/completions", eventStream, `"stream":true`,
		speak(chatEvent(`{"reasoning":"%[1]s","reasoning_details":[{"type":"reasoning.text","text":"%[1]s"}]}`), 1)}
	twice.pieces = nil
	for i := 1; i < 4; i++ {
		text := strings.ReplaceAll(words(100), "\n", `\n`)
		twice.pieces = append(twice.pieces, said{chatEvent(`{"reasoning":"` + text + `","reasoning_details":[{"type":"reasoning.text","text":"` + text + `"}]}`), 100 * i})
	}
	mistral := speech{"content in parts", "mistral", "/v1/chat/completions", eventStream, `"stream":true`,
		then(speak(chatEvent(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"%s"}]}]}`), 100, 7), speak(chatEvent(`{"content":[{"type":"text","text":"%s"}]}`), 50))}
	choices := speech{"two choices", "openai", "/v1/chat/completions", eventStream, `"n":2,"stream":true`,
		then(speak(chatEvent(`{"content":"%s"}`), 100), speak(strings.Replace(chatEvent(`{"content":"%s"}`), `"index":0`, `"index":1`, 1), 100, 90))}
	completion := speech{"completions", "openai", "/v1/completions", eventStream, `"stream":true,"prompt":"x"`,
		speak(`data: {"choices":[{"text":"%s","index":0,"logprobs":null,"finish_reason":null}]}`+"\n\n", 20, 100, 33)}
	bare := speech{"a value", "openai", "/v1/chat/completions", "application/json", ``,
		then(silent(nil, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"`), speak(`%s`, 100, 51, 200),
			silent(nil, `"},"finish_reason":"stop"}],`))}
	calls := speech{"a value with a tool call", "anthropic", "/v1/messages", "application/json", `"max_tokens":4096`,
		then(silent(nil, `{"id":"x","type":"message","content":[{"type":"text","text":"`), speak(`%s`, 100), silent(nil, `"},{"type":"tool_use","id":"t","name":"go","input":{"a":["`),
			speak(`%s`, 120, 31), silent(nil, `"]}}],"stop_reason":"tool_use",`))}
	event := func(data string) string { return "event: x\ndata: " + data + "\n\n" }
	claude := speech{"messages", "anthropic", "/v1/messages", eventStream, `"stream":true,"max_tokens":4096`,
		then([]said{{event(`{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`), 1}},
			silent(nil, event(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`)),
			speak(event(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"%s"}}`), 100, 41),
			silent(nil, event(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"`+strings.Repeat("AbC3", 200)+`"}}`), ": ping, it's \"here\n\n"),
			speak(event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"%s"}}`), 100, 201),
			speak(event(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"%s"}}`), 100))}
	for _, at := range []struct{ format, path string }{
		{"deepseek", "/anthropic/v1/messages"}, {"moonshot", "/anthropic/v1/messages"}, {"zhipu", "/api/anthropic/v1/messages"},
		{"minimax", "/anthropic/v1/messages"}, {"openrouter", "/api/v1/messages"}, {"vllm", "/v1/messages"}, {"ollama", "/v1/messages"}, {"generic", "/v1/messages"},
	} {
		other := claude
		other.name, other.format, other.path = at.format+" messages", at.format, at.path
		list = append(list, other)
	}
	whole := strings.ReplaceAll(words(261), "\n", `\n`)
	responses := speech{"responses", "openai", "/v1/responses", eventStream, `"stream":true,"input":"x"`,
		then(silent(nil, event(`{"type":"response.created","response":{"id":"r","output":[],"tools":[],"usage":null}}`)),
			speak(event(`{"type":"response.output_text.delta","item_id":"i","delta":"%s","logprobs":[],"obfuscation":"aaaaaaaa"}`), 100, 61, 100),
			silent(nil, event(`{"type":"response.output_text.done","text":"`+whole+`"}`), event(`{"type":"response.content_part.done","part":{"type":"output_text","text":"`+whole+`"}}`),
				event(`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"`+whole+`"}]}}`)),
			speak(event(`{"type":"response.function_call_arguments.delta","delta":"%s"}`), 60))}
	for _, at := range []struct{ format, path string }{
		{"xai", "/v1/responses"}, {"groq", "/openai/v1/responses"}, {"fireworks", "/inference/v1/responses"}, {"openrouter", "/api/v1/responses"},
		{"ark", "/api/v3/responses"}, {"minimax", "/v1/responses"}, {"vllm", "/v1/responses"}, {"azure-openai", "/openai/v1/responses"}, {"generic", "/v1/responses"},
	} {
		other := responses
		other.name, other.format, other.path = at.format+" responses", at.format, at.path
		list = append(list, other)
	}
	gemini := speech{"gemini without totals", "gemini", "/v1beta/models/native-cut:streamGenerateContent", eventStream, `"contents":[]`,
		then(speak("data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"%s\"}]}}]}\r\n\r\n", 100, 31),
			speak("data: {\"candidates\": [{\"content\": {\"parts\": [{\"functionCall\": {\"name\": \"go\", \"args\": {\"q\":\"%s\"}}}]}}]}\r\n\r\n", 100, 80))}
	array := speech{"gemini as an array", "gemini", gemini.path, "application/json", `"contents":[]`,
		then(silent(nil, "["), speak("{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"%s\"}]}}]\n}\n,\n", 100, 31, 80))}
	totals := gemini
	totals.name, totals.pieces = "gemini with totals", nil
	for i := 1; i < 5; i++ { // short text, much of it thought in secret
		totals.pieces = append(totals.pieces, said{fmt.Sprintf("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"%s\"}]}}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":%d,\"thoughtsTokenCount\":%d}}\n\n",
			strings.ReplaceAll(words(10), "\n", `\n`), 10*i, 300*i), 310 * i})
	}
	cohere := speech{"cohere", "cohere", "/v2/chat", eventStream, `"stream":true`,
		then(silent(nil, event(`{"type":"message-start","delta":{"message":{"role":"assistant"}}}`)),
			speak(event(`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"%s"}}}`), 50),
			speak(event(`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"%s"}}}}`), 100, 61),
			silent(nil, event(`{"type":"citation-start","delta":{"message":{"citations":{"start":0,"end":9,"text":"`+whole+`","sources":[{"document":{"text":"`+whole+`"}}]}}}}`)),
			speak(event(`{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"%s"}}}}}`), 100))}
	older := speech{"cohere, version 1", "cohere", "/v1/chat", "application/stream+json", `"stream":true`,
		speak(`{"is_finished":false,"event_type":"text-generation","text":"%s"}`+"\n", 100, 31, 90)}
	ollama := speech{"ollama", "ollama", "/api/chat", "application/x-ndjson", ``,
		then(speak(`{"model":"m","message":{"role":"assistant","content":"","thinking":"%s"},"done":false}`+"\n", 50, 51),
			speak(`{"model":"m","message":{"role":"assistant","content":"%s"},"done":false}`+"\n", 100, 200),
			speak(`{"model":"m","message":{"content":"","tool_calls":[{"function":{"name":"go","arguments":{"q":"%s"}}}]},"done":false}`+"\n", 100))}
	generate := speech{"ollama generate", "ollama", "/api/generate", "application/x-ndjson", `"prompt":"x"`, speak(`{"model":"m","response":"%s","done":false}`+"\n", 100, 31)}
	native := speech{"dashscope", "dashscope", "/api/v1/services/aigc/text-generation/generation", eventStream, `"input":{}`, nil}
	for i := 1; i < 5; i++ { // every event says all again
		native.pieces = append(native.pieces, said{event(fmt.Sprintf(`{"output":{"text":"%s","finish_reason":"null"},"usage":{"input_tokens":5,"output_tokens":%d}}`,
			strings.ReplaceAll(words(50*i), "\n", `\n`), 50*i)), 50 * i})
	}
	return append(append(list, framed()...), crlf, lines, thinking, twice, mistral, choices, completion, bare, calls, claude, responses, gemini, array, totals, cohere, older, ollama, generate, native)
}

// cutter is a gateway whose providers stop where they are told to, and then
// hang up or wait.
type cutter struct {
	*lab
	list []speech
}

func newCutter(t *testing.T, onDisconnect string) *cutter {
	t.Helper()
	h := newHostile(t)
	c := &cutter{lab: &lab{provider: h}, list: speeches()}
	var providers, routes strings.Builder
	known := map[string]bool{}
	for _, s := range c.list {
		if known[s.format] {
			continue
		}
		known[s.format] = true
		fmt.Fprintf(&providers, "\n  - {name: %s, format: %s, base_url: \"%s/%s\", region: us, credential: sk-upstream, on_disconnect: %s}", s.format, s.format, h.URL, s.format, onDisconnect)
		fmt.Fprintf(&routes, "%s{provider: %s, model: native-cut}", map[bool]string{true: ", "}[routes.Len() > 0], s.format)
		h.corner(s.format).replies(c.answer)
	}
	c.Gateway = testkit.StartGateway(t, testkit.GatewayOptions{
		Upstream: h.URL, Providers: providers.String(), Limits: "concurrency: 10000, requests_per_second: 10000",
		Catalog: "\n  - {slug: lab/cut, kind: llm, routes: [" + routes.String() + "], price: {input: 1, output: 1000}}",
	})
	c.client = c.NewClient("cut")
	c.key, _ = c.NewKey(c.client)
	return c
}

// answer says as many pieces as the request asks for.
func (c *cutter) answer(w http.ResponseWriter, r *http.Request) {
	var asked struct{ User string }
	corner := c.provider.corner(strings.SplitN(r.URL.Path, "/", 3)[1])
	corner.mu.Lock()
	for i := range corner.got { // the request whose body this one's is
		if corner.got[i].Request == r {
			_ = json.Unmarshal([]byte(corner.got[i].body), &asked)
		}
	}
	corner.mu.Unlock()
	fields := strings.Split(asked.User, "/")
	if len(fields) != 3 {
		return
	}
	which, _ := strconv.Atoi(fields[0])
	pieces, _ := strconv.Atoi(fields[1])
	w.Header().Set("Content-Type", c.list[which].media)
	for _, p := range c.list[which].pieces[:pieces] {
		_, _ = io.WriteString(w, p.text)
		w.(http.Flusher).Flush()
	}
	if fields[2] == "hang" {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

// cutCall is one call that is cut after some pieces.
type cutCall struct {
	speech speech
	pieces int
	sent   int // bytes of the request
	id     string
	body   io.ReadCloser
	stop   context.CancelFunc
}

// begin makes a call for each cut of each reply, and returns once all that is
// to come of them has come.
func (c *cutter) begin(t *testing.T, then string) (calls []*cutCall) {
	t.Helper()
	var wg sync.WaitGroup
	busy := make(chan struct{}, 64)
	for which, s := range c.list {
		if then == "hang" && s.media == "application/json" {
			continue // what comes first of a value waits for more
		}
		for n := 1; n <= len(s.pieces); n++ {
			x := &cutCall{speech: s, pieces: n}
			calls = append(calls, x)
			wg.Go(func() {
				busy <- struct{}{}
				defer func() { <-busy }()
				body := fmt.Sprintf(`{"model":"native-cut","user":"%d/%d/%s"`, which, n, then)
				if s.body != "" {
					body += "," + s.body
				}
				body += "}"
				x.sent = len(body)
				ctx, cancel := context.WithCancel(t.Context())
				x.stop = cancel
				req, err := http.NewRequestWithContext(ctx, "POST", c.URL+"/"+s.format+s.path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+c.key)
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Transport.RoundTrip(req)
				if err != nil {
					t.Errorf("%s, %d: %v", s.name, n, err)
					return
				}
				x.id, x.body = resp.Header.Get("X-Gateway-Request-Id"), resp.Body
				want := s.passed(n)
				got, err := io.CopyN(io.Discard, bufio.NewReaderSize(resp.Body, 16), int64(want))
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("%s, %d: status %d, %d of %d bytes, %v", s.name, n, resp.StatusCode, got, want, err)
				}
			})
		}
	}
	wg.Wait()
	if t.Failed() { // calls that were refused have no rows
		t.FailNow()
	}
	return calls
}

func (c *cutter) check(t *testing.T, calls []*cutCall, status int) {
	t.Helper()
	for _, x := range calls {
		x.stop()
		if x.body == nil {
			continue
		}
		x.body.Close()
		r := c.row(t, c.key, x.id)
		cost, _ := r.Cost.Float64()
		delivered := float64(x.speech.pieces[x.pieces-1].tokens)
		const input, output = 1e-6, 1e-3
		least, most := delivered*output*2/3, delivered*output*1.5+float64(x.sent+200)*input
		if cost < least || cost > most+8*output { // a token or two of frame within arguments
			t.Errorf("%s after %d of %d pieces: cost %v, want %v to %v for %v tokens", x.speech.name, x.pieces, len(x.speech.pieces), cost, least, most, delivered)
		}
		if cost < float64(x.sent)/4*input*2/3 && x.speech.name != "gemini with totals" && delivered == 0 {
			t.Errorf("%s after %d pieces: cost %v, want that of %d bytes of input", x.speech.name, x.pieces, cost, x.sent)
		}
		if r.ParseStatus != "partial" || r.Status != status {
			t.Errorf("%s after %d of %d pieces: row %+v, want %d and partial", x.speech.name, x.pieces, len(x.speech.pieces), r, status)
		}
	}
}

// TestCutRepliesCostWhatWasDelivered cuts every reply after every piece: the
// row costs at least two thirds of what was delivered, and one and a half
// times that at most.
func TestCutRepliesCostWhatWasDelivered(t *testing.T) {
	t.Parallel()
	c := newCutter(t, "cancel")
	t.Run("upstream", func(t *testing.T) {
		c := &cutter{lab: &lab{Gateway: c.For(t), provider: c.provider, key: c.key}, list: c.list}
		c.check(t, c.begin(t, "abort"), 200)
	})
	t.Run("client", func(t *testing.T) {
		c := &cutter{lab: &lab{Gateway: c.For(t), provider: c.provider, key: c.key}, list: c.list}
		calls := c.begin(t, "hang")
		for _, x := range calls {
			x.stop()
		}
		c.check(t, calls, 200)
	})
	t.Run("kill", func(t *testing.T) {
		c := &cutter{lab: &lab{Gateway: c.For(t), provider: c.provider, key: c.key}, list: c.list}
		calls := c.begin(t, "hang")
		c.Kill()
		c.Start()
		c.check(t, calls, 502)
	})
}
