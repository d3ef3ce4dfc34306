package reqscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// topLevel is what jsontext sees in a body: its top-level members.
type topLevel struct {
	names  []string
	values map[string]string
	depth  int
}

// readTop reads the body with jsontext. Repeated names and half surrogates
// are let through, because Scan has its own rules for them.
func readTop(body []byte) (topLevel, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	top := topLevel{values: map[string]string{}}
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return top, fmt.Errorf("no object: %v, %w", token, err)
	}
	for decoder.PeekKind() != '}' {
		name, err := decoder.ReadToken()
		if err != nil {
			return top, err
		}
		text := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return top, err
		}
		top.names = append(top.names, text)
		top.values[text] = string(value)
		top.depth = max(top.depth, depthOf(value))
	}
	if _, err := decoder.ReadToken(); err != nil {
		return top, err
	}
	if _, err := decoder.ReadToken(); err != io.EOF {
		return top, fmt.Errorf("trailing data: %w", err)
	}
	return top, nil
}

// depthOf is how deep the containers of a valid value are nested.
func depthOf(value []byte) int {
	depth, most, inString := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '{' || c == '['):
			depth++
			most = max(most, depth)
		case !inString && (c == '}' || c == ']'):
			depth--
		}
	}
	return most
}

// mustAccept says whether the rules let the body through.
func (r topLevel) mustAccept(names []string) bool {
	if len(r.names) > MaxMembers || r.depth+1 > MaxDepth || len(r.values) != len(r.names) {
		return false
	}
	for _, name := range r.names {
		if strings.ContainsAny(name, "\x00\ufffd") {
			return false
		}
		for _, wanted := range names {
			if name != wanted && strings.EqualFold(name, wanted) {
				return false
			}
		}
	}
	return true
}

