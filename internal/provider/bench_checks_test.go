package provider

import (
	"net/http"
	"strings"
	"testing"

	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/target"
)

// BenchmarkChecks is what the judgement of one request costs before it
// leaves: the raw target, its route, the scan of a body of 1 KiB and the
// headers of an outbound request.
func BenchmarkChecks(b *testing.B) {
	p, err := New(Config{Name: "openai", Format: "openai", BaseURL: "https://api.example.com", Credentials: []string{"secret"}})
	if err != nil {
		b.Fatal(err)
	}
	const uri = "/openai/v1/chat/completions"
	const path = "/v1/chat/completions"
	body := []byte(`{"model":"gpt-5-mini","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 190) + `"}]}`)
	names := reqscan.NewNames(append(p.BodyNames(), "model", "stream", "stream_options")...)
	header := http.Header{"Authorization": {"Bearer x"}, "Content-Type": {"application/json"}, "User-Agent": {"OpenAI/Python 2.1.0"}, "Accept": {"application/json"},
		"X-Stainless-Lang": {"python"}, "X-Stainless-Os": {"Linux"}, "X-Stainless-Arch": {"x64"}, "X-Stainless-Runtime": {"CPython"}, "Connection": {"keep-alive"}, "Accept-Encoding": {"gzip"}}
	b.Run("target", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if target.Judge(uri) != nil {
				b.Fatal("refused")
			}
		}
	})
	b.Run("route", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r, _ := p.Route("POST", path); r == nil {
				b.Fatal("no route")
			}
		}
	})
	b.Run("body", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := reqscan.Scan(body, names); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("headers", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Outbound(b.Context(), Call{Method: "POST", Path: path, Header: header, Body: body}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestChecksAllocateNothing: what judges a target, its route and its body takes
// no memory, however many calls there are.
func TestChecksAllocateNothing(t *testing.T) {
	p, err := New(Config{Name: "openai", Format: "openai", BaseURL: "https://api.example.com", Credentials: []string{"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	names := reqscan.NewNames(append(p.BodyNames(), "model", "stream", "stream_options")...)
	body := []byte(`{"model":"gpt-5-mini","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 190) + `"}]}`)
	for name, check := range map[string]func(){
		"target": func() {
			if target.Judge("/openai/v1/chat/completions") != nil {
				t.Fatal("refused")
			}
		},
		"route": func() {
			if r, _ := p.Route("POST", "/v1/chat/completions"); r == nil {
				t.Fatal("no route")
			}
		},
		"body": func() {
			if _, err := reqscan.Scan(body, names); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if n := testing.AllocsPerRun(100, check); n != 0 {
			t.Errorf("the check of the %s allocates %v times", name, n)
		}
	}
}
