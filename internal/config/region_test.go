package config_test

import (
	"fmt"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/config"
)

func TestRegionFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, rest, want string }{
		{bedrockHost, "region: us", "region: contradicts base_url, whose host is in eu-central-1"},
		{"https://bedrock-runtime.eu-west-2.amazonaws.com", "region: eu", "contradicts base_url, whose host is in eu-west-2"},
		{"https://europe-west2-aiplatform.googleapis.com", "region: eu-london", "contradicts base_url, whose host is in europe-west2"},
		{bedrockHost, "model_regions: [{model: m}]", "model_regions[0].region: is missing"},
		{bedrockHost, "model_regions: [{model: \"a[b]\", region: eu}]", "in a glob only * and ? are special"},
		{bedrockHost, "model_regions: [" + strings.Repeat("{model: m, region: eu},", 65) + "]", "must be at most 64"},
	} {
		if got := strings.Join(check(t, withIdentity(c.host, c.rest)), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s at %s: %s, want %q", c.rest, c.host, got, c.want)
		}
	}
}

// Where a route computes follows from the operator's entries, the profile in the
// model's id, the provider's region and the host, in this order.
func TestRegionsOfRoutes(t *testing.T) {
	t.Parallel()
	const mantle, claude = "https://bedrock-mantle.eu-central-1.api.aws/anthropic", "https://aws-external-anthropic.eu-west-1.api.aws"
	for _, c := range []struct{ host, rest, model, want string }{
		{bedrockHost, "credential: k", "anthropic.claude-opus-5", "eu-central-1"},
		{bedrockHost, "credential: k", "eu.anthropic.claude-opus-5", "eu"},
		{bedrockHost, "credential: k", "global.anthropic.claude-opus-5", "global"},
		{bedrockHost, "credential: k", "us-gov.anthropic.claude-opus-5", "us-gov"},
		{bedrockHost, "credential: k", "arn:aws:bedrock:eu-central-1:1:application-inference-profile/x", "unknown"},
		{bedrockHost, "model_regions: [{model: \"arn:*/x\", region: eu-central-1}]\n    credential: k", "arn:aws:bedrock:eu-central-1:1:application-inference-profile/x", "eu-central-1"},
		{bedrockHost, "region: eu-frankfurt\n    credential: k", "anthropic.claude-opus-5", "eu-frankfurt"},
		{mantle, "credential: k", "anthropic.claude-opus-5", "eu-central-1"},
		{mantle, "credential: k", "global.anthropic.claude-opus-5", "eu-central-1"}, // no profiles there
		{claude, "credential: k", "claude-opus-5", ""},
		{"https://europe-west4-aiplatform.googleapis.com", "credential: k", "google/gemini-3", "europe-west4"},
		{"https://aiplatform.googleapis.com", "credential: k", "google/gemini-3", "global"},
		{"https://acme.openai.azure.com", "region: eu-sweden\n    model_regions: [{model: \"*-global\", region: global}]\n    credential: k", "gpt-global", "global"},
	} {
		text := withIdentity(c.host, c.rest) + "catalog:\n  - {slug: a/b, kind: llm, routes: [{provider: a, model: \"" + c.model + "\"}]}\n"
		cfg, err := config.Load(write(t, text), env(nil))
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := cfg.NewCatalog()
		if err != nil {
			t.Fatal(err)
		}
		if got := catalog.Find("a/b").Routes[0].Region; got != c.want {
			t.Errorf("%s at %s: region %q, want %q", c.model, c.host, got, c.want)
		}
	}
	path := write(t, withIdentity(claude, "region: eu\n    credential: k"))
	if _, warnings := config.Check(path, env(nil)); len(warnings) != 1 || !strings.Contains(warnings[0].Message, "computes in the US or anywhere") {
		t.Errorf("warnings %v", warnings)
	}
}

// TestRegionsInEU crosses hosts at the edge of the EU with the prefixes of inference
// profiles: in the EU is what eu. says, and what a host in the EU computes itself.
func TestRegionsInEU(t *testing.T) {
	t.Parallel()
	hosts := map[string]bool{"eu-central-1": true, "eu-west-1": true, "eu-south-2": true, "eu-north-1": true, "eusc-de-east-1": true, "eu-west-2": false, "eu-central-2": false, "us-east-1": false, "il-central-1": false}
	prefixes := []string{"", "eu.", "us.", "us-gov.", "apac.", "jp.", "au.", "ca.", "global.", "mx.", "GLOBAL.", "arn:aws:bedrock:eu-central-1:1:inference-profile/eu."}
	for host, inside := range hosts {
		var routes strings.Builder
		for i, prefix := range prefixes {
			fmt.Fprintf(&routes, "  - {slug: a/m%d, kind: llm, routes: [{provider: a, model: \"%santhropic.claude-opus-5.1\"}]}\n", i, prefix)
		}
		text := withIdentity("https://bedrock-runtime."+host+".amazonaws.com", "credential: k") + "catalog:\n" + routes.String()
		cfg, err := config.Load(write(t, text), env(nil))
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := cfg.NewCatalog()
		if err != nil {
			t.Fatal(err)
		}
		for i, prefix := range prefixes {
			region := catalog.Find(fmt.Sprintf("a/m%d", i)).Routes[0].Region
			if want := prefix == "eu." || prefix == "" && inside; modelgate.InEU(region) != want {
				t.Errorf("%s at %s: region %s, in the EU %v, want %v", prefix, host, region, !want, want)
			}
		}
	}
	for location, inside := range map[string]bool{
		"eu": true, "europe-west1": true, "europe-west3": true, "europe-west4": true, "europe-west8": true, "europe-west9": true, "europe-west10": true, "europe-west12": true,
		"europe-north1": true, "europe-north2": true, "europe-southwest1": true, "europe-central2": true,
		"europe-west2": false, "europe-west6": false, "europe-west5": false, "europe": false, "us": false, "global": false, "eu-west-2": false, "eu-central-2": false,
		"eu-west-2a": false, "eu-central-2-x": false, "eu-west-20": true, "eu-west-3": true, "eu-": false, "eusc-": false, "EU": false, "": false,
	} {
		if modelgate.InEU(location) != inside {
			t.Errorf("%s in the EU: %v, want %v", location, !inside, inside)
		}
	}
}
