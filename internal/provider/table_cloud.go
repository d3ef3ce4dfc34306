package provider

import (
	"strings"

	"modelgate/internal/provider/usage"
)

// cloudFormats are the formats of the model services in the clouds of AWS and
// Google.
func cloudFormats() []Format { return []Format{bedrock()} }

// bedrock is the runtime host of Amazon Bedrock. Its doors are paths of the models'
// own APIs; what it adds to them is on the proxy.
func bedrock() Format {
	f := Format{
		Name:    "bedrock",
		GenAI:   "aws.bedrock",
		BaseURL: "https://bedrock-runtime.REGION.amazonaws.com", // proxy path /model/{model}/converse
		Auth:    bearer(),
		Doors: []Door{
			serve("chat", "/openai/v1/chat/completions"),
			serve("responses", "/openai/v1/responses"),
			serve("messages", "/anthropic/v1/messages"),
			serve("count_tokens", "/anthropic/v1/messages/count_tokens"),
		},
		Allow:        lists("/openai/v1/models"),
		Stored:       []string{"guardrailConfig", "amazon-bedrock-guardrailConfig", "promptVariables", "previous_response_id", "conversation", "container"},
		StoredDeep:   []string{"s3location", "s3uri"},
		BadModel:     noARN,
		Headers:      []string{"x-amzn-bedrock-accept", "x-amzn-bedrock-trace", "x-amzn-bedrock-performanceconfig-latency", "x-amzn-bedrock-service-tier"},
		AWSErrors:    true,
		IncludeUsage: true,
	}
	model := append([]ModelSource{PathCapture("model")}, toolModels()...)
	for _, r := range []Route{
		call("/model/{model}/converse", model[:1], usage.Converse),
		call("/model/{model}/converse-stream", model[:1], usage.Converse),
		call("/model/{model}/invoke", model, usage.Invoke),
		call("/model/{model}/invoke-with-response-stream", model, usage.Invoke),
		call("/model/{model}/count-tokens", model[:1], nil),
	} {
		r.Same, r.Free = []ModelSource{BodyField("model")}, r.Reader == nil
		f.Allow = append(f.Allow, r)
	}
	return f
}

// noARN refuses an ARN, which does not say which model runs.
func noARN(model string) string {
	if strings.HasPrefix(strings.ToLower(model), "arn:") {
		return "name the model by its id, not by an ARN"
	}
	return ""
}