// failer is what a fuzz test and a property test have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkScan compares Scan with encoding/json and jsontext in both
// directions: what it accepts they read alike, and what it refuses breaks
// one of its stated rules.
func checkScan(t failer, body []byte) {
	t.Helper()
	wanted := []string{"model", "stream", "stream_options"}
	fields, err := Scan(body, NewNames(wanted...))
	top, readErr := readTop(body)
	if err != nil {
		replaced := bytes.Contains(body, []byte("\ufffd")) || bytes.Contains(bytes.ToLower(body), []byte(`\ufffd`))
		if readErr == nil && json.Valid(body) && utf8.Valid(body) && top.mustAccept(wanted) && !replaced {
			t.Fatalf("Scan(%q) = %v, but every rule is kept", body, err)
		}
		return
	}
	if readErr != nil || !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("Scan accepts %q, jsontext says %v, json.Valid %v", body, readErr, json.Valid(body))
	}
	if len(top.values) != len(top.names) {
		t.Fatalf("Scan accepts the repeated member names of %q", body)
	}
	var loose struct {
		Model   json.RawMessage
		Stream  json.RawMessage
		Options json.RawMessage `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &loose); err != nil {
		t.Fatalf("Scan accepts %q, encoding/json says %v", body, err)
	}
	for i, lenient := range []json.RawMessage{loose.Model, loose.Stream, loose.Options} {
		value, ok := fields.Get(wanted[i])
		exact, present := top.values[wanted[i]]
		if ok != present || string(value.Raw()) != exact || string(lenient) != exact {
			t.Fatalf("Scan(%q): %s = %s, jsontext reads %s, encoding/json %s", body, wanted[i], value.Raw(), exact, lenient)
		}
	}
	checkValue(t, &fields, body)
}

// checkValue compares the readers and editors of values.
func checkValue(t failer, fields *Fields, body []byte) {
	t.Helper()
	model, ok := fields.Get("model")
	if text, whole := model.Text(); whole {
		var want string
		if err := json.Unmarshal(model.Raw(), &want); err != nil || text != want {
			t.Fatalf("Text of %s = %q, encoding/json reads %q, %v", model.Raw(), text, want, err)
		}
		if got := model.CodePoints(); got != int64(utf8.RuneCountInString(want)) {
			t.Fatalf("CodePoints of %s = %d, want %d", model.Raw(), got, utf8.RuneCountInString(want))
		}
	}
	for element := range model.Elements() {
		if !json.Valid(element.Raw()) {
			t.Fatalf("Elements of %s yields %s", model.Raw(), element.Raw())
		}
	}
	var edits []Edit
	if ok {
		edits = append(edits, Edit{model.Span, ModelValue("new/model")})
	}
	edit, added, err := IncludeUsage(fields)
	checkRemoval(t, fields, body, edit)
	if added {
		edits = append(edits, edit)
	}
	edited := Splice(nil, body, edits...)
	again, scanErr := Scan(edited, fields.names)
	if err != nil || scanErr != nil {
		if scanErr != nil {
			t.Fatalf("the edited body %q of %q = %v", edited, body, scanErr)
		}
		return
	}
	if got, _ := again.Get("model"); ok && string(got.Raw()) != `"new/model"` {
		t.Fatalf("the edited body %q has the model %s", edited, got.Raw())
	}
	if !added {
		return
	}
	options, _ := again.Get("stream_options")
	if usage, err := options.Member("include_usage"); err != nil || !usage.IsTrue() {
		t.Fatalf("the edited body %q has include_usage %s, %v", edited, usage.Raw(), err)
	}
}

// checkRemoval takes the model out, beside the edit of another member, and
// compares what is left.
func checkRemoval(t failer, fields *Fields, body []byte, beside Edit) {
	t.Helper()
	left := Splice(nil, body, fields.Remove("model"), beside)
	before, err := readTop(body)
	after, leftErr := readTop(left)
	if err != nil || leftErr != nil {
		t.Fatalf("%q without its model is %q: %v, %v", body, left, err, leftErr)
	}
	delete(before.values, "model")
	for name, value := range before.values {
		if name != "stream_options" && after.values[name] != value {
			t.Fatalf("%q without its model is %q: %s = %s", body, left, name, after.values[name])
		}
	}
	if _, has := after.values["model"]; has || len(after.names) > len(before.names)+1 {
		t.Fatalf("%q without its model is %q", body, left)
	}
}

// jsonText draws JSON text with odd white space, escapes and names.
func jsonText(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		most := 3
		if depth <= 0 {
			most = 1
		}
		switch rapid.IntRange(0, most).Draw(t, "type") {
		case 0:
			return rapid.SampledFrom([]string{"true", "false", "null", "0", "-1.5E+3", "12345678901234567890", "1e999"}).Draw(t, "scalar")
		case 1:
			return jsonString.Draw(t, "string")
		case 2:
			elements := rapid.SliceOfN(jsonText(depth-1), 0, 4).Draw(t, "elements")
			return "[" + strings.Join(elements, blank.Draw(t, "gap")+",") + blank.Draw(t, "end") + "]"
		default:
			return jsonObject(depth).Draw(t, "object")
		}
	})
}

// jsonObject draws an object, often with the names that matter.
func jsonObject(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			name := rapid.OneOf(telling, jsonString).Draw(t, "name")
			members = append(members, blank.Draw(t, "a")+name+blank.Draw(t, "b")+":"+blank.Draw(t, "c")+jsonText(depth-1).Draw(t, "value"))
		}
		return "{" + strings.Join(members, blank.Draw(t, "d")+",") + blank.Draw(t, "e") + "}"
	})
}

var (
	blank   = rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n  "})
	telling = rapid.SampledFrom([]string{`"model"`, `"model"`, `"mod\u0065l"`, `"Model"`, `"stream"`, "\"\u017ftream\"", `"stream_options"`,
		`"include_usage"`, `"Include_usage"`, `"x"`, `"y"`, `"model\u0000"`, `""`})
	jsonString = rapid.Custom(func(t *rapid.T) string {
		pieces := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{`\"`, `\\`, `\/`, `\n`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, "é", "漢字", "😀", "[", "}", ",", "\x7f"}),
			rapid.StringMatching(`[a-zA-Z0-9 !#:;-]{0,40}`),
		), 0, 6).Draw(t, "pieces")
		return `"` + strings.Join(pieces, "") + `"`
	})
)

func TestScanAgreesWithOtherParsers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(jsonObject(4).Draw(t, "body"))
		switch rapid.IntRange(0, 3).Draw(t, "damage") {
		case 1:
			body = body[:rapid.IntRange(0, len(body)).Draw(t, "cut")]
		case 2:
			at := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			body[at] = rapid.Byte().Draw(t, "byte")
		}
		checkScan(t, body)
	})
}

func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a/b","stream":true}`,
		` { "mo\u0064el" : "a\/b" , "stream" : true , "stream_options" : { } } `,
		`{"model":"a","mod\u0065l":"b"}`,
		`{"Model":"a"}`,
		"{\"\u017ftream\":true}",
		`{"model":["a",{"model":"b"}],"x":[[],{},-0.5e+10,1E400,null,"\ud83d\ude00\ud83d"]}`,
		`{"model":"a"}{}`,
		"\xef\xbb\xbf{}",
		`{"stream":true,"stream_options":{"include_usage":false,"x":1}}`,
		"{\"text\":\"0123456789012345678901234567890é\\\"\",\"model\":\"漢\"}",
		`{"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
		`{"model\u0000":1,"\ud800":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkScan(t, body) })
}
