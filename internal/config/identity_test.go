package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate/internal/config"
)

// withIdentity is a configuration of one provider at a host.
func withIdentity(host, rest string) string {
	return "providers:\n  - name: a\n    format: openai\n    base_url: " + host + "\n    " + rest + "\n"
}

const bedrockHost = "https://bedrock-runtime.eu-central-1.amazonaws.com"

func TestIdentityFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, rest, want string }{
		{bedrockHost, "identity: {}", "want exactly one of aws, google and azure"},
		{bedrockHost, "identity: {aws: {}, google: {}}", "want exactly one of aws, google and azure"},
		{bedrockHost, "identity: {aws: {}}\n    credential: k", "credential: excludes identity"},
		{bedrockHost, "identity: {aws: {}}\n    auth: bearer", "auth: excludes identity"},
		{bedrockHost, "identity: {aws: {region: us-east-1}}", "contradicts base_url, whose host is in eu-central-1"},
		{bedrockHost, "identity: {aws: {profile: p, access_key_id: a, secret_access_key: hidden-1}}", "want at most one of profile"},
		{bedrockHost, "identity: {aws: {access_key_id: a}}", "access_key_id and secret_access_key go together"},
		{bedrockHost, "identity: {aws: {web_identity_token_file: f}}", "needs role_arn"},
		{bedrockHost, "identity: {aws: {external_id: x}}", "go with role_arn only"},
		{bedrockHost, "identity: {aws: {role_arn: r, duration: 1m}}", "must be from 15m to 12h"},
		{"https://private.example", "identity: {aws: {region: eu-west-1}}", "needs service"},
		{"https://private.example", "identity: {aws: {service: bedrock}}", "needs region"},
		{"http://acme.openai.azure.com", "identity: {azure: {}}", "base_url: identity needs https"},
		{"https://private.example", "identity: {azure: {}}", "needs scope"},
		{"https://acme.openai.azure.com", "identity: {azure: {client_secret: hidden-2}}", "needs tenant_id and client_id"},
		{"https://acme.openai.azure.com", "identity: {azure: {managed_identity: true, certificate_file: f}}", "want at most one of client_secret"},
		{"https://acme.openai.azure.com", "identity: {azure: {authority: \"http://a\"}}", "want https://"},
		{"https://acme.openai.azure.com", "identity: {gcp: {}}", "unknown key"},
	} {
		got := strings.Join(check(t, withIdentity(c.host, c.rest)), "\n")
		if !strings.Contains(got, c.want) || strings.Contains(got, "hidden-") {
			t.Errorf("%s at %s: %s, want %q", c.rest, c.host, got, c.want)
		}
	}
}

// The host says what is not said, files are beside the configuration, and no
// credential is missed.
func TestIdentityDefaults(t *testing.T) {
	t.Parallel()
	load := func(host, rest string) (*config.Identity, string) {
		path := write(t, withIdentity(host, rest))
		cfg, err := config.Load(path, env(nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(cfg.Warnings) > 0 {
			t.Errorf("warnings %v", cfg.Warnings)
		}
		return cfg.Providers[0].Identity, filepath.Dir(path)
	}
	got, dir := load(bedrockHost, "identity: {aws: {role_arn: r, web_identity_token_file: token}}")
	want := &config.AWSIdentity{Region: "eu-central-1", Service: "bedrock", RoleARN: "r", WebIdentityTokenFile: filepath.Join(dir, "token"), Duration: time.Hour}
	if diff := cmp.Diff(want, got.AWS); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, _ = load("https://x.services.ai.azure.com/anthropic", "identity: {azure: {}}")
	if got.Azure.Scope != "https://ai.azure.com/.default" {
		t.Errorf("scope %q", got.Azure.Scope)
	}
	if got, _ = load("http://127.0.0.1:1", "identity: {google: {}}"); got.Google == nil {
		t.Error("no identity in Google Cloud")
	}
}
