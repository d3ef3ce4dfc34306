package reqscan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScanAccepts(t *testing.T) {
	t.Parallel()
	names := doorNames()
	deep := strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)
	mixed := strings.Repeat(`{"a":[`, 200) + "1" + strings.Repeat(`]}`, 200)
	for _, tt := range []struct{ body, model string }{
		{`{"model":"a/b"}`, `"a/b"`},
		{" \t\r\n{ \"model\" :\t\"a/b\" \n} \n", `"a/b"`},
		{`{"messages":[{"model":"inner"}],"x":{"model":1},"model":"outer"}`, `"outer"`},
		{`{"mo\u0064el":"a"}`, `"a"`},
		{`{"\u006d\u006F\u0064\u0065\u006c":"a"}`, `"a"`},
		{`{"model":  {"a":[1,-0.5e+10,0,1E400,true,false,null,""]} ,"n":1}`, `{"a":[1,-0.5e+10,0,1E400,true,false,null,""]}`},
		{`{"text":"` + strings.Repeat("é漢😀", 40) + `","model":"ü"}`, `"ü"`},
		{`{"text":"` + strings.Repeat("x", 61) + `\\","model":"m"}`, `"m"`},
		{`{"text":"half \ud83d pair","model":"m"}`, `"m"`},
		{`{"x":` + deep + `,"model":"m"}`, `"m"`},
		{`{"x":` + mixed + `,"model":"m"}`, `"m"`},
		{`{"modell":1,"mode":2,"model_id":3,"model":"m"}`, `"m"`},
		{`{"":1,"model":"m"}`, `"m"`},
		{`{}`, ``},
		{` { } `, ``},
		{`{"x":[],"y":{},"z":[[],{}]}`, ``},
	} {
		fields, err := Scan([]byte(tt.body), names)
		if err != nil {
			t.Errorf("Scan(%.80s) = %v, want no error", tt.body, err)
			continue
		}
		model, ok := fields.Get("model")
		if got := string(model.Raw()); got != tt.model || ok != (tt.model != "") {
			t.Errorf("Scan(%.80s): model = %s, %v, want %s", tt.body, got, ok, tt.model)
		}
	}
}

