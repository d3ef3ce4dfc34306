package provider

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/buger/jsonparser"
	jsonv2 "github.com/go-json-experiment/json"
	goccy "github.com/goccy/go-json"
	"github.com/tidwall/gjson"
	"github.com/valyala/fastjson"

	"modelgate/internal/provider/reqscan"
)

// aModel reads the member model of a body as a server might; false where it
// finds no string.
type aModel func(body []byte) (string, bool)

// intoStruct reads into a struct, as most servers do. Many of these parsers
// take a name in another letter case for the same.
func intoStruct(unmarshal func([]byte, any) error) aModel {
	return func(body []byte) (string, bool) {
		var v struct {
			Model any `json:"model"`
		}
		if unmarshal(body, &v) != nil {
			return "", false
		}
		text, ok := v.Model.(string)
		return text, ok
	}
}

// intoMap reads into a map, as dynamic languages do.
func intoMap(unmarshal func([]byte, any) error) aModel {
	return func(body []byte) (string, bool) {
		var v map[string]any
		if unmarshal(body, &v) != nil {
			return "", false
		}
		text, ok := v["model"].(string)
		return text, ok
	}
}

// otherReaders are parsers that share no code with Scan nor, but for their
// authors' habits, with each other.
func otherReaders() map[string]aModel {
	v2 := func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }
	return map[string]aModel{
		"encoding/json into a struct": intoStruct(json.Unmarshal),
		"encoding/json into a map":    intoMap(json.Unmarshal),
		"go-json-experiment":          intoMap(v2),
		"goccy/go-json":               intoMap(goccy.Unmarshal),
		"gjson": func(body []byte) (string, bool) {
			v := gjson.GetBytes(body, "model")
			return v.Str, v.Type == gjson.String
		},
		"jsonparser": func(body []byte) (string, bool) {
			text, err := jsonparser.GetString(body, "model")
			return text, err == nil
		},
		"fastjson": func(body []byte) (string, bool) {
			var p fastjson.Parser
			v, err := p.ParseBytes(body)
			if err != nil {
				return "", false
			}
			text, err := v.Get("model").StringBytes()
			return string(text), err == nil
		},
	}
}

// checkModel lets every reader name the model of a body that is accepted. The
// one that is judged must be the one that any of them would run.
func checkModel(t fataler, body []byte) {
	t.Helper()
	fields, err := reqscan.Scan(body, reqscan.NewNames("model"))
	if err != nil {
		return
	}
	r := Request{Fields: fields}
	models, err := Models([]ModelSource{BodyField("model")}, &r)
	if err != nil || len(models) == 0 {
		return // refused, or judged as a call that names no model
	}
	for name, read := range otherReaders() {
		if skipped(name, body) {
			continue
		}
		if got, ok := read(body); !ok || got != models[0] {
			t.Fatalf("%q names %q; %s reads %q, %v", body, models[0], name, got, ok)
		}
	}
}

// skipped are the bodies that a reader refuses as a whole, which is no other
// meaning: half surrogates and repeated names in values, numbers beyond
// float64, and deep nesting.
func skipped(name string, body []byte) bool {
	switch name {
	case "gjson", "jsonparser":
		return false
	case "fastjson":
		return nesting(body) > 290
	}
	var v any
	if name == "go-json-experiment" {
		return jsonv2.Unmarshal(body, &v) != nil
	}
	return json.Unmarshal(body, &v) != nil
}

func nesting(body []byte) int {
	return strings.Count(string(body), "[") + strings.Count(string(body), "{")
}

// FuzzModelJSON compares the model that is judged with what other parsers
// read.
func FuzzModelJSON(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a/b"}`,
		` { "mod\u0065l" : "a\/b" } `,
		`{"x":{"model":"inner"},"model":"outer"}`,
		`{"model":"a","x":"\",\"model\":\"b"}`,
		`{"x":[{"model":"b"}],"model":"\ud83d\ude00"}`,
		`{"model":"cheap","Model":"dear"}`,
		`{"model":"cheap","model":"dear"}`,
		`{"model":"cheap","mod\u0065l":"dear"}`,
		`{"model":"cheap"}{"model":"dear"}`,
		"{\"model\":\"cheap\",\"\u212Aey\":\"\u017f\"}",
		`{"model\u0000":"dear","model":"cheap"}`,
		`{"model":"\ud800cheap"}`,
		`{"model":"chea\u0000p"}`,
		"{\"model\":\"che\xffap\"}",
		`{"a.model":"dear","model":"cheap","model.x":"y"}`,
		`{"":{"model":"dear"},"model":"cheap"}`,
		`{"x":1e999,"model":"cheap"}`,
		`{"\\":"\\","model":"cheap","\"model\"":"dear"}`,
		`{"m":"\\\"model\":\"dear","model":"cheap"}`,
		`{"x":"}","model":"cheap"}`,
		`{"x":[],"y":{},"z":null,"model":"cheap","w":-0.0e-0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkModel(t, body) })
}

// fataler is what a fuzz test and a property test have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}
