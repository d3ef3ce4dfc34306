package reqscan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpliceModelKeepsEveryOtherByte(t *testing.T) {
	t.Parallel()
	names := doorNames()
	for _, tt := range []struct{ body, want string }{
		{`{"model":"a/b"}`, `{"model":"NEW"}`},
		{"\n{\t\"model\"  :\r\n \"a/b\"\t,\"n\" : 1 }\n\n", "\n{\t\"model\"  :\r\n \"NEW\"\t,\"n\" : 1 }\n\n"},
		{`{"mo\u0064el":"a\/b","x":"\u00e9"}`, `{"mo\u0064el":"NEW","x":"\u00e9"}`},
		{`{"metadata":{"model":"keep"},"model":"a/b","tools":[{"model":"keep"}]}`,
			`{"metadata":{"model":"keep"},"model":"NEW","tools":[{"model":"keep"}]}`},
		{`{"seed":123456789012345678901234567890,"t":1.0e-400,"model":"a/b","new_field":[null ,{}]}`,
			`{"seed":123456789012345678901234567890,"t":1.0e-400,"model":"NEW","new_field":[null ,{}]}`},
		{`{"x":"\"model\":\"a\"","model":"a/b"}`, `{"x":"\"model\":\"a\"","model":"NEW"}`},
	} {
		fields, err := Scan([]byte(tt.body), names)
		if err != nil {
			t.Fatalf("Scan(%s) = %v", tt.body, err)
		}
		model, _ := fields.Get("model")
		got := Splice([]byte("kept:"), []byte(tt.body), Edit{model.Span, ModelValue("NEW")})
		if string(got) != "kept:"+tt.want {
			t.Errorf("Splice(%s) = %s, want %s", tt.body, got, tt.want)
		}
	}
}

func TestSpliceOrdersEdits(t *testing.T) {
	t.Parallel()
	body := []byte("0123456789")
	edits := []Edit{
		{Span{7, 9}, []byte("X")},
		{Span{0, 0}, []byte("<")},
		{Span{0, 0}, []byte("<<")},
		{Span{2, 4}, nil},
		{Span{10, 10}, []byte(">")},
	}
	if got, want := string(Splice(nil, body, edits...)), "<<<01456X9>"; got != want {
		t.Errorf("Splice = %s, want %s", got, want)
	}
	if edits[0].Start != 7 {
		t.Error("Splice reordered the caller's edits")
	}
	if got := string(Splice(nil, body)); got != string(body) {
		t.Errorf("Splice without edits = %s, want %s", got, body)
	}
}

func TestModelValue(t *testing.T) {
	t.Parallel()
	for _, native := range []string{"", "gpt-5", "accounts/x/models/y:z@1", `quote " back \`, "é漢😀", "a\x00\n\u2028<b>&"} {
		var back string
		if err := json.Unmarshal(ModelValue(native), &back); err != nil || back != native {
			t.Errorf("ModelValue(%q) reads back as %q, %v", native, back, err)
		}
	}
}

func TestIncludeUsageRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"stream":"true"}`, `{"stream":1}`, `{"stream":true,"stream_options":"on"}`, `{"stream":true,"stream_options":[]}`} {
		fields, err := Scan([]byte(body), NewNames("stream", "stream_options"))
		if err != nil {
			t.Fatal(err)
		}
		if _, added, err := IncludeUsage(&fields); err == nil || added {
			t.Errorf("IncludeUsage(%s) = %v, %v, want an error", body, added, err)
		}
	}
}

