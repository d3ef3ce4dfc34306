package gateway

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/provider"
)

// A reply to a key bound to a sub-account does not say what it costs upstream,
// and is metered like any other; a key of the organization gets every byte.
func TestBoundKeysSeeNoCosts(t *testing.T) {
	t.Parallel()
	const stated = `"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":0.25,"cost_details":{"upstream_inference_cost":0.2},"is_byok":false}`
	const hidden = `"usage":{"prompt_tokens":10,"completion_tokens":5}`
	value := `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],` + stated + `}`
	event := events(`{"choices":[{"index":0,"delta":{"content":"hi"}}]}`, `{"choices":[],`+stated+`}`, "[DONE]")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(value))
	_ = z.Close()
	coded := func(coding, body string) string {
		return reply(fmt.Sprintf("Content-Type: application/json\nContent-Encoding: %s\nContent-Length: %d", coding, len(body)), body)
	}
	for name, tt := range map[string]struct {
		upstream, body string
		raw, bound     string // what the keys get
		status         int
	}{
		"a value":                    {sized("application/json", value), chatBody, value, strings.Replace(value, stated, hidden, 1), 200},
		"a stream":                   {reply(eventHead, chunks(event[:70], event[70:])+lastChunk), streamBody, event, strings.Replace(event, stated, hidden, 1), 200},
		"gzip":                       {coded("gzip", zipped.String()), chatBody, zipped.String(), strings.Replace(value, stated, hidden, 1), 200},
		"a coding that nobody knows": {coded("rot13", value), chatBody, value, "", 502},
	} {
		for _, sub := range []modelgate.SubAccountID{"", "s"} {
			t.Run(fmt.Sprintf("%s, bound %v", name, sub != ""), func(t *testing.T) {
				t.Parallel()
				u := rawUpstream(t, sends(tt.upstream))
				who := &modelgate.Caller{ClientID: "c", KeyID: "k", SubAccountID: sub, Scopes: []modelgate.Scope{modelgate.InferenceUse}, Entitlements: modelgate.OpenEntitlements()}
				g := open(t, u.URL, plan{who: who, configure: func(c *provider.Config) {
					if c.Name == "openai" {
						c.Format, c.Paths = "openrouter", map[string]string{"chat": "/v1/chat/completions"}
					}
				}})
				resp, answer, err := g.do(t, "/v1/chat/completions", tt.body)
				want, status := tt.raw, 200
				if sub != "" {
					want, status = tt.bound, tt.status
				}
				if err != nil || resp.StatusCode != status || string(answer) != want {
					t.Errorf("status %d, %v:\n got %q\nwant %q", resp.StatusCode, err, answer, want)
				}
				if coding := resp.Header.Get("Content-Encoding"); sub != "" && coding != "" {
					t.Errorf("coding %s", coding)
				}
				if end := g.books.only(t); status == 200 && !strings.Contains(tt.upstream, "rot13") && (end.Cost != 250_000_000 || end.ParseStatus != modelgate.ParseOK) || end.Cost == 0 {
					t.Errorf("END %+v", end)
				}
			})
		}
	}
}

// The creation of a job, and what its provider says of it, pass alike.
func TestBoundKeysSeeNoCostsOfJobs(t *testing.T) {
	t.Parallel()
	u := rawUpstream(t, sends(sized("application/json", `{"id":"j1","status":"completed","usage":{"cost":0.5,"is_byok":true}}`)))
	for _, sub := range []modelgate.SubAccountID{"", "s"} {
		who := &modelgate.Caller{ClientID: "c", KeyID: "k", SubAccountID: sub, Scopes: []modelgate.Scope{modelgate.InferenceUse}, Entitlements: modelgate.OpenEntitlements()}
		g := open(t, u.URL, plan{who: who, live: liveOf(t, nil, provider.Config{Format: "openrouter", BaseURL: u.URL})})
		want := `{"id":"j1","status":"completed","usage":{"cost":0.5,"is_byok":true}}`
		if sub != "" {
			want = `{"id":"j1","status":"completed","usage":{}}`
		}
		_, made, _ := g.do(t, "/openrouter/api/v1/videos", `{"model":"a/b","prompt":"x","seconds":"4","size":"1280x720"}`)
		_, polled, _ := g.do(t, "/openrouter/api/v1/videos/j1", "")
		if string(made) != want || string(polled) != want {
			t.Errorf("bound %v: made %s, polled %s, want %s", sub != "", made, polled, want)
		}
	}
}
