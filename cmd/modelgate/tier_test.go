package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestProvisionedThroughput books what a deployment paid by the hour serves at 0,
// and what spilled over to another at the full price.
func TestProvisionedThroughput(t *testing.T) {
	t.Parallel()
	azure := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Ms-Region", "Sweden Central")
		w.Header().Set("Azureml-Model-Session", "d-1")
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "spill") {
			w.Header().Set("X-Ms-Spillover-From-Deployment", "ptu")
			w.Header().Set("X-Ms-Deployment-Name", "standard")
		}
		_, _ = io.WriteString(w, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}}`)
	})
	b := newBench(t, testkit.GatewayOptions{
		Providers: fmt.Sprintf("\n  - {name: azure, format: azure-openai, base_url: %q, credential: k}", azure),
		Catalog: `
  - {slug: a/ptu, kind: llm, routes: [{provider: azure, model: ptu, doors: [chat], service_tier: provisioned}],
     price: {input: 1, output: 5, multipliers: {service_tier: {provisioned: 0}}}}`,
	})
	for message, want := range map[string]string{"plain": `"cost_usd":0,`, "spill": `"cost_usd":0.000025,`} {
		resp, text := b.post(t, "/v1/chat/completions", fmt.Sprintf(`{"model":"a/ptu","messages":[{"role":"user","content":%q}]}`, message))
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", message, resp.StatusCode, text)
		}
		for _, name := range []string{"X-Ms-Region", "X-Ms-Deployment-Name", "X-Ms-Spillover-From-Deployment", "Azureml-Model-Session"} {
			if resp.Header.Get(name) != "" {
				t.Errorf("%s: the reply shows %s", message, name)
			}
		}
		if _, rows := b.get(t, "/gw/usage?limit=1"); !strings.Contains(rows, want) || !strings.Contains(rows, `"parse_status":"ok"`) {
			t.Errorf("%s: %s, want %s", message, rows, want)
		}
	}
	resp, text := b.post(t, "/v1/responses", `{"model":"a/ptu","input":"x"}`)
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "use /v1/chat/completions") {
		t.Errorf("a door that the route does not serve: %d %s", resp.StatusCode, text)
	}
}
