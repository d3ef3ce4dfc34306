package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/target"
)

// scanRequest scans the body for what the sources read.
func scanRequest(t *testing.T, body string, sources []ModelSource) Request {
	t.Helper()
	var names []string
	for _, source := range sources {
		names = append(names, source.BodyName())
	}
	fields, err := reqscan.Scan([]byte(body), reqscan.NewNames(names...))
	if err != nil {
		t.Fatalf("Scan(%s) = %v", body, err)
	}
	return Request{Fields: fields}
}

func TestModelsInBody(t *testing.T) {
	t.Parallel()
	chat := []ModelSource{BodyField("model"), BodyArray("models"), BodyArray("fallbacks")}
	batch := []ModelSource{BodyPath("requests[].params.model")}
	many, quoted := make([]string, maxModels+1), make([]string, maxModels+1)
	for i := range many {
		many[i], quoted[i] = fmt.Sprintf("m%d", i), fmt.Sprintf(`"m%d"`, i)
	}
	for _, tt := range []struct {
		sources []ModelSource
		body    string
		want    []string
		fail    string
	}{
		{chat, `{"model":"a"}`, []string{"a"}, ""},
		{chat, `{"model":"a\/b\u002d1"}`, []string{"a/b-1"}, ""},
		{chat, `{"models":["b","a","b"],"model":"a"}`, []string{"a", "b"}, ""},
		{chat, `{"model":"a","fallbacks":[{"model":"c","x":1},"d"],"models":["b"]}`, []string{"a", "b", "c", "d"}, ""},
		{chat, `{"model":"a","models":null,"fallbacks":[]}`, []string{"a"}, ""},
		{chat, `{"messages":[{"model":"x"}]}`, nil, ""},
		{chat, `{}`, nil, ""},
		{chat, `{"model":5}`, nil, "model must be a string"},
		{chat, `{"model":null}`, nil, "model must be a string"},
		{chat, `{"model":["a"]}`, nil, "model must be a string"},
		{chat, `{"model":{"id":"a"}}`, nil, "model must be a string"},
		{chat, `{"model":"\ud800"}`, nil, "model must be a string"},
		{chat, `{"model":""}`, nil, "model must not be empty"},
		{chat, `{"model":"a "}`, nil, "white space"},
		{chat, `{"model":"a\u0000"}`, nil, "white space or invisible"},
		{chat, `{"model":"a\u200b"}`, nil, "white space or invisible"},
		{chat, `{"models":"a"}`, nil, "models must be an array"},
		{chat, `{"models":{"model":"a"}}`, nil, "models must be an array"},
		{chat, `{"models":["a",7]}`, nil, "models[] must be a string"},
		{chat, `{"models":[["a"]]}`, nil, "models[] must be a string"},
		{chat, `{"fallbacks":[{"name":"a"}]}`, nil, "fallbacks[].model must be a string"},
		{chat, `{"fallbacks":[{"model":"a","model":"b"}]}`, nil, "duplicate member"},
		{chat, `{"fallbacks":[{"model":"a","Model":"b"}]}`, nil, "write it as"},
		{chat, `{"models":[` + strings.Join(quoted[:maxModels], ",") + `,"m0"]}`, many[:maxModels], ""},
		{chat, `{"models":[` + strings.Join(quoted, ",") + `]}`, nil, "more than 64 models"},
		{batch, `{"requests":[{"params":{"model":"a"}},{"params":{"x":1}},{"params":{"model":"b"}},{"params":{"model":"a"}}]}`, []string{"a", "b"}, ""},
		{batch, `{"requests":null}`, nil, ""},
		{batch, `{"requests":[{"params":null},{}]}`, nil, ""},
		{batch, `{"requests":{"params":{"model":"a"}}}`, nil, "requests must be an array"},
		{batch, `{"requests":["a"]}`, nil, "requests[] must be an object"},
		{batch, `{"requests":[{"params":{"model":1}}]}`, nil, "requests[].params.model must be a string"},
		{batch, `{"requests":[{"Params":{"model":"a"}}]}`, nil, "write it as"},
	} {
		request := scanRequest(t, tt.body, tt.sources)
		got, err := Models(tt.sources, &request)
		if tt.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("Models of %s = %q, %v, want an error with %q", tt.body, got, err, tt.fail)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("Models of %s: %v (-want +got):\n%s", tt.body, err, diff)
		}
	}
}

