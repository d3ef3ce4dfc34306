package usage

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"modelgate/internal/provider/reqscan"
)

// documentPaths are paths that readers ask for, and some that only look so.
func documentPaths() []string {
	return []string{"usage", "choices", "data", "service_tier", "x_groq.usage", "meta.billed_units", "message.usage", "delta.stop_reason",
		"response.meta.billed_units", "metadata.success_count", "choices.0.usage", "output.choices.0.finish_reason", "base_resp.status_code", "type",
		"a", "a.a", "a.0.a", "error", ""}
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
	for _, path := range documentPaths() {
		got, want := d.get(path), gjson.GetBytes(text, path)
		if valid && len(d.members) > 0 && (got.Raw != want.Raw || got.Type != want.Type || got.Str != want.Str || got.Num != want.Num) {
			t.Fatalf("%q: %s is %s (%v), want %s (%v)", text, path, got.Raw, got.Type, want.Raw, want.Type)
		}
	}
	kept := slices.Concat(Any.whole, Images.whole)
	direct, skimmed := document{whole: kept}, document{whole: kept}
	end, ok := direct.skim(text)
	if !ok || len(text) > maxProjection {
		return
	}
	s := skimmer{whole: kept}
	if rest, complete := s.next(text); !complete || len(text)-len(rest) != end || s.overflow || !skimmed.read(s.out) {
		t.Fatalf("%q: ends at %d; %v, %d bytes left and %q of a skimmer", text, end, complete, len(rest), s.out)
	}
	for _, path := range documentPaths() {
		got, want := length(direct.get(path)), skimmed.get(path)
		if path == "" { // what a skimmer leaves of a long name
			continue
		}
		if got.Type != want.Type || content(got) != content(want) || got.Num != want.Num {
			t.Fatalf("%q: %s is %s, %s after a skimmer", text, path, got.Raw, want.Raw)
		}
		sameMembers(t, got, want, 2)
	}
}

// content is what readers take of a string.
func content(v gjson.Result) string { return text(v) }

// sameMembers compares what is in two values of a level that a skimmer keeps.
func sameMembers(t *testing.T, got, want gjson.Result, level int) {
	if level > deepest {
		return
	}
	type member struct {
		name  string
		value gjson.Result
	}
	list := func(v gjson.Result) (list []member) {
		for name, v := range members(v) {
			list = append(list, member{name, v})
		}
		return list
	}
	a, b := list(got), list(want)
	if len(a) != len(b) {
		t.Fatalf("%s has %d members, want %d", got.Raw, len(a), len(b))
	}
	for i := range a {
		if a[i].name != b[i].name || a[i].value.Type != b[i].value.Type && level < deepest || content(a[i].value) != content(b[i].value) {
			t.Fatalf("%s: %q is %s, want %q: %s", got.Raw, a[i].name, a[i].value.Raw, b[i].name, b[i].value.Raw)
		}
		sameMembers(t, a[i].value, b[i].value, level+1)
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
