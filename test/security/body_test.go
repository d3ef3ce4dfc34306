package security

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// bound is the largest body that passes.
const bound = 10 << 20

// padded is a chat with a model, of an exact size.
func padded(model string, size int) string {
	head, tail := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"`, model), `"}]}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// TestBodyBound sends a body at the bound and one past it, declared, in
// large and in one-byte chunks, and lies about its length. It reads answers
// by itself: a client library may see its own broken write instead of a refusal
// that came before it.
func TestBodyBound(t *testing.T) {
	t.Parallel()
	l := newLabAlone(t, "s17")
	for _, path := range []string{"/v1/chat/completions", "/s17/v1/chat/completions"} {
		for _, size := range []int{bound, bound + 1} {
			want := map[bool]int{true: 200, false: 413}[size == bound]
			text := padded("lab/s17", size)
			if a := l.raw(t, l.request("POST", path, text)); a == nil || a.StatusCode != want {
				t.Errorf("%s with %d bytes: %v", path, size, a)
			}
			for _, single := range []int{0, 50_000} {
				if a := l.chunked(t, path, text, single); a == nil || a.StatusCode != want {
					t.Errorf("%s with %d bytes in chunks, the last %d of one byte: %v", path, size, single, a)
				}
			}
		}
		// Refused by its word alone: the body is never sent.
		if a := l.raw(t, l.request("POST", path, "", fmt.Sprintf("X: y\r\nContent-Length: %d", bound+1))); a == nil || a.StatusCode != 400 && a.StatusCode != 413 {
			t.Errorf("%s: two lengths: %v", path, a)
		}
		head := strings.Replace(l.request("POST", path, ""), "Content-Length: 0", fmt.Sprintf("Content-Length: %d", bound+1), 1)
		if a := l.raw(t, head); a == nil || a.StatusCode != 413 {
			t.Errorf("%s: a declared length alone: %v", path, a)
		}
		short := strings.Replace(l.request("POST", path, chat("lab/s17")), "Content-Length: ", "Content-Length: 9", 1)
		if a := l.raw(t, short); a == nil || a.StatusCode != 400 {
			t.Errorf("%s: less body than declared: %v", path, a)
		}
	}
	for _, s := range l.provider.corner("s17").take() {
		if len(s.body) > bound+len("native-s17")-len("lab/s17") {
			t.Errorf("%d bytes reached the provider", len(s.body))
		}
	}
	before := memory(t, l.Pid())
	var work sync.WaitGroup
	for range 100 {
		work.Go(func() {
			head := strings.Replace(l.request("POST", "/v1/chat/completions", ""), "Content-Length: 0", fmt.Sprintf("Content-Length: %d", bound+1), 1)
			l.raw(t, head+strings.Repeat("x", 1<<20))
		})
	}
	work.Wait()
	if grown := memory(t, l.Pid()) - before; grown > 64<<20 {
		t.Errorf("100 bodies that are too large took %d MiB", grown>>20)
	}
}

// chunked sends a body in large chunks, but so many of its last bytes in chunks
// of one.
func (l *lab) chunked(t testing.TB, path, body string, single int) *answer {
	t.Helper()
	b := []byte(strings.Replace(l.request("POST", path, ""), "Content-Length: 0", "Transfer-Encoding: chunked", 1))
	b = slices.Grow(b, len(body)+single*6+4096)
	for len(body) > 0 {
		n := min(100_000, len(body)-single)
		if n <= 0 {
			n = 1
		}
		b = append(strconv.AppendInt(b, int64(n), 16), "\r\n"...)
		b = append(append(b, body[:n]...), "\r\n"...)
		body = body[n:]
	}
	return l.raw(t, string(append(b, "0\r\n\r\n"...)))
}

