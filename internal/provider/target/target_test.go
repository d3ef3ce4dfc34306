package target

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudgeTarget(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		"/", "/v1/chat/completions", "/v1/files/", "/v1/models/gpt-5.6", "/v1/models/...", "/v1/a..b/.hidden/x.",
		"/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "/openai/v1/x?path=../..//%2e%2F%00\\&q=100%&s=a;b",
		"/v1/tags/a%20b/%C3%A9%3A", "/v1/a+b,c=d@e!f$g&h'(i)*j~k", "/x?", "/x?a=\u00e9", "/?//",
		"/" + strings.Repeat("a", MaxPath-1),
	} {
		if err := Judge(target); err != nil {
			t.Errorf("Judge(%.60q) = %v, want no error", target, err)
		}
	}
	for target, want := range map[string]string{
		"":                                   "begin with /",
		"*":                                  "begin with /",
		"v1/models":                          "begin with /",
		"http://evil.example/v1":             "begin with /",
		"api.example:443":                    "begin with /",
		"//evil.example/v1":                  "empty segment",
		"/v1//models":                        "empty segment",
		"/v1/models//":                       "empty segment",
		"/v1/../gw/keys":                     "dot segment",
		"/v1/./models":                       "dot segment",
		"/v1/..":                             "dot segment",
		"/.":                                 "dot segment",
		"/v1/..?x=1":                         "dot segment",
		"/v1/%2e%2e/gw":                      "escape %2e",
		"/v1/%2E./gw":                        "escape %2E",
		"/v1/a%2fb":                          "escape %2f",
		"/v1/a%2Fb":                          "escape %2F",
		"/v1/a%5cb":                          "escape %5c",
		"/v1/a%5Cb":                          "escape %5C",
		"/v1/a%00":                           "escape %00",
		"/v1/a%0d%0a":                        "escape %0d",
		"/v1/a%7F":                           "escape %7F",
		"/v1/%252e%252e/gw":                  "escape %25",
		"/v1/a%3bb":                          "escape %3b",
		"/v1/..;/gw":                         "byte 0x3b",
		"/v1/a\\b":                           "byte 0x5c",
		"/v1/é":                              "byte 0xc3",
		"/v1/a b":                            "byte 0x20",
		"/v1/a\tb":                           "byte 0x09",
		"/v1/a\x00":                          "byte 0x00",
		"/v1/a\x7f":                          "byte 0x7f",
		"/v1/a|b":                            "byte 0x7c",
		"/v1/a[b]":                           "byte 0x5b",
		"/v1/{x}":                            "byte 0x7b",
		"/v1/a\"b":                           "byte 0x22",
		"/v1/a#b":                            "byte 0x23",
		"/v1/a?b\r\nHost: x":                 "byte 0x0d",
		"/v1/a?b#c":                          "byte 0x23",
		"/v1/a%":                             "broken percent escape at byte 5",
		"/v1/a%2":                            "broken percent escape",
		"/v1/a%zz":                           "broken percent escape",
		"/v1/a%u002f":                        "broken percent escape",
		"/v1/%C0%AF":                         "not UTF-8",
		"/v1/%ff":                            "not UTF-8",
		"/" + strings.Repeat("a", MaxPath):   "longer than 8192",
		"/v1/models/openai%2fgpt-5/../..%2f": "escape %2f",
	} {
		if err := Judge(target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Judge(%.60q) = %v, want an error with %q", target, err, want)
		}
	}
}

func TestEscapedSlug(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/v1/models/acme%2Flarge-1":              "acme/large-1",
		"/v1/models/acme%2flarge-1?x=%2e":        "acme/large-1",
		"/v1/models/acme%2Fa.b_c%3Afree%40v1":    "acme/a.b_c:free@v1",
		"/v1/models/acme%2Faccounts%2Fm%2Fx-1":   "acme/accounts/m/x-1",
		"/v1/models/acme/large-1":                "",
		"/v1/models/large-1":                     "",
		"/v1/models/":                            "",
		"/v1/models/%2Flarge":                    "",
		"/v1/models/acme%2F":                     "",
		"/v1/models/acme%2F..":                   "",
		"/v1/models/acme%2Fm%2F..%2Fx":           "",
		"/v1/models/..%2Fgw":                     "",
		"/v1/models/acme%2F%2Fm":                 "",
		"/v1/models/acme%2Fm/x":                  "",
		"/v1/models/acme%252Fm":                  "",
		"/v1/models/acme%2Fm%00":                 "",
		"/v1/models/acme%2Fm%5Cx":                "",
		"/v1/models/acme%2Fm%":                   "",
		"/v1/models/acme%2Fm?x\r\n":              "",
		"/v1/files/acme%2Fm":                     "",
		"/v1/models/acme%2Fm%2Fx%2F":             "",
		"/v1/models/a" + "%2Fm\u00e9":            "",
		"/v1/../v1/models/acme%2Fm":              "",
		"/v1/models/" + strings.Repeat("a%2", 9): "",
	} {
		slug, ok := EscapedSlug(target)
		if slug != want || ok != (want != "") {
			t.Errorf("EscapedSlug(%q) = %q, %v, want %q", target, slug, ok, want)
		}
		if ok && Judge(target) == nil {
			t.Errorf("Judge(%q) = nil: no exception is needed", target)
		}
	}
}

func TestPatternMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, method, path string
		want                  Captures
		ok                    bool
	}{
		{"POST /v1/chat/completions", "POST", "/v1/chat/completions", nil, true},
		{"POST /v1/chat/completions", "GET", "/v1/chat/completions", nil, false},
		{"POST /v1/chat/completions", "POST", "/v1/chat/completions/", nil, false},
		{"POST /v1/chat/completions", "POST", "/v1/chat", nil, false},
		{"POST /v1/chat/completions", "POST", "/v1/chat/Completions", nil, false},
		{"POST /v1/chat/completions", "POST", "/v1/%63hat/completions", nil, false},
		{"GET /", "GET", "/", nil, true},
		{"GET /", "GET", "/x", nil, false},
		{"GET /v1/models/{id}", "GET", "/v1/models/gpt-5", Captures{{"id", "gpt-5"}}, true},
		{"GET /v1/models/{id}", "GET", "/v1/models/a%20b", Captures{{"id", "a b"}}, true},
		{"GET /v1/models/{id}", "GET", "/v1/models/", nil, false},
		{"GET /v1/models/{id}", "GET", "/v1/models/a/b", nil, false},
		{"GET /v1/models/{id}", "GET", "/v1/models/a/", nil, false},
		{"POST /v1beta/models/{model}:generateContent", "POST", "/v1beta/models/gemini-2.5:generateContent", Captures{{"model", "gemini-2.5"}}, true},
		{"POST /v1beta/models/{model}:generateContent", "POST", "/v1beta/models/g:x:generateContent", Captures{{"model", "g:x"}}, true},
		{"POST /v1beta/models/{model}:generateContent", "POST", "/v1beta/models/:generateContent", nil, false},
		{"POST /v1beta/models/{model}:generateContent", "POST", "/v1beta/models/g%3AgenerateContent", nil, false},
		{"POST /v1beta/models/{model}:generateContent", "POST", "/v1beta/models/g:streamGenerateContent", nil, false},
		{"POST /models/{owner}/{name}/predictions", "POST", "/models/o/n/predictions", Captures{{"owner", "o"}, {"name", "n"}}, true},
		{"GET /v1/files/**", "GET", "/v1/files/a/b%20c", Captures{{"**", "a/b c"}}, true},
		{"GET /v1/files/**", "GET", "/v1/files/", Captures{{"**", ""}}, true},
		{"GET /v1/files/**", "GET", "/v1/files", nil, false},
		{"GET /v1/files/**", "GET", "/v1/filesystem", nil, false},
		{"POST /{owner}/**", "POST", "/fal-ai/flux/dev", Captures{{"owner", "fal-ai"}, {"**", "flux/dev"}}, true},
		{"* /**", "DELETE", "/any/thing", Captures{{"**", "any/thing"}}, true},
		{"* /**", "PATCH", "/", Captures{{"**", ""}}, true},
		{"* /**", "PATCH", "", nil, false},
	} {
		pattern, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Errorf("ParsePattern(%q) = %v", tt.pattern, err)
			continue
		}
		got, ok := pattern.Match(tt.method, tt.path)
		if ok != tt.ok || ok && !cmp.Equal(got, tt.want) {
			t.Errorf("%q: Match(%s %s) = %v, %v, want %v, %v", tt.pattern, tt.method, tt.path, got, ok, tt.want, tt.ok)
		}
	}
	if _, ok := (Pattern{}).Match("", ""); ok {
		t.Error("the zero Pattern matches")
	}
}

func TestParsePatternRefuses(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"", "/v1", "GET", "GET v1", "get /v1", "G*T /v1", " /v1", "GET /**/x", "GET /a**", "GET /v*", "GET /{}", "GET /{a",
		"GET /a}", "GET /x{a}", "GET /{a}{b}", "GET /{a}/{a}", "GET /a//b", "GET /../x", "GET /a%2fb", "GET /a?b", "GET /a b",
	} {
		if p, err := ParsePattern(pattern); err == nil {
			t.Errorf("ParsePattern(%q) = %v, want an error", pattern, p)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"/", "/v1/chat/completions", "/v1/%2e%2e/gw", "/v1/a%252fb", "//x", "/a/../b?c=/../", "/v1/models/acme%2Fm",
		"/%C3%A9/x;y", "/a%zz", "http://x/", "/a\\..\\b", "/..%00/", "/x?%2e#",
	} {
		f.Add(seed)
	}
	patterns := make([]Pattern, 0, 3)
	for _, text := range []string{"* /**", "GET /v1/models/{id}", "GET /v1/{model}:run/**"} {
		p, err := ParsePattern(text)
		if err != nil {
			f.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	f.Fuzz(func(t *testing.T, target string) {
		slug, isSlug := EscapedSlug(target)
		if Judge(target) != nil {
			if isSlug && strings.Contains("/"+slug+"/", "/../") {
				t.Errorf("EscapedSlug(%q) = %q", target, slug)
			}
			return
		}
		parsed, err := url.ParseRequestURI(target)
		if err != nil || parsed.Host != "" || parsed.Scheme != "" || parsed.Fragment != "" {
			t.Fatalf("url.ParseRequestURI(%q) = %+v, %v, want a bare path", target, parsed, err)
		}
		path := parsed.EscapedPath()
		if raw, _, _ := strings.Cut(target, "?"); raw != path {
			t.Errorf("the path of %q is sent on as %q", target, path)
		}
		for range 3 {
			for segment := range strings.SplitSeq(strings.ReplaceAll(path, "\\", "/"), "/") {
				if segment == "." || segment == ".." || strings.ContainsAny(segment, "\x00\r\n") {
					t.Fatalf("Judge(%q) = nil, but it decodes to the segment %q", target, segment)
				}
			}
			if path, err = url.PathUnescape(path); err != nil {
				break
			}
		}
		for _, p := range patterns {
			captures, ok := p.Match("GET", parsed.EscapedPath())
			for _, c := range captures {
				if ok && c.Name != "**" && (c.Value == "" || strings.Contains(c.Value, "/")) {
					t.Errorf("Match(%q) captures %q", target, c)
				}
			}
		}
	})
}
