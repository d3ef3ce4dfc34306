package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// nested is a body with a member at a depth, of which its own object is the first.
func nested(member string, depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + member + strings.Repeat("}", depth-1)
}

// escapedName is a name with its first letter as JSON escapes it.
func escapedName(name string) string { return fmt.Sprintf(`\u%04x%s`, name[0], name[1:]) }

// TestCloudStorageIsOutOfReach puts every member that has a cloud use the operator's
// storage or objects into a body, as it is and with an escape, at several depths.
func TestCloudStorageIsOutOfReach(t *testing.T) {
	t.Parallel()
	b, c := newClouds(t, testkit.GatewayOptions{})
	const converse, generate = "/bedrock/model/m/converse", "/vertex/v1/publishers/google/models/g:generateContent"
	type member struct{ path, name, value string }
	var top, deep []member
	for _, name := range []string{"guardrailConfig", "amazon-bedrock-guardrailConfig", "promptVariables", "previous_response_id", "conversation", "container"} {
		top = append(top, member{converse, name, `"x"`})
	}
	for _, name := range []string{"cachedContent", "cached_content"} {
		top = append(top, member{generate, name, `"x"`})
	}
	for _, name := range []string{"s3Location", "s3Uri", "s3_uri", "S3LOCATION"} {
		deep = append(deep, member{converse, name, `{"uri":"s3://b/k"}`})
	}
	for _, name := range []string{"gcsUri", "gcs_uri", "storageUri", "storage_uri", "outputGcsUri", "output_gcs_uri", "gcsSource", "gcs_source", "retrieval"} {
		deep = append(deep, member{generate, name, `"x"`})
	}
	for _, name := range []string{"fileUri", "file_uri"} {
		deep = append(deep, member{generate, name, `"gs://b/k"`}, member{generate, name, `"\u0067s:\/\/b/k"`}, member{generate, name, `" GS://b/k"`})
	}
	refuse := func(m member, name string, depth int) {
		body := nested(fmt.Sprintf(`{"%s":%s}`, name, m.value), depth)
		resp, text := b.post(t, m.path, body)
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "refers to an object stored at the provider") {
			t.Errorf("%s at depth %d: %d %.200s", body[:min(len(body), 90)], depth, resp.StatusCode, text)
		}
	}
	for _, m := range top {
		refuse(m, m.name, 1)
		refuse(m, escapedName(m.name), 1)
	}
	for _, m := range deep {
		for _, depth := range []int{1, 2, 60, 511} {
			refuse(m, m.name, depth)
			refuse(m, escapedName(m.name), depth)
		}
	}
	if n := c.bedrock.Ledger.Len() + c.vertex.Ledger.Len(); n > 0 {
		t.Errorf("%d requests left", n)
	}
	// What only looks like one leaves.
	for _, m := range []member{{generate, "fileUri", `"https://x/gs://b"`}, {generate, "a", `"fileUri gs://b"`}} {
		resp, text := b.post(t, m.path, fmt.Sprintf(`{%q:%s,"contents":[{"parts":[{"text":"hi"}]}]}`, m.name, m.value))
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %d %s", m.name, m.value, resp.StatusCode, text)
		}
	}
}

// TestCloudHeadersStay sends headers that would sign, account, guard or route a call
// in a way that is not the caller's to choose. None of them leaves, however it is
// written, and the signature holds.
func TestCloudHeadersStay(t *testing.T) {
	t.Parallel()
	b, c := newClouds(t, testkit.GatewayOptions{})
	names := []string{
		"X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256", "X-Amz-Target", "X-Amz-Meta-X", "x-amz-user-agent", "X-Amzn-Bedrock-GuardrailIdentifier", "X-Amzn-Bedrock-GuardrailVersion",
		"X-Goog-User-Project", "X-Goog-Api-Key", "X-Goog-Iam-Authorization-Token", "X-Ms-Spillover-Deployment", "X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Api-Key", "X-Api-Key",
	}
	headers := []string{"Connection", "close, x-amzn-bedrock-trace", "X-Amzn-Bedrock-Trace", "ENABLED", "Host", "evil.example"}
	for _, name := range names {
		if name != "X-Goog-Api-Key" && name != "Api-Key" && name != "X-Api-Key" { // these are the caller's key
			headers = append(headers, name, "smuggled")
		}
	}
	const message = `"messages":[{"role":"user","content":"hello"}]}`
	for path, ledger := range map[string]*simulator.Memory{
		"/bedrock/openai/v1/chat/completions":                                 c.bedrock.Ledger,
		"/vertex/v1/endpoints/openapi/chat/completions":                       c.vertex.Ledger,
		"/azure/openai/deployments/d/chat/completions?api-version=2024-10-21": c.azure.Ledger,
	} {
		body := `{"model":"google/m",` + message
		if strings.HasPrefix(path, "/azure") {
			body = `{` + message
		}
		resp, text := b.post(t, path, body, headers...)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s; %q", path, resp.StatusCode, text, c.bedrock.Refused())
		}
		served := ledger.All()
		for name, values := range served[len(served)-1].Header {
			if strings.Contains(strings.Join(values, " "), "smuggled") {
				t.Errorf("%s: %s reached the provider", path, name)
			}
		}
	}
}