// TestCompressedBodies are refused unread on every surface.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	l := newLabAlone(t, "s18")
	bomb := zipped(1<<20, 64)
	before := memory(t, l.Pid())
	for _, coding := range []string{"gzip", "GZIP", "x-gzip", "br", "zstd", "deflate", "compress", "identity, gzip", "gzip, identity", "unknown", " gzip ", "aws-chunked"} {
		for _, path := range []string{"/v1/chat/completions", "/s18/v1/chat/completions", "/gw/keys"} {
			a := l.call(t, l.key, "POST", path, bomb.String(), "Content-Encoding", coding)
			if a.StatusCode != 400 || !strings.Contains(a.body, "Content-Encoding") {
				t.Errorf("%s with %s: %s", path, coding, a)
			}
		}
	}
	if a := l.call(t, l.key, "POST", "/s18/v1/chat/completions", chat("m"), "Content-Encoding", "identity"); a.StatusCode != 200 {
		t.Errorf("identity: %s", a)
	}
	if a := l.raw(t, l.request("POST", "/s18/v1/chat/completions", chat("m"), "Content-Encoding: identity", "Content-Encoding: gzip")); a == nil || a.StatusCode != 400 {
		t.Errorf("two encodings: %v", a)
	}
	if grown := memory(t, l.Pid()) - before; grown > 64<<20 {
		t.Errorf("compressed bodies took %d MiB", grown>>20)
	}
	if got := l.provider.corner("s18").take(); len(got) != 1 {
		t.Errorf("%d calls reached the provider, want the one that is not compressed", len(got))
	}
}

