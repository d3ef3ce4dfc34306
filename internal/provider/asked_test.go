package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAsked(t *testing.T) {
	t.Parallel()
	names := NewNames(AskedNames()...)
	for _, tt := range []struct {
		body string
		want Asked
	}{
		{`{}`, Asked{}},
		{`{"input":"héllo\n"}`, Asked{Characters: 6}},
		{`{"size":"1024x1024","quality":"hd","n":3}`, Asked{Size: "1024x1024", Quality: "hd", Count: 3}},
		{`{"seconds":"8","size":"1280x720"}`, Asked{Seconds: 8_000_000, Size: "1280x720"}},
		{`{"duration":5,"resolution":"720p"}`, Asked{Seconds: 5_000_000, Size: "720p"}},
		{`{"duration":"5s"}`, Asked{Seconds: 5_000_000}},
		{`{"duration":2.5}`, Asked{Seconds: 2_500_000}},
		{`{"seconds":null,"duration":4}`, Asked{Seconds: 4_000_000}},
		{`{"input":{"prompt":"x","duration":6},"parameters":{"size":"1280*720"}}`, Asked{Seconds: 6_000_000, Size: "1280*720"}},
		{`{"parameters":{"durationSeconds":8,"sampleCount":2}}`, Asked{Seconds: 8_000_000, Count: 2}},
		{`{"parameters":{"duration":8},"duration":3}`, Asked{Seconds: 8_000_000}},
		{`{"seconds":1,"duration":10,"n":1,"parameters":{"sampleCount":4,"n":3}}`, Asked{Seconds: 10_000_000, Count: 4}},
		{`{"size":"1K","resolution":"4K","parameters":{"size":"2K"}}`, Asked{Size: "1K"}},
		{`{"seconds":-1,"n":-1}`, Asked{}},
		{`{"seconds":1e300,"n":1.5}`, Asked{}},
		{`{"seconds":"NaN","n":"x"}`, Asked{}},
		{`{"seconds":[8],"size":{"w":1},"n":true}`, Asked{}},
	} {
		fields, err := Scan([]byte(tt.body), names)
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&Request{Fields: fields}).Asked()
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s asks (-want +got), %v\n%s", tt.body, err, diff)
		}
	}
	fields, err := Scan([]byte(`{"parameters":{"duration":1,"duration":60}}`), names)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := (&Request{Fields: fields}).Asked(); err == nil {
		t.Errorf("a duration given twice asks for %+v", a)
	}
}

func TestAskedByForm(t *testing.T) {
	t.Parallel()
	body := part("8", named("seconds")) + part("1280x720", named("size")) + part("héllo", named("input")) + closing
	form, err := ScanForm(formType, []byte(body), NewNames(AskedNames()...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&Request{Form: form}).Asked()
	want := Asked{Seconds: 8_000_000, Size: "1280x720", Characters: 5}
	if got != want || err != nil {
		t.Errorf("asks %+v, %v, want %+v", got, err, want)
	}
}
