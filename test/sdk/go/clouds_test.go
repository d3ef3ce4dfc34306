package clients

import (
	"context"
	"testing"

	anthropicbedrock "github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	openaibedrock "github.com/openai/openai-go/v3/bedrock"
	"github.com/openai/openai-go/v3/option"
)

const (
	region       = "eu-central-1"
	bedrockModel = "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
	geminiModel  = "gemini-2.5-flash"
)

// TestClouds calls with the clouds' own clients. AWS's and Azure's send a key over
// TLS only, so the gateway's address is https; SSL_CERT_FILE has its certificate.
func TestClouds(t *testing.T) {
	check(t, map[string]func(url, key string) client{
		"aws-sdk-go-v2, Converse":         openConverse,
		"aws-sdk-go-v2, InvokeModel":      openInvoke,
		"anthropic-sdk-go, Mantle":        openMantle,
		"openai-go, Bedrock":              openOpenAIBedrock,
		"openai-go, Azure":                openAzure,
		"google.golang.org/genai, Vertex": openGenAI,
	})
}

// broken is a client that could not be made.
type broken struct{ err error }

func (b broken) ask(context.Context, string) (string, error)    { return "", b.err }
func (b broken) stream(context.Context, string) (string, error) { return "", b.err }
func (b broken) refusal(error) (int, string)                    { return 0, "" }

func openMantle(url, key string) client {
	c, err := anthropicbedrock.NewMantleClient(context.Background(), anthropicbedrock.MantleClientConfig{
		APIKey: key, AWSRegion: region, BaseURL: url + "/bedrock/anthropic",
	}, anthropicoption.WithMaxRetries(0))
	if err != nil {
		return broken{err}
	}
	return messages{c.Messages, bedrockModel}
}

func openOpenAIBedrock(url, key string) client {
	c, err := openaibedrock.NewClient(context.Background(), openaibedrock.Config{
		Endpoint: openaibedrock.EndpointRuntime, APIKey: key, AWSRegion: region, BaseURL: url + "/bedrock/openai/v1",
	}, option.WithMaxRetries(0))
	if err != nil {
		return broken{err}
	}
	return chat{c, bedrockModel}
}

func openAzure(url, key string) client {
	return chat{openai.NewClient(azure.WithEndpoint(url+"/azure", "2024-10-21"), azure.WithAPIKey(key), option.WithMaxRetries(0)), "deployment-1"}
}