func TestIncludeUsage(t *testing.T) {
	t.Parallel()
	names := doorNames()
	const added = `"include_usage":true`
	for _, tt := range []struct{ body, want string }{
		{`{"stream":true}`, `{"stream_options":{` + added + `},"stream":true}`},
		{"{\n  \"stream\" : true\n}", "{\"stream_options\":{" + added + "},\n  \"stream\" : true\n}"},
		{`{"stream":true,"stream_options":null}`, `{"stream":true,"stream_options":{` + added + `}}`},
		{`{"stream":true,"stream_options":{}}`, `{"stream":true,"stream_options":{` + added + `}}`},
		{`{"stream":true,"stream_options":{ }}`, `{"stream":true,"stream_options":{` + added + ` }}`},
		{`{"stream_options":{ "include_obfuscation":false},"stream":true}`,
			`{"stream_options":{` + added + `, "include_obfuscation":false},"stream":true}`},
		{`{"stream":true,"stream_options":{"x":{"include_usage":true}}}`,
			`{"stream":true,"stream_options":{` + added + `,"x":{"include_usage":true}}}`},
		{`{"stream":true,"stream_options":{"include_usage": false }}`, `{"stream":true,"stream_options":{"include_usage": true }}`},
		{`{"stream":true,"stream_options":{"include\u005fusage":null}}`, `{"stream":true,"stream_options":{"include\u005fusage":true}}`},
		{`{"stream":true,"stream_options":{"include_usage":true}}`, ""},
		{`{"stream":true,"stream_options":{"include_usage":"no"}}`, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{`{"stream":true,"stream_options":{"include_usage":0}}`, `{"stream":true,"stream_options":{"include_usage":true}}`},
		{`{"stream":false,"stream_options":{"include_usage":false}}`, ""},
		{`{"stream":null}`, ""},
		{`{}`, ""},
	} {
		fields, err := Scan([]byte(tt.body), names)
		if err != nil {
			t.Fatalf("Scan(%s) = %v", tt.body, err)
		}
		edit, ok, err := IncludeUsage(&fields)
		if err != nil || ok != (tt.want != "") {
			t.Errorf("IncludeUsage(%s) = %v, %v, want %v", tt.body, ok, err, tt.want != "")
			continue
		}
		if !ok {
			continue
		}
		got := Splice(nil, []byte(tt.body), edit)
		if string(got) != tt.want {
			t.Errorf("IncludeUsage(%s) makes %s, want %s", tt.body, got, tt.want)
		}
		if again, err := Scan(got, names); err != nil {
			t.Errorf("Scan(%s) = %v", got, err)
		} else if _, ok, _ := IncludeUsage(&again); ok {
			t.Errorf("IncludeUsage wants to edit its own result %s", got)
		}
	}
}

func TestIncludeUsageRefusesAmbiguousOptions(t *testing.T) {
	t.Parallel()
	for _, options := range []string{`{"include_usage":true,"include_usage":false}`, `{"Include_Usage":true}`} {
		fields, err := Scan([]byte(`{"stream":true,"stream_options":`+options+`}`), doorNames())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := IncludeUsage(&fields); err == nil {
			t.Errorf("IncludeUsage with %s = nil, want an error", options)
		}
	}
}

func TestIncludeUsageNeedsScannedOptions(t *testing.T) {
	t.Parallel()
	body := `{"stream":true,"stream_options":{}}`
	fields, err := Scan([]byte(body), NewNames("stream"))
	if err != nil {
		t.Fatal(err)
	}
	if edit, ok, err := IncludeUsage(&fields); ok || err != nil {
		t.Errorf("IncludeUsage = %q, %v, %v, want no edit of options nobody looked for", edit.Text, ok, err)
	}
}

func TestInsertIntoEmptyObject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{}`: `{"n":1}`, ` { } `: ` {"n":1 } `, `{"a":0}`: `{"n":1,"a":0}`} {
		fields, err := Scan([]byte(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := string(Splice(nil, []byte(body), fields.Insert(`"n":1`)))
		if got != want || !json.Valid([]byte(strings.TrimSpace(got))) {
			t.Errorf("Insert into %s = %s, want %s", body, got, want)
		}
	}
}

func TestRemoveKeepsEveryOtherByte(t *testing.T) {
	t.Parallel()
	names := doorNames()
	for _, tt := range []struct{ body, want string }{
		{`{"model":"a/b"}`, `{}`},
		{"{ \"model\" : \"a/b\"\n}", "{ \n}"},
		{`{"model":"a/b","n":1}`, `{"n":1}`},
		{`{ "model" : "a/b" , "n":1}`, `{ "n":1}`},
		{`{"n":1,"model":"a/b"}`, `{"n":1}`},
		{`{"n":1 , "model":"a/b" }`, `{"n":1  }`},
		{`{"n":1,"model":"a/b","size":"x"}`, `{"n":1,"size":"x"}`},
		{`{"mo\u0064el":"a,\"}b","input":{"model":"keep"}}`, `{"input":{"model":"keep"}}`},
		{`{"n":1}`, `{"n":1}`},
		{`{}`, `{}`},
	} {
		fields, err := Scan([]byte(tt.body), names)
		if err != nil {
			t.Fatalf("Scan(%s) = %v", tt.body, err)
		}
		got := Splice(nil, []byte(tt.body), fields.Remove("model"))
		if string(got) != tt.want || !json.Valid(got) {
			t.Errorf("%s without its model is %s, want %s", tt.body, got, tt.want)
		}
	}
}

// A member put in first and the first member taken out meet at one place.
func TestRemoveBesideInsert(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"model":"a/b","stream":true}`, `{ "model":"a/b", "stream":true}`, `{"stream":true,"model":"a/b"}`,
		`{"stream":true,"stream_options":null,"model":"a/b"}`, `{"model":"a/b","stream_options":{},"stream":true}`,
	} {
		fields, err := Scan([]byte(body), doorNames())
		if err != nil {
			t.Fatal(err)
		}
		ask, added, err := IncludeUsage(&fields)
		if err != nil || !added {
			t.Fatalf("IncludeUsage(%s) = %v, %v", body, added, err)
		}
		for _, edits := range [][]Edit{{fields.Remove("model"), ask}, {ask, fields.Remove("model")}} {
			var got map[string]any
			text := Splice(nil, []byte(body), edits...)
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			want := map[string]any{"stream": true, "stream_options": map[string]any{"include_usage": true}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", text, diff)
			}
		}
	}
}

