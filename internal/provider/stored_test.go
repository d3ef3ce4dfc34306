package provider

import (
	"fmt"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/provider/reqscan"
)

// storedIn is the reference that a body has.
func storedIn(t testing.TB, body string) (reqscan.Reference, error) {
	t.Helper()
	fields, err := reqscan.Scan([]byte(body), reqscan.NewNames("model"))
	if err != nil {
		return reqscan.Reference{}, err
	}
	r := Request{Fields: fields}
	return r.Stored(true, []string{"fileid://"}), nil
}

func TestStored(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body string
		want reqscan.Reference
	}{
		{`{}`, reqscan.Reference{}},
		{`{"file_id":"f"}`, reqscan.Reference{Name: "file_id"}},
		{`{"FILE_ID":"f"}`, reqscan.Reference{Name: "FILE_ID"}},
		{`{"a":[{"file_ids":["f"]}]}`, reqscan.Reference{Name: "file_ids"}},
		{`{"a":[{"file_ids":[[{"x":1}]]}]}`, reqscan.Reference{Name: "file_ids"}},
		{`{"a":[{"file_id":{"x":1}}]}`, reqscan.Reference{Name: "file_id"}},
		{`{"a":[{"file_ids":[],"file_id":null,"container":{"type":"auto"}}]}`, reqscan.Reference{}},
		{`{"a":{"container":{"id":"c"}}}`, reqscan.Reference{Name: "container"}},
		{`{"a":{"container":{"skills":[{"skill_id":"c"}]}}}`, reqscan.Reference{Name: "skill_id"}},
		{`{"voice":{"id":"v"}}`, reqscan.Reference{Name: "voice"}},
		{`{"voice":"alloy","messages":[{"audio":{"data":"x"},"id":"m"}]}`, reqscan.Reference{}},
		{`{"a":{"parameters":{"file_id":"f"},"b":[1,{"metadata":{"container":"x"}}]}}`, reqscan.Reference{}},
		{`{"a":{"parameters":{"x":1},"file_id":"f"}}`, reqscan.Reference{Name: "file_id"}},
		{`{"a":[{"input":{"file_id":"f"},"type":"tool_use"}]}`, reqscan.Reference{}},
		{`{"a":[{"type":"tool_use","input":{"a":{"input":{"file_id":"f"}}}}]}`, reqscan.Reference{}},
		{`{"a":[{"type":"tool_use","input":{"x":1},"content":{"file_id":"f"}}]}`, reqscan.Reference{Name: "file_id"}},
		{`{"a":[{"type":"tool_use","type":"text","input":{"file_id":"f"}}]}`, reqscan.Reference{Name: "file_id"}},
		{`{"a":[{"type":"text","input":[{"file_id":"f"}]}]}`, reqscan.Reference{Name: "file_id"}},
		{`{"type":"tool_use","input":{"file_id":"f"}}`, reqscan.Reference{Name: "file_id"}},
		{`{"input":[{"type":"item_reference","id":"m"}]}`, reqscan.Reference{Name: "item_reference", Item: true}},
		{`{"input":[{"id":"m","role":null}]}`, reqscan.Reference{Name: "input[].id", Item: true}},
		{`{"input":[{"id":"m","role":"user","content":"x"},{"type":"image_generation_call","id":"i","result":"x"}]}`, reqscan.Reference{}},
		{`{"input":[{"type":"image_generation_call","id":"i","result":null}]}`, reqscan.Reference{Name: "input[].id", Item: true}},
		{`{"messages":[{"content":" FileID://x"}]}`, reqscan.Reference{Name: "fileid://"}},
		{`{"messages":[{"content":"what is fileid://x"}]}`, reqscan.Reference{}},
	} {
		got, err := storedIn(t, tt.body)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.body, got, err, tt.want)
		}
	}
	r := Request{}
	form, err := reqscan.ScanForm(formKind, []byte(formPart("f", partName("input_reference[file_id]"))+formEnd), formParts())
	if r.Form = form; err != nil || r.Stored(false, nil).Name != "input_reference[file_id]" {
		t.Errorf("a form with a file's id: %+v, %v", r.Stored(false, nil), err)
	}
}

// FuzzStored puts what it makes up beside a reference, which must be found all
// the same.
func FuzzStored(f *testing.F) {
	for _, seed := range []string{`1`, `"x"`, `[]`, `{"input":{"type":"tool_use"}}`, `{"type":"tool_use","input":[{}]}`, `{"parameters":{"a":[}`, `{"role":"user","type":null}`, `[[[{"id":"x"}]]]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, body := range []string{
			`{"messages":[%s,{"file_id":"f"}]}`, `{"messages":[{"file_id":"f"},%s]}`, `{"a":{"b":%s,"file_id":"f"}}`, `{"input":[%s,{"type":"item_reference","id":"x"}]}`,
			`{"input":[{"id":"x"},%s]}`, `{"a":[{"type":"tool_use","input":%s},{"container":"x"}]}`, `{"a":[{"type":"text","input":[%s,{"container":"x"}]}]}`,
		} {
			if got, err := storedIn(t, fmt.Sprintf(body, value)); err == nil && got == (reqscan.Reference{}) {
				t.Errorf("%s hides a reference in %s", value, body)
			}
		}
	})
}

// FuzzPick holds one pass over an object against a look-up of each name.
func FuzzPick(f *testing.F) {
	for _, seed := range []string{`{}`, `{"n":1}`, `{"n":1,"n":2}`, `{"N":1}`, `{"a":{"n":1},"n":[2]}`, `{"\u006e":3,"size":"x"}`, `{"ſize":1}`} {
		f.Add(seed)
	}
	names := []string{"n", "size", "seconds"}
	f.Fuzz(func(t *testing.T, object string) {
		fields, err := reqscan.Scan([]byte(`{"x":`+object+`}`), reqscan.NewNames("x"))
		if err != nil {
			return
		}
		x, _ := fields.Get("x")
		picked, err := x.Pick(reqscan.NewNames(names...))
		var fault error
		for _, name := range names {
			value, err := x.Member(name)
			if fault == nil {
				fault = err
			}
			if got, _ := picked.Get(name); err == nil && fault == nil && got.Span != value.Span {
				t.Errorf("%s: %s is at %v, want %v", object, name, got.Span, value.Span)
			}
		}
		if (err != nil) != (fault != nil) {
			t.Errorf("%s: Pick = %v, Member = %v", object, err, fault)
		}
	})
}

// BenchmarkCrowdedObjects reads bodies of the same size: one text, and a
// million members in objects that are looked into.
func BenchmarkCrowdedObjects(b *testing.B) {
	crowd := strings.Repeat(`"a":1,`, 1_000_000) + `"b":1`
	names := reqscan.NewNames(append(OrderNames(), "model")...)
	for name, body := range map[string]string{
		"plain":      `{"model":"m","input":"` + strings.Repeat("x", len(crowd)) + `"}`,
		"members":    `{"model":"m","other":{` + crowd + `}}`,
		"parameters": `{"model":"m","parameters":{` + crowd + `}}`,
		"input":      `{"model":"m","input":{` + crowd + `}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				fields, err := reqscan.Scan([]byte(body), names)
				if err != nil {
					b.Fatal(err)
				}
				r := Request{Fields: fields}
				if _, err := dashScopeFilms.read(&r, modelgate.Video); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