func TestModelsOutsideBody(t *testing.T) {
	t.Parallel()
	sources := []ModelSource{PathCapture("model"), PathCapture("owner", "name"), Query("model"), FormField("model")}
	form, err := reqscan.ScanForm(formKind, []byte(formPart("f/m", partName("model"))+formEnd), formParts())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		request Request
		want    []string
		fail    string
	}{
		{Request{}, nil, ""},
		{Request{Path: target.Captures{{Name: "model", Value: "p"}}}, []string{"p"}, ""},
		{Request{Path: target.Captures{{Name: "owner", Value: "o"}, {Name: "name", Value: "n"}}}, []string{"o/n"}, ""},
		{Request{Path: target.Captures{{Name: "owner", Value: "o"}}}, nil, ""},
		{Request{Path: target.Captures{{Name: "model", Value: "p "}}}, nil, "white space"},
		{Request{Path: target.Captures{{Name: "model", Value: "p"}}, Query: "x=1&model=q%2Fa", Form: form}, []string{"p", "q/a", "f/m"}, ""},
		{Request{Query: "x=1&y"}, nil, ""},
		{Request{Query: "mod%65l=q"}, []string{"q"}, ""},
		{Request{Query: "model="}, nil, "must not be empty"},
		{Request{Query: "model"}, nil, "must not be empty"},
		{Request{Query: "model=%ff"}, nil, "white space or invisible"},
		{Request{Query: "model=a&model=a"}, nil, "exactly once"},
		{Request{Query: "Model=a"}, nil, "exactly once"},
		{Request{Query: "model[]=a"}, nil, "exactly once"},
		{Request{Query: "x=1;model=a"}, nil, "malformed parameter"},
		{Request{Query: "100%&model=a%"}, nil, "malformed parameter"},
		{Request{Query: "model=%2"}, nil, "malformed parameter"},
	} {
		got, err := Models(sources, &tt.request)
		if tt.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("Models of %+v = %q, %v, want an error with %q", tt.request, got, err, tt.fail)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("Models of %+v: %v (-want +got):\n%s", tt.request, err, diff)
		}
	}
	if got, err := Models([]ModelSource{{}, PathCapture()}, &Request{}); len(got) != 0 || err != nil {
		t.Errorf("Models of empty sources = %q, %v, want none", got, err)
	}
}

func TestBodyName(t *testing.T) {
	t.Parallel()
	for want, sources := range map[string][]ModelSource{
		"":         {PathCapture("model"), Query("model"), {}},
		"model":    {BodyField("model"), FormField("model"), BodyPath("model.id")},
		"models":   {BodyArray("models")},
		"requests": {BodyPath("requests[].params.model")},
	} {
		for _, source := range sources {
			if got := source.BodyName(); got != want {
				t.Errorf("BodyName of %+v = %q, want %q", source, got, want)
			}
		}
	}
}

// TestRequestStored finds references in bodies of both kinds.
func TestRequestStored(t *testing.T) {
	t.Parallel()
	var r Request
	if got := r.Stored(true, []string{"fileid://"}); got != (reqscan.Reference{}) {
		t.Errorf("nothing refers to %+v", got)
	}
	var err error
	if r.Fields, err = reqscan.Scan([]byte(`{"model":"fileid://x","a":{"file_id":"f"}}`), reqscan.NewNames("model")); err != nil {
		t.Fatal(err)
	}
	if got := r.Stored(false, nil); got.Name != "file_id" {
		t.Errorf("JSON: %+v", got)
	}
	if got := r.Stored(false, []string{"fileid://"}); got.Name != "fileid://" {
		t.Errorf("JSON with an address: %+v", got)
	}
	r = Request{}
	if r.Form, err = reqscan.ScanForm(formKind, []byte(formPart("f", partName("input_reference[file_id]"))+formEnd), formParts()); err != nil {
		t.Fatal(err)
	}
	if got := r.Stored(false, nil); got.Name != "input_reference[file_id]" {
		t.Errorf("a form: %+v", got)
	}
}
