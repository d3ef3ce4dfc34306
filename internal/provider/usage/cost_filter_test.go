package usage

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func costFilterOf(contentType string) *CostFilter {
	members := NewCostMembers(costPaths())
	return members.Filter(contentType)
}

func costPaths() []string {
	paths := []string{"outputs.cost"}
	for _, name := range []string{"cost", "cost_details", "is_byok", "cost_in_usd_ticks"} {
		paths = append(paths, "usage."+name, "response.usage."+name, "message.usage."+name)
	}
	return paths
}

func withoutCosts(contentType, text string, next func(left int) int) string {
	f := costFilterOf(contentType)
	var out []byte
	for b := []byte(text); len(b) > 0; {
		n := next(len(b))
		out = append(out, f.Filter(append([]byte(nil), b[:n]...))...)
		b = b[n:]
	}
	return string(append(out, f.Rest()...))
}

func TestCostsAreTakenOut(t *testing.T) {
	t.Parallel()
	const events = "text/event-stream"
	for _, tt := range []struct{ media, in, want string }{
		{"", `{"usage":{"prompt_tokens":1,"cost":0.5,"is_byok":false}}`, `{"usage":{"prompt_tokens":1}}`},
		{"", `{"usage":{"cost":0.5,"prompt_tokens":1}}`, `{"usage":{"prompt_tokens":1}}`},
		{"", `{"usage": {"cost" : 0.5 , "a": 1, "cost_details": {"x": [1, "}"]}, "b": 2 } }`, `{"usage": {  "a": 1, "b": 2 } }`},
		{"", `{"usage":{"cost":0.5}}`, `{"usage":{}}`},
		{"", `{"usage":{"cost":"0.5","cost":1,"is_byok":true}}`, `{"usage":{}}`},
		{"", `{"usage":{"c\u006fst":0.5,"a":1}}`, `{"usage":{"a":1}}`},
		{"", `{"us\u0061ge":{"a":1,"cost":null}}`, `{"us\u0061ge":{"a":1}}`},
		{"", `{"response":{"usage":{"cost":1,"n":2},"cost":3}}`, `{"response":{"usage":{"n":2},"cost":3}}`},
		{"", `{"message":{"usage":{"cost":{"total_cost":1}}}}`, `{"message":{"usage":{}}}`},
		{"", `[{"usage":{"cost":1}},{"usage":{"a":1,"cost":1}}]`, `[{"usage":{}},{"usage":{"a":1}}]`},
		{"", `{"cost":1,"content":[{"input":{"usage":{"cost":1}}}],"input":{"usage":{"cost":1}},"text":"{\"usage\":{\"cost\":1}}"}`, ""},
		{"", `{"usage":null,"outputs":{"url":"x","cost":3}}`, `{"usage":null,"outputs":{"url":"x"}}`},
		{"", "{\"usage\":{\"cost\":1}}\n{\"usage\":{\"cost\":1,\"a\":2}}\n", "{\"usage\":{}}\n{\"usage\":{\"a\":2}}\n"},
		{events, "event: x\ndata: {\"usage\":{\"a\":1,\"cost\":0.25}}\n\n: {\"usage\":{\"cost\":1}}\n\ndata: [DONE]\n\n", "event: x\ndata: {\"usage\":{\"a\":1}}\n\n: {\"usage\":{\"cost\":1}}\n\ndata: [DONE]\n\n"},
		{events, "data:{\"usage\":{\"cost\":1,\"a\":1}}\r\n\r\ndata:{\"usage\":{\"cost\":1}}\r\n\r\n", "data:{\"usage\":{\"a\":1}}\r\n\r\ndata:{\"usage\":{}}\r\n\r\n"},
		{events, "data: {\"usage\":{\ndata: \"cost\":\ndata: 1,\ndata: \"a\":2}}\n\n", "data: {\"usage\":{\ndata: \"a\":2}}\n\n"},
		{events, "data: {\"usage\":{\"a\n\ndata: {\"usage\":{\"cost\":1}}\n\n", "data: {\"usage\":{\"a\n\ndata: {\"usage\":{}}\n\n"},
		{"", `{"usage":{"a":1,"co`, ""},
	} {
		want := tt.want
		if want == "" {
			want = tt.in
		}
		for name, next := range map[string]func(int) int{"whole": whole, "bytes": oneByte, "random": random} {
			if got := withoutCosts(tt.media, tt.in, next); got != want {
				t.Errorf("%s, %s:\n got %q\nwant %q", tt.in, name, got, want)
			}
		}
	}
}