func TestSpliceOwnedIsSplice(t *testing.T) {
	t.Parallel()
	const text = "0123456789"
	for start := range len(text) + 1 {
		for end := start; end <= len(text); end++ {
			for _, put := range []string{"", "x", "abc", "abcdefghijkl"} {
				for _, room := range []int{0, 1, 20} {
					body := append(make([]byte, 0, len(text)+room), text...)
					edit := Edit{Span{start, end}, []byte(put)}
					want := Splice(nil, []byte(text), edit)
					if got := SpliceOwned(body, edit); string(got) != string(want) {
						t.Errorf("SpliceOwned [%d,%d) by %q with %d to spare = %s, want %s", start, end, put, room, got, want)
					}
				}
			}
		}
	}
	body := []byte(text)
	if got := SpliceOwned(body, Edit{Span{0, 1}, []byte("a")}, Edit{Span{9, 10}, nil}); string(got) != "a12345678" || string(body) != text {
		t.Errorf("two edits = %s of %s", got, body)
	}
}

func TestAppendWithoutNull(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"x":null}`:            `{"a":1}`,
		`{"a":1 , "x" : null }`:       `{"a":1 }`,
		`{"a":1,"x":null,"b":2}`:      `{"a":1,"b":2}`,
		` { "x":null , "b":2} `:       ` { "b":2} `,
		`{"x":null}`:                  `{}`,
		`{"a":{"x":null},"x":0}`:      `{"a":{"x":null},"x":0}`,
		`{"a":"\"x\":null","y":null}`: `{"a":"\"x\":null","y":null}`,
		`{"a":[{"x":null}],"x":null}`: `{"a":[{"x":null}]}`,
		`{"a":1,"x":null`:             `{"a":1,"x":null`,
		`{"a" 1,"x":null}`:            `{"a" 1,"x":null}`,
		`{"a":1,"x":{}}`:              `{"a":1,"x":{}}`,
		`[{"x":null}]`:                `[{"x":null}]`,
		``:                            ``,
		`{`:                           `{`,
		`[DONE]`:                      `[DONE]`,
	} {
		if got := string(AppendWithoutNull([]byte("before "), []byte(text), "x")); got != "before "+want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}
