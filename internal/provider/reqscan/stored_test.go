package reqscan

import (
	"fmt"
	"testing"
)

// storedIn is the reference that a body has.
func storedIn(t testing.TB, body string) (Reference, error) {
	t.Helper()
	fields, err := Scan([]byte(body), NewNames("model"))
	if err != nil {
		return Reference{}, err
	}
	return fields.Stored(true, []string{"fileid://"}), nil
}

func TestStored(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body string
		want Reference
	}{
		{`{}`, Reference{}},
		{`{"file_id":"f"}`, Reference{Name: "file_id"}},
		{`{"FILE_ID":"f"}`, Reference{Name: "FILE_ID"}},
		{`{"a":[{"file_ids":["f"]}]}`, Reference{Name: "file_ids"}},
		{`{"a":[{"file_ids":[[{"x":1}]]}]}`, Reference{Name: "file_ids"}},
		{`{"a":[{"file_id":{"x":1}}]}`, Reference{Name: "file_id"}},
		{`{"a":[{"file_ids":[],"file_id":null,"container":{"type":"auto"}}]}`, Reference{}},
		{`{"a":{"container":{"id":"c"}}}`, Reference{Name: "container"}},
		{`{"a":{"container":{"skills":[{"skill_id":"c"}]}}}`, Reference{Name: "skill_id"}},
		{`{"voice":{"id":"v"}}`, Reference{Name: "voice"}},
		{`{"voice":"alloy","messages":[{"audio":{"data":"x"},"id":"m"}]}`, Reference{}},
		{`{"a":{"parameters":{"file_id":"f"},"b":[1,{"metadata":{"container":"x"}}]}}`, Reference{}},
		{`{"a":{"parameters":{"x":1},"file_id":"f"}}`, Reference{Name: "file_id"}},
		{`{"a":[{"input":{"file_id":"f"},"type":"tool_use"}]}`, Reference{}},
		{`{"a":[{"type":"tool_use","input":{"a":{"input":{"file_id":"f"}}}}]}`, Reference{}},
		{`{"a":[{"type":"tool_use","input":{"x":1},"content":{"file_id":"f"}}]}`, Reference{Name: "file_id"}},
		{`{"a":[{"type":"tool_use","type":"text","input":{"file_id":"f"}}]}`, Reference{Name: "file_id"}},
		{`{"a":[{"type":"text","input":[{"file_id":"f"}]}]}`, Reference{Name: "file_id"}},
		{`{"type":"tool_use","input":{"file_id":"f"}}`, Reference{Name: "file_id"}},
		{`{"input":[{"type":"item_reference","id":"m"}]}`, Reference{Name: "item_reference", Item: true}},
		{`{"input":[{"id":"m","role":null}]}`, Reference{Name: "input[].id", Item: true}},
		{`{"input":[{"id":"m","role":"user","content":"x"},{"type":"image_generation_call","id":"i","result":"x"}]}`, Reference{}},
		{`{"input":[{"type":"image_generation_call","id":"i","result":null}]}`, Reference{Name: "input[].id", Item: true}},
		{`{"messages":[{"content":" FileID://x"}]}`, Reference{Name: "fileid://"}},
		{`{"messages":[{"content":"what is fileid://x"}]}`, Reference{}},
	} {
		got, err := storedIn(t, tt.body)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.body, got, err, tt.want)
		}
	}
	form, err := ScanForm(formType, []byte(part("f", named("input_reference[file_id]"))+closing), formNames())
	if err != nil || form.Stored().Name != "input_reference[file_id]" {
		t.Errorf("a form with a file's id: %+v, %v", form.Stored(), err)
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
			if got, err := storedIn(t, fmt.Sprintf(body, value)); err == nil && got == (Reference{}) {
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
		fields, err := Scan([]byte(`{"x":`+object+`}`), NewNames("x"))
		if err != nil {
			return
		}
		x, _ := fields.Get("x")
		picked, err := x.Pick(NewNames(names...))
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
