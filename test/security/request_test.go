package security

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/provider"
	"modelgate/test/testkit/cloud"
)

// meteredRoutes are the paths of a format whose calls are charged for text or
// sound, with {model} filled in.
func meteredRoutes(f *provider.Format) (paths []string) {
	for _, d := range f.Doors {
		if d.Free || d.Job != nil || slices.Contains([]string{"/v1/images/generations", "/v1/images/edits"}, d.Path) {
			continue
		}
		path, _, _ := strings.Cut(d.Upstream, "?")
		paths = append(paths, path)
	}
	for _, r := range f.Allow {
		path, post := strings.CutPrefix(r.Pattern, "POST ")
		if post && !r.Free && r.Async == "" && !strings.Contains(path, "image") && !strings.HasSuffix(path, ":predict") {
			paths = append(paths, path)
		}
	}
	for i := range paths {
		paths[i] = strings.NewReplacer("{model}", "m-1", "{publisher}", "anthropic").Replace(paths[i])
	}
	return paths
}

// delivered is what every call of biller is billed for: 1,000 tokens in and
// 100,000 out, at the prices of the lab.
const delivered = 1_000*1_000 + 100_000*10_000 // nano-USD

// biller is a provider that bills each call the same, and states it unless a
// parameter or a member has it do otherwise.
func biller(w http.ResponseWriter, r *http.Request, body string) {
	w.Header().Set("Content-Type", "application/json")
	silent := false
	for name, values := range r.URL.Query() {
		switch strings.TrimPrefix(name, "$") {
		case "beta", "api-version", "key":
		case "alt":
			silent = silent || values[0] != "sse" && values[0] != "json"
		default:
			silent = true // a mask, a callback, another form, and whatever a provider may think of
		}
	}
	silent = silent || strings.HasSuffix(r.URL.Path, "/responses") && strings.Contains(body, `"background":`)
	silent = silent || r.URL.Path == "/q-xai/v1/chat/completions" && strings.Contains(body, `"deferred":`)
	silent = silent || r.Header.Get("X-Dashscope-Async") != ""
	const in, out = `1000`, `100000`
	usage := `"usage":{"prompt_tokens":` + in + `,"completion_tokens":` + out + `,"total_tokens":101000}`
	switch path := r.URL.Path; {
	case silent:
		fmt.Fprint(w, `{"id":"x","status":"queued"}`)
		return
	case strings.HasSuffix(path, "/messages"):
		usage = `"usage":{"input_tokens":` + in + `,"output_tokens":` + out + `}`
	case strings.Contains(path, "/responses"):
		usage = `"usage":{"input_tokens":` + in + `,"output_tokens":` + out + `,"total_tokens":101000}`
	case strings.HasSuffix(path, "/converse"), strings.HasSuffix(path, "/converse-stream"):
		usage = `"usage":{"inputTokens":` + in + `,"outputTokens":` + out + `,"totalTokens":101000}`
	case strings.HasSuffix(path, "awPredict"):
		usage = `"usage":{"input_tokens":` + in + `,"output_tokens":` + out + `}`
	case strings.Contains(path, "/models/m-1:"):
		usage = `"usageMetadata":{"promptTokenCount":` + in + `,"candidatesTokenCount":` + out + `,"totalTokenCount":101000}`
	case strings.HasPrefix(path, "/q-ollama/api/"):
		usage = `"done":true,"prompt_eval_count":` + in + `,"eval_count":` + out
	case strings.HasPrefix(path, "/q-cohere/v"):
		usage = `"meta":{"billed_units":{"input_tokens":` + in + `,"output_tokens":` + out + `}}`
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/converse-stream"):
		w.Header().Set("Content-Type", eventFrames)
		_, _ = w.Write(cloud.Event("metadata", "{"+usage+"}"))
		return
	case strings.HasSuffix(r.URL.Path, "/invoke-with-response-stream"):
		w.Header().Set("Content-Type", eventFrames)
		_, _ = w.Write(cloud.Chunk("{" + usage + "}"))
		return
	}
	if strings.Contains(body, `"stream":true`) && !strings.HasPrefix(r.URL.Path, "/q-ollama/api/") {
		if strings.HasSuffix(r.URL.Path, "completions") && !strings.Contains(body, `"include_usage":true`) {
			usage = `"x":1`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"x\",%s}\n\ndata: [DONE]\n\n", usage)
		return
	}
	fmt.Fprintf(w, `{"id":"x",%s}`, usage)
}

