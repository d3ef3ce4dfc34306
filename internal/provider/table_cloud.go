package provider

import (
	"strings"

	"modelgate/internal/provider/usage"
)

// cloudFormats are the formats of the model services in the clouds of AWS and
// Google.
func cloudFormats() []Format { return []Format{bedrock(), vertex()} }

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

// vertex is the prediction API of Google Cloud. A model is PUBLISHER/MODEL; project
// and location, which are left out here, are the operator's.
func vertex() Format {
	messages := serve("messages", "/v1/publishers/{publisher}/models/{model}:rawPredict").withReader(usage.RawPredict)
	messages.Streamed = "/v1/publishers/{publisher}/models/{model}:streamRawPredict"
	count := serve("count_tokens", "/v1/publishers/anthropic/models/count-tokens:rawPredict")
	count.BareModel, count.Models = true, []ModelSource{BodyField("model").Under("anthropic")}
	messages.Same, messages.Also = []ModelSource{BodyField("model")}, anthropicTools()
	for _, d := range []*Door{&messages, &count} {
		d.AnthropicVersion, d.Header = "vertex-2023-10-16", map[string]string{"Anthropic-Version": ""}
	}
	f := Format{
		Name:    "vertex",
		GenAI:   "gcp.vertex_ai",
		BaseURL: "https://LOCATION-aiplatform.googleapis.com", // proxy path /v1/publishers/… or /v1/projects/…
		Auth:    bearer(),
		Doors: []Door{
			messages, count,
			serve("chat", "/v1/endpoints/openapi/chat/completions").withReader(usage.ChatThinkingInTotal),
		},
		Stored:       []string{"cachedContent", "cached_content"},
		StoredDeep:   []string{"gcsuri", "storageuri", "outputgcsuri", "gcssource", "retrieval", "fileuri=gs://"},
		BadModel:     withoutPublisher,
		Headers:      []string{"x-vertex-ai-llm-request-type", "x-vertex-ai-llm-shared-request-type"},
		InProject:    true,
		IncludeUsage: true,
	}
	google := []ModelSource{PathCapture("model").Under("google")}
	for _, version := range []string{"/v1", "/v1beta1"} {
		path := version + "/publishers/google/models/{model}:"
		routes := []Route{
			call(path+"generateContent", google, usage.Gemini),
			call(path+"streamGenerateContent", google, usage.Gemini),
			call(path+"embedContent", google, usage.Gemini),
			call(path+"predict", google, usage.VertexPredictions).withUnits(geminiImages),
			call(path+"countTokens", google, nil),
		}
		for i := range routes {
			routes[i].Same, routes[i].Query = geminiModels(), []string{"alt=json|sse"}
			routes[i].Free = routes[i].Reader == nil
		}
		path = version + "/publishers/anthropic/models/count-tokens:rawPredict"
		count := call(path, []ModelSource{BodyField("model").Under("anthropic")}, nil)
		count.Free = true
		routes = append(routes, count)
		path = version + "/publishers/{publisher}/models/{model}:"
		for _, verb := range []string{"rawPredict", "streamRawPredict"} {
			raw := call(path+verb, append(publishedModel(), anthropicTools()...), usage.RawPredict)
			raw.Same = []ModelSource{BodyField("model")}
			routes = append(routes, raw)
		}
		chat := call(version+"/endpoints/openapi/chat/completions", bodyModel(), usage.ChatThinkingInTotal)
		chat.IncludeUsage = true
		models := lists(version+"/publishers/{publisher}/models", version+"/publishers/{publisher}/models/{model}")
		models[0].Query, models[1].Models = []string{"pageSize", "pageToken"}, publishedModel()
		f.Allow = append(append(append(f.Allow, routes...), chat), models...)
	}
	return f
}

// publishedModel is a model whose publisher the path names too.
func publishedModel() []ModelSource { return []ModelSource{PathCapture("publisher", "model")} }

// anthropicTools are toolModels, which Anthropic's API names without its publisher.
func anthropicTools() []ModelSource { return []ModelSource{toolModels()[0].Under("anthropic")} }

// withoutPublisher refuses the name of a model that does not say whose it is.
func withoutPublisher(model string) string {
	if !strings.Contains(model, "/") {
		return "\"model\" must be publisher/model on this provider"
	}
	return ""
}
