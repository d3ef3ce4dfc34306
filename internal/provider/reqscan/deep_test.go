package reqscan

import (
	"fmt"
	"strings"
	"testing"
)

func TestDeep(t *testing.T) {
	t.Parallel()
	names := []string{"s3location", "s3uri", "fileuri=gs://"}
	for body, want := range map[string]string{
		`{}`:                                    "",
		`{"s3Location":null}`:                   "",
		`{"s3Location":{"uri":"s3://b/k"}}`:     "s3Location",
		`{"a":[{"b":{"s3_uri" : "x"}}]}`:        "s3_uri",
		`{"s3\u0033Location":1,"S3URI":2}`:      "S3URI",
		`{"s\u0033Location":1}`:                 "s3Location",
		`{"a":"s3Location","b":["s3Uri"]}`:      "",
		`{"a":"\"s3Location\":1"}`:              "",
		`{"s3Locations":1}`:                     "",
		`{"fileUri":"https://x/y"}`:             "",
		`{"file_uri":" GS://b/k"}`:              "file_uri",
		`{"fileUri":"\u0067s://b"}`:             "fileUri",
		`{"fileUri":["gs://b"]}`:                "",
		`{"response":{"fileUri":"gs://b"}}`:     "fileUri",
		`{"args":{"s3Uri":""}}`:                 "s3Uri",
		`{"` + strings.Repeat("x", 99) + `":1}`: "",
	} {
		fields, err := Scan([]byte(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fields.Deep(names); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
		if got := fields.Deep(nil); got != "" {
			t.Errorf("%s: %q without names", body, got)
		}
	}
	for _, depth := range []int{1, 2, 60, MaxDepth - 1} {
		body := strings.Repeat(`{"a":[`, (depth-1)/2) + `{"s3Uri":1}` + strings.Repeat(`]}`, (depth-1)/2)
		fields, err := Scan([]byte(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fields.Deep(names); got != "s3Uri" {
			t.Errorf("depth %d: %q", depth, got)
		}
	}
}

// FuzzDeep holds the search against a member that stands among other JSON.
func FuzzDeep(f *testing.F) {
	for _, seed := range []string{`1`, `{"a":[]}`, `"\""`, `"s3Uri"`, `[{"x":"\\"}]`, `{"s3uri":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, body := range []string{`{"a":%s,"s3Uri":1}`, `{"a":[%s,{"s3\u0055ri":1}]}`, `{"b":{"s3_uri":{"a":%s}}}`} {
			fields, err := Scan(fmt.Appendf(nil, body, value), nil)
			if err == nil && fields.Deep([]string{"s3uri"}) == "" {
				t.Errorf("%s hides a member in %s", value, body)
			}
		}
	})
}