// bills lets a format's provider bill, and say what came to it.
func (l *lab) bills(format string) *corner {
	c := l.provider.corner("q-" + format)
	c.replies(func(w http.ResponseWriter, r *http.Request) {
		got := c.last()
		biller(w, r, got.body)
	})
	return c
}

// TestNoParameterLowersTheCost puts every parameter that the formats know,
// and some that they do not, on every path that is charged for text. What is
// forwarded costs what the provider bills.
func TestNoParameterLowersTheCost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	queries := []string{
		"fields=candidates", "$fields=candidates", "%24fields=candidates", "f%69elds=id", "fields=*&fields=id", "Fields=id", "fields", "fields[]=id", "alt=media", "alt=proto", "alt=sse&alt=media", "$alt=proto",
		"alt=sse;fields=id", "callback=f", "%63allback=f", "prettyPrint=false", "prettyPrint=true&fields=id", "quotaUser=x", "uploadType=media", "$.xgafv=2", "include=usage", "exclude=usage", "usage=false", "stream=false",
		"background=true", "deferred=true", "async=true", "dry_run=true", "webhook=https://x", "%fields=id", "fi%zzelds=id", "model=cheap", "version=2", "service_tier=flex", "max_tokens=1", "include_usage=false", "a=1&fields=id",
	}
	members := []string{
		`"background":true`, `"background":"true"`, `"background":1`, `"deferred":true`, `"stream":true,"stream_options":{"include_usage":false}`, `"stream_options":{"include_usage":false},"stream":true`,
		`"usage":{"include":false}`, `"include":[]`, `"n":2`, `"store":false`, `"service_tier":"flex"`, `"max_tokens":1`, `"fields":"id"`,
	}
	var bills []bill
	defer func() { l.settle(t, bills) }()
	for _, f := range provider.Formats() {
		if f.Name == "generic" || f.Name == "fal" || f.Name == "replicate" {
			continue
		}
		c := l.bills(f.Name)
		for _, path := range meteredRoutes(&f) {
			if strings.Contains(path, "/audio/") || strings.Contains(path, "t2a") {
				continue // charged by the length of text and sound: see TestSilentTranscripts
			}
			target, model := "/q-"+f.Name+path, `"m-1"`
			if f.Name == "vertex" && strings.HasSuffix(path, "completions") {
				model = `"google/m-1"` // of any other form it is refused
			}
			for _, query := range queries {
				l.pays(t, c, &bills, target+"?"+query, `{"model":`+model+`}`)
			}
			for _, member := range members {
				if strings.Contains(member, "include_usage") && !f.IncludeUsage {
					continue // these state it in every stream
				}
				if strings.Contains(path, "/models/m-1:") || strings.Contains(path, "/deployments/") {
					l.pays(t, c, &bills, target, `{`+member+`}`)
					continue
				}
				l.pays(t, c, &bills, target, `{"model":`+model+`,`+member+`}`)
			}
			if a := l.call(t, l.key, "POST", target, `{"model":`+model+`}`); a.StatusCode != 200 {
				t.Errorf("the honest call of %s: %s", target, a)
			}
		}
		if f.Name == "dashscope" {
			l.pays(t, c, &bills, "/q-dashscope/api/v1/services/aigc/text-generation/generation", `{"model":"m-1"}`, "X-DashScope-Async", "enable")
		}
	}
}

// bill is a call that was forwarded.
type bill struct{ id, call string }

// pays makes a call that is refused by name, or adds it to the bills.
func (l *lab) pays(t *testing.T, c *corner, bills *[]bill, target, body string, headers ...string) {
	t.Helper()
	c.take()
	a := l.call(t, l.key, "POST", target, body, headers...)
	switch sent := len(c.take()) > 0; {
	case sent:
		*bills = append(*bills, bill{a.Header.Get("X-Gateway-Request-Id"), "POST " + target + " " + body})
	case a.StatusCode != 400:
		t.Errorf("POST %s %s: %s, want 400", target, body, a)
	}
}

