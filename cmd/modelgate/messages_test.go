package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"modelgate"
	"modelgate/test/testkit"
)

// envelope is what the gateway answers with itself.
type envelope struct {
	Error struct{ Type, Message, Detail string }
}

// refusal sends a request and returns its status and error.
func refusal(t *testing.T, method, url, body string, header http.Header) (int, envelope) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, text := exchange(t, req)
	var e envelope
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%s %s: %v: %s", method, url, err, text)
	}
	return resp.StatusCode, e
}

const sendKey = `send a gateway key as "Authorization: Bearer gw_live_..."`

// TestMessagesAboutKeys sends what newcomers send instead of a key, where OpenAI's,
// Anthropic's and Gemini's clients put it.
func TestMessagesAboutKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	last := "0"
	if strings.HasSuffix(b.key, last) {
		last = "1"
	}
	wrongSum := b.key[:len(b.key)-1] + last
	for name, tt := range map[string]struct{ header, value, detail string }{
		"none":             {"X-Other", "x", "no key was sent; " + sendKey},
		"empty":            {"Authorization", "Bearer ", "the key in the header Authorization is empty; is the variable set that it is taken from? " + sendKey},
		"empty, Anthropic": {"X-Api-Key", "", "the key in the header X-Api-Key is empty; is the variable set that it is taken from? " + sendKey},
		"OpenAI's":         {"Authorization", "Bearer sk-proj-" + strings.Repeat("x", 150), "this is a key of OpenAI or another provider (sk-...); the gateway adds the provider's key itself: " + sendKey},
		"Anthropic's":      {"X-Api-Key", "sk-ant-api03-abc", "this is a key of Anthropic (sk-ant-...); the gateway adds the provider's key itself: " + sendKey},
		"Google's":         {"X-Goog-Api-Key", "AIzaSyAbc", "this is a key of Google (AIza...); the gateway adds the provider's key itself: " + sendKey},
		"OpenRouter's":     {"Authorization", "sk-or-v1-abc", "this is a key of OpenRouter (sk-or-...); the gateway adds the provider's key itself: " + sendKey},
		"cut":              {"Authorization", "Bearer " + b.key[:40], "the gateway key is mistyped or cut: it has 40 characters instead of 56"},
		"capitals":         {"Authorization", "Bearer gw_live_" + strings.Repeat("F", 48), "the gateway key is mistyped or cut: after gw_live_ it has a character other than 0-9 and a-f"},
		"a wrong digit":    {"Api-Key", wrongSum, "the gateway key is mistyped or cut: its checksum does not match, so at least one character is wrong"},
		"something else":   {"Authorization", "Basic dXNlcjpwYXNz", "this is not a gateway key; " + sendKey},
	} {
		for _, door := range []string{"/v1/chat/completions", "/v1/messages", "/openai/v1/chat/completions"} {
			status, e := refusal(t, "POST", b.URL+door, `{"model":"openai/gpt-5-mini","messages":[]}`, http.Header{tt.header: {tt.value}})
			if status != 401 || e.Error.Type != "unauthorized" || e.Error.Message != "invalid gateway key" || e.Error.Detail != tt.detail {
				t.Errorf("%s at %s: %d %+v, want the detail %q", name, door, status, e, tt.detail)
			}
		}
	}
	for header, detail := range map[string]string{
		"X-Api-Key": "paths under /gw do not read the header X-Api-Key; " + sendKey,
		"X-Other":   "no key was sent; " + sendKey,
	} {
		if status, e := refusal(t, "GET", b.URL+"/gw/me", "", http.Header{header: {b.key}}); status != 401 || e.Error.Message != "invalid gateway key" || e.Error.Detail != detail {
			t.Errorf("/gw/me with %s: %d %+v, want the detail %q", header, status, e, detail)
		}
	}
}

// TestKnownShapeSaysNothing: whether a well-formed key is unknown, revoked or
// expired is nobody's business.
func TestKnownShapeSaysNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	secret, id := b.NewKey(b.NewClient("revoked"))
	b.Admin(nil, "key", "revoke", string(id))
	for name, key := range map[string]string{"unknown": modelgate.NewSecret().Reveal(), "revoked": secret} {
		eventually(t, name, func() bool {
			status, e := refusal(t, "GET", b.URL+"/gw/me", "", http.Header{"Authorization": {"Bearer " + key}})
			if e.Error.Detail != "" {
				t.Fatalf("%s: %+v", name, e)
			}
			return status == 401
		})
	}
}

