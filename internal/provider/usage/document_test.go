package usage

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"modelgate/internal/provider/reqscan"
)

// documentPaths are paths that readers ask for, and some that only look so.
func documentPaths() [][]string {
	return [][]string{{"usage"}, {"choices"}, {"data"}, {"service_tier"}, {"x_groq", "usage"}, {"meta", "billed_units"}, {"message", "usage"},
		{"delta", "stop_reason"}, {"response", "meta", "billed_units"}, {"metadata", "success_count"}, {"choices", "0", "usage"},
		{"output", "choices", "0", "finish_reason"}, {"base_resp", "status_code"}, {"type"}, {"a"}, {"a", "a"}, {"a", "0", "a"}, {"error"}, {""}}
}

// TestDocument: of a document, the same is read as gjson reads, also where
// names repeat, are spelled with escapes, or lie very deep.
func TestDocument(t *testing.T) {
	t.Parallel()
	for _, text := range documentSeeds() {
		sameDocument(t, []byte(text))
	}
}

func documentSeeds() []string {
	deep := strings.Repeat(`{"a":[`, reqscan.MaxDepth) + `1` + strings.Repeat(`]}`, reqscan.MaxDepth)
	long := strings.Repeat("x", maxText)
	return []string{
		`{}`, `[]`, `""`, `"{\"usage\":{}}"`, `12`, `null`, `[{"usage":{"a":1}}]`, ` {"usage" : {"a" : 1 , "b":[ 1 , 2 ] } } `, `{"usage":{}}x`, `{"usage":{},}`, `{"usage":{}`,
		`{"usage":1,"usage":{"a":2}}`, `{"x_groq":{"b":1},"x_groq":{"usage":{"a":2}}}`, `{"x_groq":[{"usage":1}],"x_groq":1,"x_groq":{"usage":0}}`,
		`{"us\u0061ge":{"a":1},"usage":{"a":2}}`, `{"usage":{"\u0061":"\ud800\u0041\n","a\\":"\\","a":"\\\""}}`, `{"a\"":1,"a":"\"usage\":{"}`,
		`{"choices":{"0":{"usage":{"a":1}}}}`, `{"choices":[[],{"usage":{"a":1}}]}`, `{"choices":[{"usage":{"a":"]"}},{}],"data":[[1,2],{"a":","},"x,y"]}`,
		`{"output":{"choices":[{}],"choices":[{"finish_reason":"stop"}]}}`, `{"usage":{"a":tru}}`, `{"a":"` + "\x01" + `"}`, `{"a":"` + "\xff" + `"}`, `{"a":01}`, `{"a":-}`, `{"a":1e5}`, `{"":1}`,
		`{"usage":` + deep + `}`, deep, `{"a":"` + long + `","data":"` + long + `y"}`, `{"` + long + `y":1,"usage":{"` + long + `y":"` + long + `y"}}`,
		`{"meta":{"billed_units":{}},"metadata":{"success_count":"3"},"base_resp":{"status_code":0},"error":{"a":1,"b":2}}`,
		`{` + strings.Repeat(`"k":[1],`, 40) + `"usage":{"a":{"a":[{"a":3}]}},"a":[{"a":4}]}`, "{\"a\":1}\n{\"a\":2}\n",
	}
}

// FuzzDocument is TestDocument for any bytes.
func FuzzDocument(f *testing.F) {
	for _, text := range documentSeeds() {
		f.Add([]byte(text))
	}
	f.Fuzz(sameDocument)
}

func sameDocument(t *testing.T, text []byte) {
	var d document
	valid := d.read(text)
	if want := gjson.ValidBytes(text); valid != want {
		t.Fatalf("%q: valid %v, want %v", text, valid, want)
	}
	if valid {
		for _, path := range documentPaths() {
			sameDatum(t, text, d.get(path...), gjson.GetBytes(text, strings.Join(path, ".")))
		}
	}
	var direct, skimmed document
	end, ok := direct.skim(text)
	if !ok || len(text) > maxProjection {
		return
	}
	var s skimmer
	if rest, complete := s.next(text); !complete || len(text)-len(rest) != end || s.overflow || !skimmed.read(s.out) {
		t.Fatalf("%q: ends at %d; %v, %d bytes left and %q of a skimmer", text, end, complete, len(rest), s.out)
	}
	for _, path := range documentPaths() {
		got, want := direct.get(path...), skimmed.get(path...)
		if got.kind() != want.kind() || !bytes.Equal(got.text(), want.text()) ||
			got.kind() == reqscan.JSONNumber && !bytes.Equal(got.number(), want.number()) {
			t.Fatalf("%q: %v is %s, %s after a skimmer", text, path, got.raw, want.raw)
		}
		sameEntries(t, got, want)
	}
}

// sameDatum compares a value with what gjson has found, and all that is in it.
func sameDatum(t *testing.T, text []byte, got datum, want gjson.Result) {
	kinds := map[gjson.Type][]reqscan.ValueKind{gjson.Null: {reqscan.JSONNull, reqscan.JSONAbsent}, gjson.False: {reqscan.JSONBool}, gjson.True: {reqscan.JSONBool},
		gjson.Number: {reqscan.JSONNumber}, gjson.String: {reqscan.JSONString}, gjson.JSON: {reqscan.JSONObject, reqscan.JSONArray}}[want.Type]
	if kind := got.kind(); string(got.raw) != want.Raw || got.exists() != want.Exists() || string(got.text()) != want.Str ||
		kind != kinds[0] && kind != kinds[len(kinds)-1] || got.isObject() != want.IsObject() || got.isArray() != want.IsArray() ||
		got.result().Num != want.Num || got.result().Bool() != want.Bool() {
		t.Fatalf("%q: %s (%s), want %s (%v)", text, got.raw, kind, want.Raw, want.Type)
	}
	if !want.IsObject() && !want.IsArray() {
		return
	}
	e := got.entries()
	want.ForEach(func(name, v gjson.Result) bool {
		if !e.next() || string(e.name) != name.Str {
			t.Fatalf("%q: member %q, want %q", text, e.name, name.Str)
		}
		if string(e.value.raw) != v.Raw {
			t.Fatalf("%q: %s is %s, want %s", text, e.name, e.value.raw, v.Raw)
		}
		return true
	})
	if e.next() {
		t.Fatalf("%q: %s after the end", text, e.value.raw)
	}
}

func sameEntries(t *testing.T, got, want datum) {
	a, b := got.entries(), want.entries()
	for b.next() {
		if !a.next() || !bytes.Equal(a.name, b.name) || a.value.kind() != b.value.kind() || !bytes.Equal(a.value.text(), b.value.text()) {
			t.Fatalf("%s: %q is %s, want %q: %s", got.raw, a.name, a.value.raw, b.name, b.value.raw)
		}
		sameEntries(t, a.value, b.value)
	}
	if a.next() {
		t.Fatalf("%s: %s after the end", got.raw, a.value.raw)
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"usage":{`: true, `{"usage" : {`: true, `{"usage":null}`: false, `usage":{`: false, `"usage"usage":{`: false, `xusage"usage":{`: true,
		`{"usage":1,"usage":{`: true, `"usage"`: false, `"usage":`: false, ``: false, `\"usage\":{`: false, `{"ausage":{`: false,
	} {
		if got := object([]byte(text), []byte(`"usage"`)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