// settle compares bills with what is booked.
func (l *lab) settle(t *testing.T, bills []bill) {
	t.Helper()
	for _, b := range bills {
		cost, err := modelgate.ParseUSD(l.row(t, l.key, b.id).Cost.String())
		if err != nil || cost < delivered*2/3 {
			t.Errorf("%s is booked at %v, %v; the provider bills %v", b.call, cost, err, modelgate.Nano(delivered))
		}
	}
}

// TestHonestParameters sends what official SDKs send.
func TestHonestParameters(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, c := range []struct{ method, target, body string }{
		{"POST", "/r-anthropic/v1/messages?beta=true", `{"model":"m"}`},
		{"POST", "/r-anthropic/v1/messages/count_tokens?beta=true", `{"model":"m"}`},
		{"GET", "/r-anthropic/v1/models?limit=20&after_id=x", ""},
		{"POST", "/r-azure-openai/openai/deployments/d/chat/completions?api-version=2024-10-21", `{"model":"d"}`},
		{"POST", "/r-azure-openai/openai/v1/responses?api-version=preview", `{"model":"d"}`},
		{"POST", "/r-gemini/v1beta/models/m:streamGenerateContent?alt=sse", `{}`},
		{"POST", "/r-gemini/v1beta/models/m:streamGenerateContent?%61lt=sse", `{}`},
		{"POST", "/r-gemini/v1beta/models/m:generateContent?key=anything", `{}`},
		{"GET", "/r-gemini/v1beta/models?pageSize=50&pageToken=100%25", ""},
		{"GET", "/r-cohere/v1/models?page_size=2&endpoint=chat", ""},
		{"POST", "/r-generic/v1/x?fields=id&anything", `{"model":"m"}`},
		{"POST", "/q-openai/v1/chat/completions?", `{"model":"m"}`},
	} {
		if a := l.call(t, l.key, c.method, c.target, c.body); a.StatusCode != 200 {
			t.Errorf("%s %s: %s", c.method, c.target, a)
		}
	}
	if a := l.call(t, l.key, "POST", "/v1/chat/completions?fields=id", chat("lab/plain")); a.StatusCode != 400 || !strings.Contains(a.body, `\"fields\"`) {
		t.Errorf("a parameter on a door: %s", a)
	}
}

// TestNamelessCalls makes calls that name no model, or in a way that only
// the provider can read.
func TestNamelessCalls(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	utf16 := func(order binary.ByteOrder, text string) string {
		var b bytes.Buffer
		for _, c := range text {
			_ = binary.Write(&b, order, uint16(c))
		}
		return b.String()
	}
	bodies := []struct{ kind, body string }{
		{"application/json", `{"messages":[]}`}, {"application/json", ""}, {"", ""}, {"text/plain", "hello"},
		{"application/json", utf16(binary.LittleEndian, `{"model":"m"}`)}, {"application/json; charset=utf-16", utf16(binary.BigEndian, `{"model":"m"}`)},
		{"text/plain; charset=utf-16", utf16(binary.BigEndian, `{"model":"m"}`)}, {"text/plain", " " + utf16(binary.BigEndian, `{"model":"m"}`)},
		{"application/x+json", `[{"model":"m"}]`}, {"application/x+json", `{"messages":[]}`}, {"application/x-www-form-urlencoded", "model=m&input=x"},
		{"application/x-www-form-urlencoded", "m%6fdel=m"}, {"multipart/form-data; boundary=x; boundary=y", "--x--\r\n"}, {"application/x-protobuf", "\x0a\x01m"},
	}
	for _, f := range provider.Formats() {
		if f.Name == "generic" || f.Name == "fal" || f.Name == "replicate" {
			continue // generic: below; the others name models in the path or make jobs
		}
		c := l.provider.corner("n-" + f.Name)
		for _, path := range meteredRoutes(&f) {
			inPath := strings.Contains(path, "m-1")
			for _, b := range bodies {
				if inPath && (b.body == "" || strings.HasPrefix(b.body, `{"messages"`)) {
					continue
				}
				c.take()
				a := l.call(t, l.key, "POST", "/n-"+f.Name+path, b.body, "Content-Type", b.kind)
				if sent := c.take(); len(sent) > 0 || a.StatusCode != 403 && a.StatusCode != 400 {
					t.Errorf("POST %s %q as %q: %s; %d calls were sent", path, b.body, b.kind, a, len(sent))
				}
			}
		}
	}
	for _, b := range bodies[4:] {
		if b.body == `{"messages":[]}` || strings.HasPrefix(b.body, "\x0a") {
			continue // nothing in it names a model to anybody
		}
		if a := l.call(t, l.key, "POST", "/r-generic/v1/x", b.body, "Content-Type", b.kind); a.StatusCode != 400 {
			t.Errorf("generic, %q as %q: %s", b.body, b.kind, a)
		}
	}
	for target, body := range map[string]string{
		"/r-openai/v1/moderations": `{"input":"x"}`, "/r-generic/v1/embed": `{"inputs":"x"}`, "/r-generic/v1/upload": "RIFF....",
		"/r-openai/v1/chat/completions": `{"model":"m","messages":[]}`, "/r-gemini/v1/models/m:generateContent": `{"contents":[]}`,
	} {
		if a := l.call(t, l.key, "POST", target, body, "Content-Type", "application/octet-stream"); a.StatusCode != 200 {
			t.Errorf("the honest call of %s: %s", target, a)
		}
	}
}