// White space without end is not kept.
func TestCostFilterHoldsLittle(t *testing.T) {
	t.Parallel()
	f := costFilterOf("application/json")
	f.Filter([]byte(`{"usage":{`))
	space := bytes.Repeat([]byte(" "), 1<<20)
	for range 8 {
		f.Filter(space)
	}
	if len(f.held) > mostHeld {
		t.Errorf("%d bytes are held", len(f.held))
	}
	if got := string(f.Filter([]byte(`"cost":1,"a":2}}`))) + string(f.Rest()); strings.Contains(got, "cost") || !strings.HasSuffix(strings.TrimSpace(got), `"a":2}}`) {
		t.Errorf("the rest is %q", got[max(0, len(got)-100):])
	}
}

// strip takes the members out of a decoded value.
func strip(v any) any {
	if list, ok := v.([]any); ok {
		for i := range list {
			list[i] = strip(list[i])
		}
		return list
	}
	for _, path := range costPaths() {
		names := strings.Split(path, ".")
		object, ok := v.(map[string]any)
		for _, name := range names[:len(names)-1] {
			if ok {
				object, ok = object[name].(map[string]any)
			}
		}
		if ok {
			delete(object, names[len(names)-1])
		}
	}
	return v
}

// What encoding/json reads of a filtered value is what it reads of the value
// itself, without the members; however it is cut. Anything else keeps its
// bytes, but for what a member holds.
func FuzzCostFilter(f *testing.F) {
	f.Add([]byte(`{"usage":{"cost":1,"a":[{"cost":2}]},"response":{"usage":{"is_byok":true}}}`), byte(3), false)
	f.Add([]byte("data: {\"usage\":{\"cost\":1}}\n\n"), byte(1), true)
	f.Fuzz(func(t *testing.T, body []byte, size byte, events bool) {
		media := map[bool]string{true: "text/event-stream"}[events]
		got := withoutCosts(media, string(body), whole)
		if all := string(costFilterOf(media).Whole(bytes.Clone(body))); all != got {
			t.Fatalf("%q as a whole %q, else %q", body, all, got)
		}
		if cut := withoutCosts(media, string(body), func(left int) int { return min(left, int(size)+1) }); cut != got {
			t.Fatalf("%q in pieces of %d: %q, whole %q", body, int(size)+1, cut, got)
		}
		if len(got) > len(body) {
			t.Fatalf("%q became %q", body, got)
		}
		var v any
		if events || !json.Valid(body) || repeats(body) || json.Unmarshal(body, &v) != nil {
			return
		}
		if first := bytes.TrimLeft(body, " \t\r\n"); first[0] != '{' && first[0] != '[' {
			return
		}
		var filtered any
		if err := json.Unmarshal([]byte(got), &filtered); err != nil {
			t.Fatalf("%q became %q: %v", body, got, err)
		}
		if list, ok := v.([]any); ok { // what stands in an array in an array is no document
			for _, element := range list {
				if _, nested := element.([]any); nested {
					return
				}
			}
		}
		if want := strip(v); !reflect.DeepEqual(want, filtered) {
			t.Fatalf("%q became %q, want %v", body, got, want)
		}
	})
}

// repeats reports whether a body may name a member twice, of which
// encoding/json reads the last.
func repeats(body []byte) bool {
	return bytes.Count(body, []byte(`:`)) > 1 && func() bool {
		names := map[string]bool{}
		for _, part := range strings.Split(string(body), `"`) {
			if names[part] && len(strings.Trim(part, " \t\r\n:,{}[]")) > 0 {
				return true
			}
			names[part] = true
		}
		return strings.Contains(string(body), `\`)
	}()
}
