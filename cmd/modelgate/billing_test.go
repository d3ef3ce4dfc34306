package main

import (
	"net/http"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestExportResend sends an event again that has failed, and no other.
func TestExportResend(t *testing.T) {
	t.Parallel()
	const key = "sk_test_resend"
	p := testkit.NewProcessor(t, key)
	b := newBench(t, testkit.GatewayOptions{More: p.Config(key)})
	resend := func(id string) (string, int) {
		stdout, stderr, code := b.Run("export", "resend", id, "--config", b.ConfigFile)
		return stdout + stderr, code
	}
	for _, id := range []string{"x", "00000000-0000-7000-8000-00000000ffff"} {
		if said, code := resend(id); code != 1 {
			t.Errorf("resend %s: exit %d %s", id, code, said)
		}
	}
	var doubted struct{ Doubted *int }
	if b.Admin(&doubted, "export", "doubt"); doubted.Doubted == nil || *doubted.Doubted != 0 {
		t.Errorf("doubted %+v", doubted)
	}
	var rotated struct {
		Rotated int
		Secrets []struct{ Secrets int }
	}
	b.Admin(&rotated, "master-key", "rotate")
	if rotated.Rotated != 0 {
		t.Errorf("rotated %+v", rotated)
	}
	if said, code := resend(strings.Repeat("0", 36)); code != 1 || !strings.Contains(said, "not the id of a usage row") {
		t.Errorf("exit %d %s", code, said)
	}
}

// TestRotateNeedsAKey refuses without a master key, and says so.
func TestRotateNeedsAKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	if _, stderr, code := b.Run("master-key", "rotate", "--config", b.ConfigFile); code != 1 || !strings.Contains(stderr, "master_key is not set") {
		t.Errorf("exit %d %s", code, stderr)
	}
}

// TestSecretsWithoutTheirKey says at the start what cannot be read, and only
// then.
func TestSecretsWithoutTheirKey(t *testing.T) {
	t.Parallel()
	const mine, others = "master_key: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\n", "master_key: MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=\n"
	o := testkit.GatewayOptions{More: mine}
	b := newBench(t, o)
	req, err := http.NewRequest(http.MethodPut, b.URL+"/gw/processor/config", strings.NewReader(`{"enabled":false,"api_key":"sk_test_1"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	if resp, text := exchange(t, req); resp.StatusCode != http.StatusNoContent {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	const warning = "secrets cannot be read"
	for i, config := range []string{mine, others, "", mine} {
		before := len(b.Log())
		o.More = config
		b.Configure(o)
		b.Stop()
		b.Start()
		if said := strings.Contains(b.Log()[before:], warning); said != (config != mine) {
			t.Errorf("start %d: warned %v\n%s", i, said, b.Log()[before:])
		}
	}
}