// TestOneModelInPathAndBody names another model in the body than in the
// path.
func TestOneModelInPathAndBody(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, c := range []struct {
		target, body string
		status       int
	}{
		{"gemini/v1beta/models/ok-m:generateContent", `{"model":"dear"}`, 400},
		{"gemini/v1beta/models/ok-m:generateContent", `{"model":"models/dear"}`, 400},
		{"gemini/v1beta/models/ok-m:generateContent", `{"model":"models/models/ok-m"}`, 400},
		{"gemini/v1beta/models/ok-m:streamGenerateContent", `{"model":7}`, 400},
		{"gemini/v1beta/models/ok-m:batchEmbedContents", `{"requests":[{"model":"models/ok-m"},{"model":"models/dear"}]}`, 400},
		{"gemini/v1beta/models/ok-m:countTokens", `{"generateContentRequest":{"model":"models/dear"}}`, 400},
		{"gemini/v1beta/models/ok-m:predict", `{"model":"dear"}`, 400},
		{"gemini/v1beta/models/ok-m:generateContent", `{"model":"ok-m"}`, 200},
		{"gemini/v1beta/models/ok-m:generateContent", `{"model":"models/ok-m"}`, 200},
		{"gemini/v1beta/models/ok-m:generateContent", `{}`, 200},
		{"gemini/v1/models/ok-m:batchEmbedContents", `{"requests":[{"model":"models/ok-m"},{"model":"ok-m"},{}]}`, 200},
		{"gemini/v1/models/ok-m:countTokens", `{"generateContentRequest":{"model":"models/ok-m"}}`, 200},
		{"azure-openai/openai/deployments/ok-m/chat/completions", `{"model":"dear"}`, 403},
		{"azure-openai/openai/deployments/dear/chat/completions", `{"model":"ok-m"}`, 403},
		{"azure-openai/openai/deployments/ok-m/chat/completions", `{"model":"ok-n"}`, 200},
		{"azure-openai/openai/deployments/ok-m/chat/completions", `{}`, 200},
	} {
		if a := l.call(t, l.limited, "POST", "/r-"+c.target, c.body); a.StatusCode != c.status {
			t.Errorf("%s %s: %s, want %d", c.target, c.body, a, c.status)
		}
	}
}

