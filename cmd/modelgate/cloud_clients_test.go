package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// clouds are the stand-ins that the clouds' own clients reach through a gateway.
type clouds struct {
	bedrock *cloud.Bedrock
	vertex  *cloud.Vertex
	azure   *cloud.Azure
}

// newClouds is a gateway before a Bedrock, for which it signs, a Vertex and an
// Azure.
func newClouds(t *testing.T, o testkit.GatewayOptions) (*bench, *clouds) {
	t.Helper()
	c := &clouds{cloud.NewBedrock(t), cloud.NewVertex(t), cloud.NewAzure(t)}
	o.Providers = fmt.Sprintf("\n  - {name: bedrock, format: bedrock, base_url: %q, identity: {aws: {region: eu-central-1, service: bedrock, access_key_id: %s, secret_access_key: %s}}}\n",
		c.bedrock.URL, cloud.AccessKeyID, cloud.SecretKey) +
		fmt.Sprintf("  - {name: vertex, format: vertex, base_url: %q, project: acme-prod, location: europe-west4, credential: %s}\n", c.vertex.URL, cloud.VertexToken) +
		fmt.Sprintf("  - {name: azure, format: azure-openai, base_url: %q, credential: %s}", c.azure.URL, cloud.AzureKey)
	o.More = `prices:
  - {provider: bedrock, model: "*", price: {input: 1, output: 5}}
  - {provider: vertex, model: "*", price: {input: 1, output: 5}}
  - {provider: azure, model: "*", price: {input: 1, output: 5}}
`
	return newBench(t, o), c
}

// call runs the calls of so many clients against a gateway, which has booked what
// the clouds served.
func (c *clouds) call(t *testing.T, b *bench, cmd *exec.Cmd, clients int) {
	t.Helper()
	cmd.Env = append(os.Environ(), append(cmd.Env, "GATEWAY_URL="+b.URL, "GATEWAY_KEY="+b.key)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\nrefused signatures: %q", err, out, c.bedrock.Refused())
	}
	// A question is one call, and a tool two: the order and its result.
	b.wantServed(t, slices.Concat(c.bedrock.Ledger.All(), c.vertex.Ledger.All(), c.azure.Ledger.All()), clients*(2*1+2*2))
}

// TestCloudClients has the clouds' own clients ask, stream and call a tool, whole
// and streamed, and fail with a wrong key.
func TestCloudClients(t *testing.T) {
	t.Parallel()
	t.Run("JavaScript", func(t *testing.T) {
		t.Parallel()
		b, c := newClouds(t, testkit.GatewayOptions{Server: "http: standard"}) // AWS's client speaks HTTP/2 only
		cmd := exec.Command("node", "--test", "clouds.test.mjs")
		cmd.Dir = nodeModules(t)
		c.call(t, b, cmd, 9)
	})
	if !*goSDKs {
		return
	}
	// AWS's and Azure's send a key over TLS only.
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		certFile, keyFile := testkit.Certificate(t)
		b, c := newClouds(t, testkit.GatewayOptions{Server: fmt.Sprintf("tls: {cert_file: %q, key_file: %q}", certFile, keyFile)})
		b.URL = "https" + strings.TrimPrefix(b.URL, "http")
		cmd := exec.Command("go", "test", "-count=1", "-run", "TestClouds", ".")
		cmd.Dir = filepath.Join(sdks, "go")
		cmd.Env = []string{"SSL_CERT_FILE=" + certFile}
		c.call(t, b, cmd, 6)
	})
}
