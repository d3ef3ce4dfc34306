package main

import (
	"os"
	"os/exec"
	"testing"

	"modelgate/test/testkit"
)

// TestSDKsObeyLimits has SDKs meet rate limits that pass after two seconds and
// after an hour.
func TestSDKsObeyLimits(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("node", "--test", "limits.test.mjs")
	cmd.Dir = nodeModules(t)
	b := newBench(t, testkit.GatewayOptions{})
	cmd.Env = append(os.Environ(), "GATEWAY_URL="+b.URL, "GATEWAY_KEY="+b.key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