func TestScanRefuses(t *testing.T) {
	t.Parallel()
	names := doorNames()
	many := `{"a0":0`
	for i := range MaxMembers {
		many += `,"m` + strings.Repeat("x", i+1) + `":0`
	}
	for _, tt := range []struct{ body, want string }{
		{``, "empty"},
		{"  \n", "empty"},
		{`[]`, `must be a JSON object: found "["`},
		{`"model"`, "must be a JSON object"},
		{"\xef\xbb\xbf{}", "byte order mark"},
		{`{"model":"a","model":"b"}`, `duplicate member "model" at byte 14`},
		{`{"model":"a","mo\u0064el":"b"}`, `duplicate member "model"`},
		{`{"x":1,"y":2,"\u0078":3}`, `duplicate member "x"`},
		{`{"Model":"a"}`, `member "Model" at byte 2: write it as "model"`},
		{`{"model":"a","MODEL":"b"}`, `write it as "model"`},
		{`{"` + "\u017f" + `tream":true}`, `write it as "stream"`},
		{`{"\u017ftream":true}`, `write it as "stream"`},
		{`{"fallbac` + "\u212a" + `s":[]}`, `write it as "fallbacks"`},
		{`{"\u004dodel":"a"}`, `write it as "model"`},
		{`{"model\u0000":"a"}`, "U+0000"},
		{`{"model\ud800":"a"}`, "surrogate"},
		{`{"model":"a"}{}`, `found "{" after the object at byte 13`},
		{`{"model":"a"}x`, "after the object"},
		{`{"model":"a"},`, "after the object"},
		{`{"model":"a"`, "it ends where , or } was expected"},
		{`{"model":"a",}`, "member name in double quotes"},
		{`{"model":}`, "a value"},
		{`{"model"}`, "a colon"},
		{`{"model" "a"}`, "a colon"},
		{`{model:"a"}`, "member name in double quotes"},
		{`{'model':'a'}`, "member name in double quotes"},
		{`{"x":[1,]}`, "a value"},
		{`{"x":[}`, "a value"},
		{`{"x":{"a":}}`, "a value"},
		{`{"x":{"a":1,}}`, "member name in double quotes"},
		{`{"x":[1}`, ", or ]"},
		{`{"x":{"a":1]`, ", or }"},
		{`{"x":[`, "it ends where a value"},
		{`{"x":{`, "it ends where a member name"},
		{`{"x":NaN}`, "a value"},
		{`{"x":+1}`, "a value"},
		{`{"x":01}`, `found "1" where , or }`},
		{`{"x":-}`, "a digit"},
		{`{"x":1.}`, "a digit"},
		{`{"x":1e}`, "a digit"},
		{`{"x":.5}`, "a value"},
		{`{"x":tru}`, "a value"},
		{`{"x":nulL}`, "a value"},
		{`{"x":/**/1}`, "a value"},
		{`{"x":1} // note`, "after the object"},
		{`{"x":"\x"}`, "illegal escape"},
		{`{"x":"\u12g4"}`, "illegal escape"},
		{`{"x":"\`, "illegal escape"},
		{"{\"x\":\"a\tb\"}", "control byte 0x09"},
		{"{\"x\":\"" + strings.Repeat("y", 45) + "\n\"}", "control byte 0x0a"},
		{"{\"x\":\"a\xff\"}", "not UTF-8 at byte 7"},
		{"{\"x\":\"\xed\xa0\x80\"}", "not UTF-8"},
		{"{\"x\":\"\xc0\xaf\"}", "not UTF-8"},
		{"{\"x\":\u00a01}", "a value"},
		{"{\x00}", "member name"},
		{`{"x":"abc`, "a string is not closed"},
		{`{"x":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}`, "nested deeper than 512"},
		{many + `}`, "more than 1024 members"},
	} {
		_, err := Scan([]byte(tt.body), names)
		if syntax, ok := errors.AsType[*SyntaxError](err); !ok || !strings.Contains(syntax.Message, tt.want) {
			t.Errorf("Scan(%.80q) = %v, want an error with %q", tt.body, err, tt.want)
		}
	}
}

func TestScanFindsEveryStringEnd(t *testing.T) {
	t.Parallel()
	names := NewNames("model")
	for length := range 100 {
		for _, filler := range []string{"a", "é", `\n`, "!", "#", "[", "]", "\x7f"} {
			text := strings.Repeat(filler, length)
			body := `{"x":"` + text + `","model":"` + text + `m"}`
			fields, err := Scan([]byte(body), names)
			if err != nil {
				t.Fatalf("Scan(%q) = %v, want no error", body, err)
			}
			model, _ := fields.Get("model")
			if got, want := string(model.Raw()), `"`+text+`m"`; got != want {
				t.Fatalf("Scan(%q): model = %s, want %s", body, got, want)
			}
			for _, bad := range []string{"\x00", "\x1f", "\n"} {
				broken := `{"x":"` + text + bad + strings.Repeat("a", 40) + `"}`
				if _, err := Scan([]byte(broken), names); err == nil {
					t.Fatalf("Scan(%q) = nil, want an error", broken)
				}
			}
		}
	}
}

func TestScanKeepsManyWantedMembers(t *testing.T) {
	t.Parallel()
	var wanted, parts []string
	for i := range 40 {
		name := strings.Repeat("k", i+1)
		wanted = append(wanted, name)
		parts = append(parts, `"`+name+`":`+strings.Repeat("1", i+1))
	}
	fields, err := Scan([]byte("{"+strings.Join(parts, ",")+"}"), NewNames(wanted...))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range wanted {
		value, ok := fields.Get(name)
		if got, want := string(value.Raw()), strings.Repeat("1", i+1); !ok || got != want {
			t.Errorf("Get(%q) = %s, %v, want %s", name, got, ok, want)
		}
	}
	if fields.Has("other") {
		t.Error("Has(other) = true for a name that was not scanned")
	}
	var all []string
	for name, value := range fields.All() {
		if all = append(all, name); len(value.Raw()) != len(name) {
			t.Errorf("All has %s for %q", value.Raw(), name)
		}
	}
	if !slices.Equal(all, wanted) {
		t.Errorf("All has %q, want %q", all, wanted)
	}
	for name := range fields.All() {
		if name != wanted[0] {
			t.Errorf("All goes on with %q", name)
		}
		break
	}
}

func TestScanWithoutNames(t *testing.T) {
	t.Parallel()
	fields, err := Scan([]byte(`{"Model":1,"model":2}`), nil)
	if err != nil {
		t.Fatalf("Scan without names = %v, want no error", err)
	}
	if fields.Has("model") || fields.Scanned("model") {
		t.Error("a scan without names reports a member")
	}
	var zero Fields
	if zero.Has("model") || zero.Scanned("model") {
		t.Error("the zero Fields report a member")
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	names, body := doorNames(), chatBody(4000, 500, "last")
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := Scan(body, names); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("Scan allocates %v times, want 0", allocs)
	}
}

// valueOf scans {"v": text} and returns the value of v.
func valueOf(t *testing.T, text string) Value {
	t.Helper()
	fields, err := Scan([]byte(`{"a":0, "v": `+text+` ,"z":[]}`), NewNames("v"))
	if err != nil {
		t.Fatalf("Scan with v = %s: %v", text, err)
	}
	value, _ := fields.Get("v")
	return value
}

func TestValueText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, want string
		ok         bool
	}{
		{`"plain"`, "plain", true},
		{`""`, "", true},
		{`"a\"\\\/\b\f\n\r\tz"`, "a\"\\/\b\f\n\r\tz", true},
		{`"\u00e9\u6F22\ud83d\uDE00\ufffd"`, "é漢😀\ufffd", true},
		{`"\u0000"`, "\x00", true},
		{`"\ud83d"`, "\ufffd", false},
		{`"\ude00\ud83d"`, "\ufffd\ufffd", false},
		{`"\ud83dx"`, "\ufffdx", false},
		{`"\ud83d\n"`, "\ufffd\n", false},
		{`12`, "", false},
		{`null`, "", false},
		{`["a"]`, "", false},
	} {
		if got, ok := valueOf(t, tt.text).Text(); got != tt.want || ok != tt.ok {
			t.Errorf("Text of %s = %q, %v, want %q, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestValueInt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want int64
		ok   bool
	}{
		{`0`, 0, true}, {`-7`, -7, true}, {`4.0`, 4, true}, {`1e3`, 1000, true}, {`"8"`, 8, true}, {`"8.0"`, 8, true},
		{`9007199254740992`, 1 << 53, true}, {`9007199254740993`, 0, false}, {`1e400`, 0, false}, {`0.5`, 0, false},
		{`""`, 0, false}, {`" 8"`, 0, false}, {`"0x10"`, 0, false}, {`"+4"`, 0, false}, {`"1_0"`, 0, false}, {`"Inf"`, 0, false},
		{`true`, 0, false}, {`null`, 0, false}, {`[1]`, 0, false}, {`1` + strings.Repeat("0", 70), 0, false},
	} {
		got, ok := valueOf(t, tt.text).Int()
		if ok != tt.ok || (ok && got != tt.want) {
			t.Errorf("Int of %s = %d, %v, want %d, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestValueKind(t *testing.T) {
	t.Parallel()
	kinds := map[string]ValueKind{
		`"s"`: JSONString, `{}`: JSONObject, `[]`: JSONArray, `true`: JSONBool, `false`: JSONBool, `null`: JSONNull,
		`-1`: JSONNumber, `0`: JSONNumber, `9.5`: JSONNumber,
	}
	for text, want := range kinds {
		value := valueOf(t, text)
		if got := value.Kind(); got != want {
			t.Errorf("Kind of %s = %s, want %s", text, got, want)
		}
		if value.IsTrue() != (text == "true") || value.IsFalse() != (text == "false") {
			t.Errorf("IsTrue, IsFalse of %s = %v, %v", text, value.IsTrue(), value.IsFalse())
		}
	}
	if got := (Value{}).Kind(); got != JSONAbsent {
		t.Errorf("Kind of the zero Value = %q, want none", got)
	}
}

func TestValueMember(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want, fail string }{
		{`{"model":"m"}`, `"m"`, ""},
		{`{ "a" : {"model":1} , "mo\u0064el" : [ 2 ] }`, `[ 2 ]`, ""},
		{`{}`, "", ""},
		{` {  } `, "", ""},
		{`{"x":1,"x":2}`, "", ""},
		{`"model"`, "", ""},
		{`{"model":1,"model":2}`, "", `duplicate member "model"`},
		{`{"model":1,"Model":2}`, "", `write it as "model"`},
		{`{"\u004dODEL":2}`, "", `write it as "model"`},
	} {
		got, err := valueOf(t, tt.text).Member("model")
		if tt.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("Member of %s = %v, want an error with %q", tt.text, err, tt.fail)
			}
			continue
		}
		if err != nil || string(got.Raw()) != tt.want {
			t.Errorf("Member of %s = %s, %v, want %s", tt.text, got.Raw(), err, tt.want)
		}
	}
}

func TestValueElements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`[]`:                        nil,
		`[ ]`:                       nil,
		`{"a":1}`:                   nil,
		`[1]`:                       {"1"},
		`[ "a]" , [ ] ,{"b":[1]} ]`: {`"a]"`, `[ ]`, `{"b":[1]}`},
	} {
		var got []string
		for element := range valueOf(t, text).Elements() {
			got = append(got, string(element.Raw()))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Elements of %s (-want +got):\n%s", text, diff)
		}
	}
}