// TestMessagesAboutPaths calls paths that belong to a wrong base URL or to another
// API.
func TestMessagesAboutPaths(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	const ollama = "no such path; the gateway does not serve Ollama's API: use the OpenAI-compatible "
	for path, want := range map[string]string{
		"/chat/completions":                     "no such path; the endpoint is /v1/chat/completions: check the client's base URL",
		"/messages":                             "no such path; the endpoint is /v1/messages: check the client's base URL",
		"/v1/v1/messages":                       "no such path; the endpoint is /v1/messages: check the client's base URL",
		"/v1/v1/messages/count_tokens":          "no such path; the endpoint is /v1/messages/count_tokens: check the client's base URL",
		"/api/v1/chat/completions":              "no such path; the endpoint is /v1/chat/completions: check the client's base URL",
		"/models":                               "no such path; the endpoint is /v1/models: check the client's base URL",
		"/v1beta/models/gemini:generateContent": "no such path; Gemini's paths are below the name of a provider, as in /gemini/v1beta/models/...",
		"/api/chat":                             ollama + "POST /v1/chat/completions",
		"/api/generate":                         ollama + "POST /v1/completions",
		"/api/embed":                            ollama + "POST /v1/embeddings",
		"/api/tags":                             ollama + "GET /v1/models",
		"/api/version":                          ollama + "API under /v1",
		"/api/other":                            "no such path",
		"/nothing/of/the/kind":                  "no such path",
	} {
		for _, method := range []string{"GET", "POST"} {
			status, e := refusal(t, method, b.URL+path, "", http.Header{"Authorization": {"Bearer " + b.key}})
			if status != 404 || e.Error.Type != "not_found" || e.Error.Message != want {
				t.Errorf("%s %s: %d %+v, want %q", method, path, status, e, want)
			}
		}
	}
	status, e := refusal(t, "POST", b.URL+"/openai/chat/completions", `{"model":"gpt-5-mini"}`, http.Header{"Authorization": {"Bearer " + b.key}})
	if want := "the path is /openai/v1/chat/completions: check the client's base URL"; status != 403 || e.Error.Message != "path not permitted for this provider" || e.Error.Detail != want {
		t.Errorf("a provider's path without /v1: %d %+v, want the detail %q", status, e, want)
	}
}

// TestMessagesAboutSlugs suggests models that are near, and none that the key may
// not use.
func TestMessagesAboutSlugs(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{Catalog: `
  - {slug: openai/gpt-5-mini, kind: llm, routes: [{provider: openai, model: gpt-5-mini}]}
  - {slug: openai/gpt-5-nano, kind: llm, routes: [{provider: openai, model: gpt-5-nano}]}
  - {slug: openai/gpt-5-secret, kind: llm, routes: [{provider: openai, model: gpt-5-secret}]}
  - {slug: openai/embed-small, kind: embedding, routes: [{provider: openai, model: embed-small}]}
  - {slug: lost/gpt-5-minor, kind: llm, routes: [{provider: nobody, model: gpt-5-minor}]}`})
	entitlements := `[{"axis":"vendor","provider":"openai","model_pattern":"gpt-5-mini","effect":"allow"}]`
	narrow, _ := b.NewKey(b.NewClient("narrow"), "--entitlements", entitlements)
	for model, want := range map[string]struct{ all, narrow string }{
		"openai/gpt-5-minni":             {"did you mean openai/gpt-5-mini?", "did you mean openai/gpt-5-mini?"},
		"gpt-5-mini":                     {"did you mean openai/gpt-5-mini?", "did you mean openai/gpt-5-mini?"},
		"azure/gpt-5-mini":               {"did you mean openai/gpt-5-mini?", "did you mean openai/gpt-5-mini?"},
		"OpenAI/GPT-5-secrets":           {"did you mean openai/gpt-5-secret?", ""},
		"openai/embed-smal":              {"", ""},
		"openai/gpt-5-minors":            {"", ""},
		"x/y":                            {"", ""},
		strings.Repeat("o", 5000) + "/x": {"", ""},
	} {
		for key, detail := range map[string]string{b.key: want.all, narrow: want.narrow} {
			status, e := refusal(t, "POST", b.URL+"/v1/chat/completions", `{"model":"`+model+`","messages":[]}`, http.Header{"Authorization": {"Bearer " + key}})
			wantStatus, message := 404, `model "`+model+`" not found in catalog (see GET /v1/models)`
			if !strings.Contains(model, "/") {
				wantStatus, message = 400, `model "`+model+`" is not a catalog slug; use 'author/model' (see GET /v1/models)`
			}
			if status != wantStatus || e.Error.Message != message || e.Error.Detail != detail {
				t.Errorf("%.40s: %d %.200v, want the detail %q", model, status, e, detail)
			}
		}
	}
}

// TestMessagesAboutModels suggests slugs of the list that the model was looked for
// in.
func TestMessagesAboutModels(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{Catalog: `
  - {slug: openai/gpt-5-mini, kind: llm, routes: [{provider: openai, model: gpt-5-mini}]}
  - {slug: anthropic/claude-haiku-4.5, kind: llm, routes: [{provider: anthropic, model: claude-haiku-4-5}]}
  - {slug: openai/embed-small, kind: embedding, routes: [{provider: openai, model: embed-small}]}`})
	for _, row := range []struct{ slug, anthropic, detail string }{
		{"openai/gpt-5-minni", "", "did you mean openai/gpt-5-mini?"},
		{"openai%2Fgpt-5-minni", "", "did you mean openai/gpt-5-mini?"},
		{"gpt-5-mini", "", "did you mean openai/gpt-5-mini?"},
		{"openai/embed-smal", "", "did you mean openai/embed-small?"},
		{"claude-haiku-4-5", "2023-06-01", "did you mean anthropic/claude-haiku-4.5?"},
		{"openai/gpt-5-mini", "2023-06-01", ""},
		{"openai/gpt-5-minni", "2023-06-01", ""},
		{"x/y", "", ""},
	} {
		header := http.Header{"Authorization": {"Bearer " + b.key}}
		if row.anthropic != "" {
			header.Set("anthropic-version", row.anthropic)
		}
		status, e := refusal(t, "GET", b.URL+"/v1/models/"+row.slug, "", header)
		message := `model "` + strings.ReplaceAll(row.slug, "%2F", "/") + `" not found in catalog (see GET /v1/models)`
		if status != 404 || e.Error.Message != message || e.Error.Detail != row.detail {
			t.Errorf("%v: %d %+v", row, status, e)
		}
	}
}
