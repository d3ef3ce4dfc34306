package gateway

import "testing"

func TestViaSDK(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"OpenAI/JS 7.55.0": true, "OpenAI/Python 3.3.1": true, "AsyncOpenAI/Python 3.3.1": true, "AzureOpenAI/JS 7": true, "AsyncAzureOpenAI/Python 3": true,
		"OpenAI/Go 3.95.0": true, "OpenAI/Java 4": true, "OpenAI/2.1.0 (.NET 9.0)": true, "MyClient/Python 3.3.1": true, "Anthropic/JS 1.11.0": true,
		"AsyncAnthropic/Python 2.0.0": true, "AnthropicBedrock/JS 1": true, "Anthropic/Go 2.12.0": true, "ai/7.0.173 ai-sdk-provider-utils/5.0.81 node.js/24": true,
		"ai-sdk-openai/4.0.118 node.js/24": true, "ai-sdk/openai/1.0": true, "langchainjs-openai/1.0.0 ((node/v24.21.0; linux; x64))": true,
		"google-genai-sdk/3.1.0 gl-node/v24.21.0": true, "cohere-ai/8.1.0": true, "github.com/cohere-ai/cohere-go/2.16.0": true, "voyageai/0.4.0": true,
		"mistral-client-typescript/2.7.0": true, "Groq/JS 1.6.0": true, "Together/JS 0.52.0": true, "replicate-javascript/1.4.0": true, "@fal-ai/client/1.10.1": true,
		"speakeasy-sdk/typescript 1.3.19 2.914.0 1.0.0 @openrouter/sdk": true, "claude-cli/2.0.1 (external, cli)": true, "Modelgate/Go 1": true, "Modelgate/JS 1": true,
		"": false, "curl/8.5.0": false, "Go-http-client/1.1": false, "Mozilla/5.0 (X11; Linux)": false, "node": false, "python-requests/2.32": false,
		"PostmanRuntime/7.4": false, "Java/21": false, "OpenAI": false, "Go Client/1": false,
	}
	for agent, want := range tests {
		if got := viaSDK(agent); got != want {
			t.Errorf("viaSDK(%q) = %v, want %v", agent, got, want)
		}
	}
}
