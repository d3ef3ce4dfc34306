package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// TestCloudSecretsAreNowhere looks for what authorizes calls, and for the signatures
// made with it, in all that the gateway writes: its log, the files of its data
// directory (database, spool, evidence), the metrics, its traces, and its replies.
// The calls succeed, are refused by the cloud, and fail for want of a credential.
func TestCloudSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	bedrock, vertex := cloud.NewBedrock(t), cloud.NewVertex(t)
	dir := t.TempDir()
	token := filepath.Join(dir, "web-identity")
	if err := os.WriteFile(token, []byte("canary-web-identity-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var traces strings.Builder
	collector := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&traces, r.Header, string(body))
	})
	const identity = "identity: {aws: {region: eu-central-1, service: bedrock, "
	b := newBench(t, testkit.GatewayOptions{
		Dir: dir, Env: []string{"AWS_ENDPOINT_URL_STS=http://127.0.0.1:1"},
		Providers: fmt.Sprintf("\n  - {name: signed, format: bedrock, base_url: %q, "+identity+"access_key_id: %s, secret_access_key: %s}}}\n", bedrock.URL, cloud.AccessKeyID, cloud.SecretKey) +
			fmt.Sprintf("  - {name: temporary, format: bedrock, base_url: %q, "+identity+"access_key_id: %s, secret_access_key: %s, session_token: %s}}}\n", bedrock.URL, cloud.TemporaryKeyID, cloud.TemporarySecret, cloud.SessionToken) +
			fmt.Sprintf("  - {name: wrong, format: bedrock, base_url: %q, "+identity+"access_key_id: %s, secret_access_key: canary-wrong}}}\n", bedrock.URL, cloud.AccessKeyID) +
			fmt.Sprintf("  - {name: dead, format: bedrock, base_url: %q, "+identity+"web_identity_token_file: %q, role_arn: \"arn:aws:iam::1:role/r\"}}}\n", bedrock.URL, token) +
			fmt.Sprintf("  - {name: keyed, format: bedrock, base_url: %q, credential: %s}\n", bedrock.URL, cloud.BedrockKey) +
			fmt.Sprintf("  - {name: vertex, format: vertex, base_url: %q, project: acme-prod, location: europe-west4, credential: %s}", vertex.URL, cloud.VertexToken),
		More: "telemetry: {otlp_endpoint: " + collector + "}\n",
	})
	var said strings.Builder
	const converse, messages = `{"messages":[{"role":"user","content":[{"text":"hello"}]}]}`, `{"anthropic_version":"x","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/signed/model/m/converse", converse, 200},
		{"/signed/model/m/converse-stream", converse, 200},
		{"/temporary/model/m/converse", converse, 200},
		{"/temporary/model/m/invoke-with-response-stream", messages, 200},
		{"/keyed/model/m/converse", converse, 200},
		{"/vertex/v1/publishers/anthropic/models/c:rawPredict", messages, 200},
		{"/wrong/model/m/converse", converse, 403},
		{"/dead/model/m/converse", converse, 500},
	} {
		resp, text := b.post(t, c.path, c.body)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d %s, want %d", c.path, resp.StatusCode, text, c.status)
		}
		fmt.Fprintln(&said, c.path, resp.Header, text)
	}
	if text := said.String(); !strings.Contains(text, "credential resolution failed") {
		t.Errorf("a dead token service: %s", text)
	}
	_, rows := b.get(t, "/gw/usage?limit=100")
	if n := strings.Count(rows, `"id"`); n != 7 {
		t.Errorf("%d rows, want 7: a call without a credential has none", n)
	}
	req, err := http.NewRequest(http.MethodGet, b.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, metrics := exchange(t, req)
	if resp.StatusCode != http.StatusOK || !strings.Contains(metrics, `modelgate_credential_unavailable_total{provider="dead"}`) {
		t.Errorf("metrics: %d", resp.StatusCode)
	}
	stdout, stderr, _ := b.Run("config", "check", "--config", b.ConfigFile)
	b.Stop() // what is held back is written
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(traces.String(), "aws.bedrock") {
		t.Errorf("traces: %q", traces.String())
	}
	texts := map[string]string{"replies": said.String(), "usage": rows, "metrics": metrics, "traces": traces.String(), "log": b.Log(), "config check": stdout + stderr}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && path != b.ConfigFile && path != token {
			var content []byte
			content, err = os.ReadFile(path)
			texts[path] = string(content)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		for _, secret := range []string{"canary", "AKIDCANARY", "ASIACANARY", "AWS4-HMAC-SHA256", "Signature="} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s shows %q: %q", name, secret, bytes.TrimSpace([]byte(text[max(0, i-60):min(len(text), i+80)])))
			}
		}
	}
	if len(texts) < 8 {
		t.Errorf("%d texts were searched, want the files of the data directory too", len(texts))
	}
}