// TestAmbiguousJSON sends bodies in which two parsers could find different
// models. None reaches the provider, and what does has one reading.
func TestAmbiguousJSON(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const rest = `"messages":[]`
	for name, body := range map[string]string{
		"twice":             `{"model":"$","model":"dear",` + rest + `}`,
		"twice far apart":   `{"model":"$",` + rest + `,"x":{"y":[1,2,3]},"model":"dear"}`,
		"escaped twice":     `{"model":"$","mod\u0065l":"dear",` + rest + `}`,
		"upper case":        `{"model":"$","Model":"dear",` + rest + `}`,
		"all upper":         `{"MODEL":"$",` + rest + `}`,
		"escaped case":      `{"model":"$","\u004dodel":"dear",` + rest + `}`,
		"long s":            "{\"model\":\"$\",\"\u017ftream\":true," + rest + "}",
		"kelvin":            "{\"model\":\"$\",\"\u212a\":1,\"\u017Ftream_options\":{}," + rest + "}",
		"stream twice":      `{"model":"$","stream":false,"stream":true,` + rest + `}`,
		"other twice":       `{"model":"$","x":1,"x":2,` + rest + `}`,
		"byte order mark":   "\xef\xbb\xbf{\"model\":\"$\"," + rest + "}",
		"two objects":       `{"model":"$",` + rest + `}{"model":"dear"}`,
		"trailing bracket":  `{"model":"$",` + rest + `}}`,
		"trailing NUL":      `{"model":"$",` + rest + "}\x00",
		"comment":           `{"model":"$",/*"model":"dear",*/` + rest + `}`,
		"line comment":      "{\"model\":\"$\",//\n" + rest + "}",
		"single quotes":     `{'model':'$',` + rest + `}`,
		"bare names":        `{model:"$",` + rest + `}`,
		"trailing comma":    `{"model":"$",` + rest + `,}`,
		"NaN":               `{"model":"$","temperature":NaN,` + rest + `}`,
		"infinity":          `{"model":"$","temperature":-Infinity,` + rest + `}`,
		"leading zero":      `{"model":"$","n":01,` + rest + `}`,
		"hexadecimal":       `{"model":"$","n":0x1,` + rest + `}`,
		"number":            `{"model":1,` + rest + `}`,
		"null":              `{"model":null,` + rest + `}`,
		"array":             `{"model":["$"],` + rest + `}`,
		"object":            `{"model":{"id":"$"},` + rest + `}`,
		"empty":             `{"model":"",` + rest + `}`,
		"half a pair":       `{"model":"$\ud800",` + rest + `}`,
		"half a pair, name": `{"model":"$","mod\ud800el":"dear",` + rest + `}`,
		"NUL in the name":   `{"model":"$","model\u0000":"dear",` + rest + `}`,
		"NUL in the value":  `{"model":"$\u0000",` + rest + `}`,
		"bad UTF-8":         "{\"model\":\"$\xff\"," + rest + "}",
		"overlong UTF-8":    "{\"model\":\"$\xc0\xaf\"," + rest + "}",
		"bad UTF-8, far":    "{\"model\":\"$\",\"x\":\"" + strings.Repeat("a", 5000) + "\xed\xa0\x80\"," + rest + "}",
		"control":           "{\"model\":\"$\n\"," + rest + "}",
		"vertical tab":      "{\"model\":\"$\"\x0b," + rest + "}",
		"form feed first":   "\x0c{\"model\":\"$\"," + rest + "}",
		"no-break space":    "\u00a0{\"model\":\"$\"," + rest + "}",
		"deep":              `{"model":"$","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `,` + rest + `}`,
		"deep and open":     `{"model":"$","x":` + strings.Repeat("[", 5000),
		"an array":          `[{"model":"$"}]`,
		"a string":          `"model"`,
		"cut":               `{"model":"$","mess`,
		"nothing":           ` `,
		"UTF-16":            "\xff\xfe{\x00\"\x00m\x00o\x00d\x00e\x00l\x00\"\x00:\x00\"\x00$\x00\"\x00}\x00",
		"UTF-16 without":    "{\x00\"\x00m\x00o\x00d\x00e\x00l\x00\"\x00:\x00\"\x00$\x00\"\x00}\x00",
		"UTF-7":             "+AHs-\"model\":\"$\"}",
		"many members":      `{"model":"$",` + manyMembers(2000) + rest + `}`,
	} {
		for _, path := range []string{"/v1/chat/completions", "/s24/v1/chat/completions"} {
			for _, contentType := range []string{"application/json", "application/json; charset=utf-16", "APPLICATION/JSON", "text/json"} {
				a := l.call(t, l.key, "POST", path, strings.ReplaceAll(body, "$", "lab/s24"), "Content-Type", contentType)
				if a.StatusCode == 200 && contentType == "application/json" || a.StatusCode >= 500 {
					t.Errorf("%s as %s to %s: %s", name, contentType, path, a)
				}
			}
		}
	}
	for _, s := range l.provider.corner("s24").take() {
		var v struct{ Model any }
		if json.Unmarshal([]byte(s.body), &v) == nil && v.Model != nil && v.Model != "native-s24" {
			t.Errorf("the provider reads the model %v in %q", v.Model, s.body)
		}
	}
	// The same as a key that may not use everything: a body that does not show
	// its model to the gateway is not let through either.
	for _, contentType := range []string{"text/plain", "", "application/x-www-form-urlencoded", "application/octet-stream", "multipart/mixed; boundary=x", "multipart/form-data", "application/json\r\nContent-Type: text/plain", "text/plain\r\nContent-Type: application/json",
		"multipart/form-data; boundary=x\r\nContent-Type: application/json"} {
		for _, body := range []string{`{"model":"dear"}`, " \n{\"model\":\"dear\"}", "\x0b{\"model\":\"dear\"}", `[{"model":"dear"}]`, "model=dear", "model=ok-m&model=dear", `"model":"dear"`, "+AHs-\"model\":\"dear\"}",
			"--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\ndear\r\n--x--\r\n"} {
			text := strings.Replace(l.request("POST", "/s24/v1/chat/completions", body), "Content-Type: application/json", "Content-Type: "+contentType, 1)
			a := l.raw(t, strings.Replace(text, l.key, l.limited, 1))
			if a == nil || a.StatusCode != 403 && a.StatusCode != 400 {
				t.Errorf("%q as %q by a key that may not: %v", body, contentType, a)
			}
		}
	}
	for _, more := range []string{"Content-Type: application/json", "Content-Type: multipart/form-data; boundary=x"} {
		if a := l.raw(t, l.request("POST", "/s24/v1/chat/completions", chat("m"), more)); a == nil || a.StatusCode != 400 {
			t.Errorf("two content types: %v", a)
		}
	}
	if got := l.provider.corner("s24").take(); len(got) > 0 {
		t.Errorf("%d calls of a key that may not reached the provider: %s", len(got), got[0].dump())
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"m%d":1,`, i)
	}
	return b.String()
}

// TestHiddenModels names a forbidden model in every place where some
// provider looks for one, as a key that may use others.
func TestHiddenModels(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	form := func(parts string) string { return parts + "--x--\r\n" }
	field := func(name, value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	calls := []struct{ format, method, path, body string }{
		{"openai", "POST", "/v1/chat/completions", `{"model":"dear","messages":[]}`},
		{"openai", "POST", "/v1/responses", `{"model":"ok-m","tools":[{"type":"image_generation","model":"dear"}]}`},
		{"openai", "POST", "/v1/responses", `{"model":"ok-m","previous_response_id":"resp_1"}`},
		{"openai", "POST", "/v1/responses", `{"prompt":{"id":"pmpt_1"}}`},
		{"openai", "POST", "/v1/chat/completions?model=ok-m", `{"messages":[]}`},
		{"openai", "GET", "/v1/models/dear", ""},
		{"openai", "POST", "/v1/batches", `{"input_file_id":"file-1"}`},
		{"openai", "POST", "/v1/files", "x"},
		{"openai", "POST", "/v1/fine_tuning/jobs", `{"model":"dear"}`},
		{"openai", "POST", "/v1/assistants", `{"model":"dear"}`},
		{"anthropic", "POST", "/v1/messages", `{"model":"ok-m","tools":[{"type":"advisor","model":"dear"}]}`},
		{"anthropic", "POST", "/v1/messages/batches", `{"requests":[{"params":{"model":"dear"}}]}`},
		{"anthropic", "POST", "/v1/messages", `{"model":"ok-m","container":"c"}`},
		{"gemini", "POST", "/v1beta/models/dear:generateContent", `{"contents":[],"model":"ok-m"}`},
		{"gemini", "POST", "/v1beta/models/dear:streamGenerateContent?alt=sse", `{}`},
		{"gemini", "POST", "/v1beta/models/dear:predictLongRunning", `{}`},
		{"gemini", "POST", "/v1beta/models/ok-m:generateContent", `{"cachedContent":"cachedContents/1"}`},
		{"gemini", "POST", "/v1beta/openai/chat/completions", `{"model":"dear"}`},
		{"gemini", "POST", "/v1beta/tunedModels/dear:generateContent", `{}`},
		{"azure-openai", "POST", "/openai/deployments/dear/chat/completions?api-version=1", `{"model":"ok-m","messages":[]}`},
		{"azure-openai", "POST", "/openai/deployments/dear/embeddings", `{}`},
		{"azure-openai", "POST", "/openai/deployments/ok-m/extensions/chat/completions", `{"model":"dear"}`},
		{"azure-openai", "POST", "/openai/v1/chat/completions", `{"model":"dear"}`},
		{"azure-openai", "POST", "/openai/deployments/ok-m/chat/completions", `{"data_sources":[]}`},
		{"openrouter", "POST", "/api/v1/chat/completions", `{"model":"ok-m","models":["ok-m","dear"]}`},
		{"openrouter", "POST", "/api/v1/chat/completions", `{"models":["dear"]}`},
		{"openrouter", "POST", "/api/v1/chat/completions", `{"model":"ok-m","fallbacks":[{"model":"dear"}]}`},
		{"openrouter", "POST", "/api/v1/chat/completions", `{"model":"ok-m","preset":"p"}`},
		{"replicate", "POST", "/v1/models/owner/dear/predictions", `{"input":{}}`},
		{"replicate", "POST", "/v1/predictions", `{"version":"dear"}`},
		{"replicate", "POST", "/v1/deployments/o/n/predictions", `{}`},
		{"fal", "POST", "/dear/flux", `{"model":"ok-m"}`},
		{"dashscope", "POST", "/api/v1/services/aigc/text2image/image-synthesis", `{"model":"dear"}`},
		{"mistral", "POST", "/v1/chat/completions", `{"agent_id":"a"}`},
		{"ollama", "POST", "/api/generate", `{"model":"dear"}`},
		{"generic", "POST", "/ml/v1/text/generation", `{"model_id":"dear"}`},
		{"generic", "POST", "/model/dear/invoke", `{}`},
		{"model-paths", "POST", "/model/dear/invoke", `{"model":"ok-m"}`},
		{"model-paths", "POST", "/model/us.vendor.dear-v1%3A0/converse", `{"model":"ok-m","messages":[]}`},
		{"model-paths", "POST", "/model/ok-m/converse", `{"model":"dear"}`},
		{"model-paths", "POST", "/%6dodel/dear/converse", `{"model":"ok-m"}`},
		{"model-paths", "POST", "/model/dear/convers%65", `{"model":"ok-m"}`},
		{"model-paths", "POST", "/run/dear%3Ago", `{"model":"ok-m"}`},
		{"generic", "POST", "/v1/x?model=dear", `{"model":"ok-m"}`},
		{"generic", "POST", "/v1/x?Model=dear", `{"model":"ok-m"}`},
		{"generic", "POST", "/v1/x?mod%65l=dear", `{"model":"ok-m"}`},
		{"generic", "POST", "/v1/x?model=ok-m&model=dear", `{}`},
		{"generic", "POST", "/v1/x?model[]=dear", `{"model":"ok-m"}`},
		{"generic", "POST", "/v1/x", `{"models":["dear"]}`},
		{"generic", "POST", "/v1/x", `{"deployment_id":"dear"}`},
		{"openai", "POST", "/v1/audio/transcriptions", form(field("model", "dear"))},
		{"openai", "POST", "/v1/audio/transcriptions", form(field("model", "ok-m") + field("model", "dear"))},
		{"openai", "POST", "/v1/audio/transcriptions", form(field("Model", "dear"))},
		{"openai", "POST", "/v1/audio/transcriptions", form(field("x", "y"))},
	}
	for _, c := range calls {
		headers := []string{}
		if strings.HasPrefix(c.body, "--x") {
			headers = []string{"Content-Type", "multipart/form-data; boundary=x"}
		}
		a := l.call(t, l.limited, c.method, "/h-"+c.format+c.path, c.body, headers...)
		if a.StatusCode != 403 && a.StatusCode != 400 {
			t.Errorf("%s %s %s by a key that may not: %s", c.method, c.path, c.body, a)
		}
		if got := l.provider.corner("h-" + c.format).take(); len(got) > 0 {
			t.Errorf("%s %s reached the provider", c.method, c.path)
		}
	}
	if a := l.call(t, l.limited, "POST", "/h-openai/v1/chat/completions", `{"model":"ok-m","messages":[]}`); a.StatusCode != 200 {
		t.Errorf("the key's own model: %s", a)
	}
}

// TestHostileForms sends forms in which two parsers could find different
// models.
func TestHostileForms(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const cd = "Content-Disposition: form-data; "
	part := func(head, text string) string { return "--x\r\n" + head + "\r\n\r\n" + text + "\r\n" }
	model := part(cd+`name="model"`, "ok-m")
	dear := func(head string) string { return part(head, "dear") }
	for name, body := range map[string]string{
		"twice":              model + dear(cd+`name="model"`),
		"another case":       model + dear(cd+`name="MODEL"`),
		"an array":           model + dear(cd+`name="model[]"`),
		"a file":             dear(cd + `name="model"; filename="m"`),
		"two names":          dear(cd + `name="x"; name="model"`),
		"encoded name":       dear(cd + `name*=utf-8''model`),
		"both names":         dear(cd + `name="ok"; name*=utf-8''model`),
		"bare name":          model + dear(cd+`name=model`),
		"escaped quote":      dear(cd + `name="x\"; name="model"`),
		"file hides a name":  dear(cd + `filename="a\"; name="x"; name="model"`),
		"folded head":        dear(cd + "\r\n name=\"model\""),
		"two heads":          dear(cd + "name=\"x\"\r\n" + cd + "name=\"model\""),
		"attachment":         model + dear(`Content-Disposition: attachment; name="model"`),
		"quoted-printable":   part(cd+`name="model"`+"\r\nContent-Transfer-Encoding: quoted-printable", "d=65ar"),
		"base64":             part(cd+`name="model"`+"\r\nContent-Transfer-Encoding: base64", "ZGVhcg=="),
		"charset":            part(cd+`name="model"`+"\r\nContent-Type: text/plain; charset=utf-16", "dear"),
		"_charset_":          part(cd+`name="_charset_"`, "utf-7") + model,
		"JSON part":          part(cd+`name="model"`+"\r\nContent-Type: application/json", `"dear"`),
		"line ends":          "--x\n" + cd + "name=\"model\"\n\ndear\n",
		"preamble":           dear(cd + `name="model"`)[4:] + model,
		"boundary inside":    part(cd+`name="y"`, "a\n--x\n"+cd+"name=\"model\"\n\ndear") + model + dear(cd+`name="model"`),
		"no name":            model + dear("X: y"),
		"space in the name":  model + dear(cd+`name="model "`),
		"NUL in the name":    model + dear(cd+"name=\"model\x00\""),
		"control in a head":  model + dear(cd+"name=\"z\"\r\nX: \x01"),
		"invisible":          part(cd+`name="model"`, "dear\u200b"),
		"trailing space":     part(cd+`name="model"`, "ok-m "),
		"newline":            part(cd+`name="model"`, "ok-m\r\ndear"),
		"empty":              part(cd+`name="model"`, ""),
		"endless head":       "--x\r\n" + cd + "name=\"model\"\r\nX: " + strings.Repeat("a", 100_000),
		"many parts":         strings.Repeat(part(cd+`name="y"`, "z"), 5000) + model,
		"transport padding":  "--x \t\r\n" + cd + "name=\"model\"\r\n\r\ndear\r\n",
		"closed, then again": model + "--x--\r\n" + dear(cd+`name="model"`),
	} {
		for _, contentType := range []string{"multipart/form-data; boundary=x", `Multipart/Form-Data; BOUNDARY="x"`} {
			a := l.call(t, l.limited, "POST", "/s26/v1/audio/transcriptions", body+"--x--\r\n", "Content-Type", contentType)
			if a.StatusCode != 400 && a.StatusCode != 403 {
				t.Errorf("%s as %s: %s", name, contentType, a)
			}
		}
	}
	for _, contentType := range []string{"multipart/form-data; boundary=x; boundary=y", "multipart/form-data; boundary*=utf-8''x", "multipart/form-data; boundary=", "multipart/form-data", "multipart/form-data; boundary=\"x y\"",
		"multipart/form-data; boundary=" + strings.Repeat("x", 80), "multipart/mixed; boundary=x", "multipart/form-data;boundary=x;x", "multipart/form-data; boundary=x, application/json"} {
		a := l.call(t, l.limited, "POST", "/s26/v1/audio/transcriptions", dear(cd+`name="model"`)+"--x--\r\n", "Content-Type", contentType)
		if a.StatusCode != 400 && a.StatusCode != 403 {
			t.Errorf("as %s: %s", contentType, a)
		}
	}
	if got := l.provider.corner("s26").take(); len(got) > 0 {
		t.Errorf("%d calls reached the provider: %s", len(got), got[0].dump())
	}
	if a := l.call(t, l.limited, "POST", "/s26/v1/audio/transcriptions", model+"--x--\r\n", "Content-Type", "multipart/form-data; boundary=x"); a.StatusCode != 200 {
		t.Errorf("an honest form: %s", a)
	}
}

// TestConfusableSlugs asks for five thousand slugs that look like, or are
// equal to some reader, to the one there is.
func TestConfusableSlugs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const slug = "lab/s27"
	confusable := map[string]bool{}
	add := func(s string) {
		if s != slug {
			confusable[s] = true
		}
	}
	others := []rune("\u0430\u0435\u043e\u0455\u0501\u217c\u2113\u0131\u0561\u1d5a\uff41\uff53\uff12\uff0f\u2044\u2215\u29f8\u00b2\u2460\u0662\u06f2\u0967\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e\u202e\u202d\u2066\u0301\u0308\ufe0e\ufe0f\u00a0\u2003\u3000\u0009\u000a\u000d\u0020\u0000\u0008\u007f.%_-*?/\\#&+;:@=!$'()[]{}<>|^`~\",")
	for r := rune('A'); r <= 'z'; r++ {
		others = append(others, r)
	}
	for r := rune(0x1d400); r < 0x1d800; r += 9 {
		others = append(others, r)
	}
	for r := rune(0xe0020); r < 0xe0080; r++ {
		others = append(others, r)
	}
	for i := range len(slug) + 1 {
		for _, r := range others {
			add(slug[:i] + string(r) + slug[i:])
			if i < len(slug) {
				add(slug[:i] + string(r) + slug[i+1:])
			}
		}
		add(slug[:i] + fmt.Sprintf("%%%02x", "lab/s27x"[i]) + slug[min(i+1, len(slug)):])
	}
	for _, s := range []string{"LAB/S27", "lab//s27", "/lab/s27", "lab/s27/", "lab/./s27", "lab/x/../s27", "lab\\s27", "lab%2fs27", "lab/s27@latest", "lab/s27:free", "lab/s27\u0000", " lab/s27", "native-s27", "s27/native-s27", "s27", "lab"} {
		add(s)
	}
	queue := make(chan string, len(confusable))
	for s := range confusable {
		queue <- s
	}
	close(queue)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for s := range queue {
				body, _ := json.Marshal(map[string]any{"model": s, "messages": []int{}})
				if a := l.call(t, l.key, "POST", "/v1/chat/completions", string(body)); a.StatusCode != 404 && a.StatusCode != 400 {
					t.Errorf("%q: %s", s, a)
				}
			}
		})
	}
	work.Wait()
	if got := l.provider.corner("s27").take(); len(got) > 0 || len(confusable) < 5000 {
		t.Errorf("%d of %d confusable slugs reached the provider", len(got), len(confusable))
	}
}

// dial opens a connection to the gateway.
func (l *lab) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(l.URL, "http://"), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// read is what a reader gives within a time; a test need not know how it ends.
func read(conn net.Conn, within time.Duration) string {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	text, _ := io.ReadAll(conn)
	return string(text)
}
