package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestBedrockModelIDs puts ids into paths in every spelling. What leaves is the id that
// rights and regions were judged on; what is no id does not leave.
func TestBedrockModelIDs(t *testing.T) {
	t.Parallel()
	b, c := newClouds(t, testkit.GatewayOptions{})
	const converse = `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`
	for id, want := range map[string]string{
		"eu.anthropic.claude-v1:0": "eu.anthropic.claude-v1:0", "eu.anthropic.claude-v1%3A0": "eu.anthropic.claude-v1:0", "eu.anthropic.claude-v1%3a0": "eu.anthropic.claude-v1:0",
		"%65u.anthropic.claude": "eu.anthropic.claude", "a%2Fb": "", "a%252Fb": "", "a%20b": "", "a+b": "a+b", "a@1": "a@1", "%C3%A9": "é",
		"arn:aws:bedrock:eu-central-1:1:inference-profile%2Fx": "", "ARN%3Aaws:x": "", "%61rn:aws:x": "", "arn%3aaws%3ax%2Fy": "",
		"..": "", "%2e%2e": "", ".": "", "%2e": "", "": "", "a/b": "", "..%2Fm": "", "a%2F..%2Fm": "", "a%00b": "", "a%0Ab": "", "a%": "", "a%zz": "", "a%5Cb": "", "%FF": "", "a;b": "", "%20arn:aws:x": "", "a%3Fb": "a?b", "a%23b": "a#b",
	} {
		before := c.bedrock.Ledger.Len()
		req, err := http.NewRequest(http.MethodPost, b.URL, strings.NewReader(converse))
		if err != nil {
			t.Fatal(err)
		}
		req.URL = &url.URL{Scheme: "http", Host: strings.TrimPrefix(b.URL, "http://"), Opaque: "/bedrock/model/" + id + "/converse"}
		req.Header.Set("Authorization", "Bearer "+b.key)
		req.Header.Set("Content-Type", "application/json")
		resp, text := exchange(t, req)
		served := c.bedrock.Ledger.All()[before:]
		model := ""
		if len(served) > 0 {
			model = served[0].Model
		}
		if model != want || (want == "") != (resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusForbidden) {
			t.Errorf("%q: the provider ran %q, want %q: %d %s", id, model, want, resp.StatusCode, text)
		}
	}
	if refused := c.bedrock.Refused(); len(refused) > 0 {
		t.Errorf("refused signatures: %q", refused)
	}
}