// TestNestedStoredObjects refers to objects kept at the provider wherever
// formats have a place for that.
func TestNestedStoredObjects(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, c := range []struct{ target, body string }{
		{"openai/v1/responses", `"input":[{"type":"item_reference","id":"msg_1"}]`},
		{"openai/v1/responses", `"input":[{"id":"msg_1"}]`},
		{"openai/v1/responses", `"input":[{"id":"msg_1","type":null}]`},
		{"openai/v1/responses", `"input":[{"typ\u0065":"item\u005freference","\u0069d":"msg_1"}]`},
		{"openai/v1/responses", `"input":[{"type":"image_generation_call","id":"ig_1"}]`},
		{"openai/v1/responses", `"type":"tool_use","input":[{"type":"item_reference","id":"msg_1"}]`},
		{"openai/v1/responses", `"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]`},
		{"openai/v1/responses", `"input":[{"role":"user","content":[{"type":"input_image","f\u0069le_id":"file-1"}]}]`},
		{"openai/v1/responses", `"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_file","file_id":"file-1"}]}]`},
		{"openai/v1/responses", `"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`},
		{"openai/v1/responses", `"tools":[{"type":"code_interpreter","container":"cntr_1"}]`},
		{"openai/v1/responses", `"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["file-1"]}}]`},
		{"openai/v1/responses", `"tools":[{"type":"image_generation","input_image_mask":{"file_id":"file-1"}}]`},
		{"openai/v1/responses", `"tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"c"}}]`},
		{"openai/v1/chat/completions", `"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]`},
		{"openai/v1/chat/completions", `"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]`},
		{"anthropic/v1/messages", `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]`},
		{"anthropic/v1/messages", `"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"file","file_id":"file_1"}}]}]}]`},
		{"anthropic/v1/messages", `"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"file_1"}]}]`},
		{"gemini/v1beta/models/m:generateContent", `"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc"}}]}]`},
		{"gemini/v1beta/models/m:generateContent", `"contents":[{"parts":[{"file_data":{"file_uri":"files/abc"}}]}]`},
		{"gemini/v1beta/models/m:generateContent", `"contents":[{"parts":[{"fileData":{"fileUri":"gs://bucket/object"}}]}]`},
		{"gemini/v1beta/models/m:generateContent", `"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/a"]}}]`},
		{"mistral/v1/chat/completions", `"messages":[{"role":"user","content":[{"type":"file","file_id":"f"}]}]`},
		{"dashscope/compatible-mode/v1/chat/completions", `"messages":[{"role":"system","content":"fileid://file-1"}]`},
		{"moonshot/v1/chat/completions", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"ms://file-1"}}]}]`},
		{"openai/v1/images/edits", `"images":[{"file_id":"file-1"}]`},
		{"zhipu/api/paas/v4/chat/completions", `"tools":[{"type":"retrieval","retrieval":{"knowledge_id":"k"}}]`},
	} {
		body := `{"model":"m",` + c.body + `}`
		if strings.HasPrefix(c.target, "gemini") {
			body = `{` + c.body + `}`
		}
		a := l.call(t, l.key, "POST", "/r-"+c.target, body)
		if a.StatusCode != 403 || !strings.Contains(a.body, "allow_stored_objects") || strings.Contains(c.body, "item_reference") && !strings.Contains(a.body, `\"store\": false`) {
			t.Errorf("%s %s: %s", c.target, body, a)
		}
	}
	for _, c := range []struct{ target, body string }{
		{"openai/v1/responses", `"store":false,"input":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"item_reference file_id"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"file_id\":1}"},{"role":"user","content":"x"}]`},
		{"openai/v1/responses", `"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto"}},{"type":"function","name":"f","parameters":{"type":"object","properties":{"file_id":{"type":"string"},"container":{"type":"string"}}}}]`},
		{"openai/v1/responses", `"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":[]}}],"metadata":{"file_id":"mine"}`},
		{"openai/v1/chat/completions", `"audio":{"voice":"alloy","format":"wav"},"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:;base64,","filename":"a"}}]},{"role":"tool","tool_call_id":"x","content":"{\"file_id\":\"mine\"}"}]`},
		{"anthropic/v1/messages", `"messages":[{"role":"assistant","content":[{"input":{"file_id":"mine","container":"x"},"type":"tool_use","id":"t","name":"f"}]}],"tools":[{"name":"f","input_schema":{"properties":{"file_id":{}}}}]`},
		{"gemini/v1beta/models/m:generateContent", `"contents":[{"parts":[{"fileData":{"fileUri":"https://www.youtube.com/watch?v=1"}},{"functionCall":{"name":"f","args":{"file_id":"mine"}}},{"functionResponse":{"name":"f","response":{"container":"x"}}}]}]`},
		{"moonshot/v1/chat/completions", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}]}]`},
	} {
		body := `{"model":"m",` + c.body + `}`
		if strings.HasPrefix(c.target, "gemini") {
			body = `{` + c.body + `}`
		}
		if a := l.call(t, l.key, "POST", "/r-"+c.target, body); a.StatusCode != 200 {
			t.Errorf("the honest call %s %s: %s", c.target, body, a)
		}
	}
}

// TestCrowdedPartHeads sends forms whose parts have more header lines than
// any client's.
func TestCrowdedPartHeads(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	form := func(lines int) string {
		var b strings.Builder
		b.WriteString("--x\r\nContent-Disposition: form-data; name=\"model\"\r\n")
		for i := range lines - 1 {
			fmt.Fprintf(&b, "X-%d: y\r\n", i)
		}
		return b.String() + "\r\nm\r\n--x--\r\n"
	}
	for lines, status := range map[int]int{1: 200, 16: 200, 17: 400, 500: 400} {
		a := l.call(t, l.key, "POST", "/r-openai/v1/audio/translations", form(lines), "Content-Type", "multipart/form-data; boundary=x")
		if a.StatusCode != status {
			t.Errorf("a part with %d header lines: %s, want %d", lines, a, status)
		}
	}
}

// TestSilentTranscripts asks for transcripts in forms that state no usage,
// of recordings whose heads say that they are short.
func TestSilentTranscripts(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const seconds = 600
	l.provider.corner("r-groq").replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, "1\n00:00:00,000 --> 00:00:04,000\nHello\n")
	})
	wave := func(size uint32) string {
		var b bytes.Buffer
		for _, v := range []any{[]byte("RIFF"), size + 36, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000), uint16(1), uint16(8), []byte("data"), size} {
			_ = binary.Write(&b, binary.LittleEndian, v)
		}
		return b.String() + strings.Repeat("\x80", 8000*seconds)
	}
	// 32 kbit/s at 32 kHz: a frame has 144 bytes and 36 ms, the first says that it is all.
	frame := "\xff\xfb\x18\x00" + strings.Repeat("\x00", 140)
	mp3 := frame[:36] + "Xing\x00\x00\x00\x01\x00\x00\x00\x01" + frame[48:] + strings.Repeat(frame, seconds*1000/36)
	for _, c := range []struct {
		format, file string
		status       int
	}{
		{"srt", wave(8000 * seconds), 200}, {"vtt", wave(8), 200}, {"text", wave(0), 200}, {"text", mp3, 200}, {"json", mp3, 200}, {"", mp3, 200},
		{"", "OggS", 400}, {"json", "OggS", 400}, {"text", "https://example.com/a.wav", 400},
		{"srt", "\x00\x00\x00\x18ftypM4A ", 400}, {"text", "OggS", 400}, {"TEXT", "", 400}, {"srt", wave(8)[:30], 400}, {"srt", strings.Repeat("\x00", 200_000) + frame, 400},
	} {
		for _, path := range []string{"transcriptions", "translations"} {
			body := "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--x\r\nContent-Disposition: form-data; name=\"seconds\"\r\n\r\n0.001\r\n"
			if c.format != "" {
				body += "--x\r\nContent-Disposition: form-data; name=\"response_format\"\r\n\r\n" + c.format + "\r\n"
			}
			body += "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" + c.file + "\r\n--x--\r\n"
			a := l.call(t, l.key, "POST", "/r-groq/openai/v1/audio/"+path, body, "Content-Type", "multipart/form-data; boundary=x")
			if a.StatusCode != c.status {
				t.Errorf("%s as %q of %.20q: %s, want %d", path, c.format, c.file, a, c.status)
			}
			if a.StatusCode != 200 {
				continue
			}
			cost, err := modelgate.ParseUSD(l.row(t, l.key, a.Header.Get("X-Gateway-Request-Id")).Cost.String())
			if want := modelgate.Nano(seconds * 100_000); err != nil || cost < want-want/100 || cost > want+want/100 {
				t.Errorf("%s as %q of %.20q is booked at %v, %v, want %v", path, c.format, c.file, cost, err, want)
			}
		}
	}
	l.provider.corner("r-openai").replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"text":"x","usage":{"type":"duration","seconds":7}}`)
	})
	body := "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nOggS\r\n--x--\r\n"
	if a := l.call(t, l.key, "POST", "/r-openai/v1/audio/transcriptions", body, "Content-Type", "multipart/form-data; boundary=x"); a.StatusCode != 200 {
		t.Errorf("a transcript that states its usage: %s", a)
	}
}
