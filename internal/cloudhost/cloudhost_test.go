package cloudhost_test

import (
	"testing"

	"modelgate/internal/cloudhost"
)

func TestAWS(t *testing.T) {
	t.Parallel()
	for host, want := range map[string][2]string{
		"bedrock-runtime.eu-central-1.amazonaws.com":           {"bedrock", "eu-central-1"},
		"bedrock-runtime-fips.us-gov-west-1.amazonaws.com":     {"bedrock", "us-gov-west-1"},
		"bedrock-runtime.cn-north-1.amazonaws.com.cn":          {"bedrock", "cn-north-1"},
		"bedrock-mantle.eu-central-1.api.aws":                  {"bedrock-mantle", "eu-central-1"},
		"aws-external-anthropic.us-east-1.api.aws":             {"aws-external-anthropic", "us-east-1"},
		"vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com":  {},
		"bedrock-runtime.amazonaws.com":                        {},
		"bedrock-runtime.eu-west-1.amazonaws.com.evil.example": {},
		"eu-west-1.amazonaws.com":                              {},
		".eu-west-1.amazonaws.com":                             {},
		"127.0.0.1":                                            {},
	} {
		service, region, ok := cloudhost.AWS(host)
		if service != want[0] || region != want[1] || ok != (want[0] != "") {
			t.Errorf("AWS(%s) = %q, %q, %v, want %q", host, service, region, ok, want)
		}
	}
}

func TestVertex(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"europe-west4-aiplatform.googleapis.com": "europe-west4",
		"aiplatform.eu.rep.googleapis.com":       "eu",
		"aiplatform.googleapis.com":              "global",
		"-aiplatform.googleapis.com":             "",
		"generativelanguage.googleapis.com":      "",
		"a.b-aiplatform.googleapis.com":          "",
		"aiplatform.eu.rep.googleapis.com.evil":  "",
	} {
		location, ok := cloudhost.Vertex(host)
		if ok != (want != "") || ok && location != want {
			t.Errorf("Vertex(%s) = %q, %v, want %q", host, location, ok, want)
		}
	}
}

func TestAzureScope(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://acme.openai.azure.com":                 "https://cognitiveservices.azure.com/.default",
		"https://ACME.cognitiveservices.azure.com:443/": "https://cognitiveservices.azure.com/.default",
		"https://acme.services.ai.azure.com/anthropic":  "https://ai.azure.com/.default",
		"https://acme.azure-api.net":                    "",
	} {
		if got := cloudhost.AzureScope(cloudhost.Of(address)); got != want {
			t.Errorf("AzureScope(%s) = %q, want %q", address, got, want)
		}
	}
}
