package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// TestCloudClients has the clouds' own clients ask, stream and call a tool, whole
// and streamed, and fail with a wrong key. The gateway signs what goes to Bedrock,
// and has booked what the clouds served.
func TestCloudClients(t *testing.T) {
	t.Parallel()
	bedrock, vertex, azure := cloud.NewBedrock(t), cloud.NewVertex(t), cloud.NewAzure(t)
	b := newBench(t, testkit.GatewayOptions{
		Server: "http: standard", // AWS's client speaks HTTP/2 only
		Providers: fmt.Sprintf("\n  - {name: bedrock, format: bedrock, base_url: %q, identity: {aws: {region: eu-central-1, service: bedrock, access_key_id: %s, secret_access_key: %s}}}\n",
			bedrock.URL, cloud.AccessKeyID, cloud.SecretKey) +
			fmt.Sprintf("  - {name: vertex, format: vertex, base_url: %q, project: acme-prod, location: europe-west4, credential: %s}\n", vertex.URL, cloud.VertexToken) +
			fmt.Sprintf("  - {name: azure, format: azure-openai, base_url: %q, credential: %s}", azure.URL, cloud.AzureKey),
		More: `prices:
  - {provider: bedrock, model: "*", price: {input: 1, output: 5}}
  - {provider: vertex, model: "*", price: {input: 1, output: 5}}
  - {provider: azure, model: "*", price: {input: 1, output: 5}}
`,
	})
	cmd := exec.Command("node", "--test", "clouds.test.mjs")
	cmd.Dir = nodeModules(t)
	cmd.Env = append(os.Environ(), "GATEWAY_URL="+b.URL, "GATEWAY_KEY="+b.key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\nrefused signatures: %q", err, out, bedrock.Refused())
	}
	// A question is one call, and a tool two: the order and its result.
	b.wantServed(t, slices.Concat(bedrock.Ledger.All(), vertex.Ledger.All(), azure.Ledger.All()), 7*(2*1+2*2))
}
