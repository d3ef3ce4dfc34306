package provider

import (
	"modelgate/internal/provider/target"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// pathOracle reads a pattern as a regular expression over decoded paths.
func pathOracle(pattern string) *regexp.Regexp {
	_, path, _ := strings.Cut(pattern, " ")
	var expr strings.Builder
	for _, piece := range regexp.MustCompile(`\{\w+\}|\*\*|[^{*]+`).FindAllString(path, -1) {
		switch {
		case piece == "**":
			expr.WriteString("(.*)")
		case piece[0] == '{':
			expr.WriteString("([^/]+)")
		default:
			expr.WriteString(regexp.QuoteMeta(piece))
		}
	}
	return regexp.MustCompile("(?s)^" + expr.String() + "$")
}

// FuzzPathModel takes a path through every row of the table: the model that is
// judged is the one that any reader of the same path finds, and the path that
// leaves is the one that came.
func FuzzPathModel(f *testing.F) {
	for _, seed := range []string{
		"/v1beta/models/gemini-2.5-pro:generateContent", "/v1beta/models/a:b:streamGenerateContent", "/v1/models/m:predictLongRunning",
		"/openai/deployments/gpt-5/chat/completions", "/openai/deployments/gpt%2d5/chat/completions", "/v1/models/owner/name/predictions",
		"/fal-ai/flux/dev", "/fal-ai/flux/requests/1/status", "/v1/models/a%20b", "/%6fpenai/deployments/x/embeddings",
		"/v1beta/models/cheap%3AgenerateContent:generateContent", "/v1/models/", "/v2/query/video_generation/x", "/v1/models/%C3%A9", "/a@b/c+d,e;f",
		"/v1beta/models/x:countTokens/", "/v1/models/a/b", "/openai/deployments/a/b/chat/completions", "/v1/models/..%2e", "/v1/models/...",
		"/model/a/invoke", "/%6dodel/a/invoke", "/run/a%3Ago", "/run/a:go", "/v1/files/%61/b",
	} {
		for _, method := range []string{"GET", "POST"} {
			f.Add(method, seed)
		}
	}
	var providers []*Provider
	oracles := map[*Route]*regexp.Regexp{}
	operator := []string{"POST /model/{model}/invoke", "POST /run/{model}:go", "GET /v1/files/**"}
	for _, format := range Formats() {
		p, err := New(Config{Name: "p", Format: format.Name, BaseURL: "https://api.example.com/base", Credentials: []string{"secret"}, Allow: operator})
		if err != nil {
			f.Fatal(err)
		}
		providers = append(providers, p)
		for _, r := range p.routes {
			oracles[r.route] = pathOracle(r.route.Pattern)
		}
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		if strings.Contains(path, "?") || target.Judge(path) != nil {
			return
		}
		decoded, err := url.PathUnescape(path)
		if err != nil {
			t.Fatalf("target.Judge(%q) = nil, but it cannot be decoded: %v", path, err)
		}
		plain := (&url.URL{Path: decoded}).EscapedPath()
		for _, p := range providers {
			route, captures := p.Route(method, path)
			if route == nil {
				continue
			}
			found := oracles[route].FindStringSubmatch(decoded)
			if len(found) != len(captures)+1 {
				t.Fatalf("%s: %s %q is served as %s, which does not match", p.format.Name, method, path, route.Pattern)
			}
			for i, c := range captures {
				if c.Value != found[i+1] {
					t.Fatalf("%s: %s of %q is %q, a decoded reading is %q", p.format.Name, c.Name, path, c.Value, found[i+1])
				}
			}
			if other, _ := p.Route(method, plain); other != route {
				t.Fatalf("%s: %q is served as %s, %q as %+v", p.format.Name, path, route.Pattern, plain, other)
			}
			checkOutboundPath(t, p, method, path)
		}
	})
}

func checkOutboundPath(t *testing.T, p *Provider, method, path string) {
	t.Helper()
	a, err := p.Outbound(t.Context(), Call{Method: method, Path: path, Header: http.Header{}})
	if err != nil {
		return // refused: a gateway key in the path
	}
	sent := a.Request.URL.String()
	if sent != "https://api.example.com/base"+path {
		t.Fatalf("%s: %q leaves as %q", p.format.Name, path, sent)
	}
}
