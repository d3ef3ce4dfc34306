package provider

import (
	"slices"

	"modelgate/internal/provider/usage"
)

// localFormats are servers that an operator runs, and the format that
// assumes nothing.
func localFormats() []Format {
	return []Format{vllm(), ollama(), generic()}
}

func vllm() Format {
	return Format{
		Name:               "vllm",
		BaseURL:            "http://localhost:8000", // proxy path /v1/…
		Auth:               bearer(),
		OptionalCredential: true,
		Doors: append(compatible("/v1", "chat", "completions", "responses", "messages", "embeddings", "transcriptions", "translations"),
			serve("reranks", "/v1/rerank")),
		Allow: slices.Concat(
			calls(usage.Chat, "/rerank", "/v2/rerank", "/score", "/v1/score", "/pooling", "/classify"),
			free("/tokenize", "/detokenize"),
			slashedModels("/v1/models")),
		Stored:       []string{"previous_response_id"},
		Costs:        anyCosts(),
		IncludeUsage: true,
	}
}

func ollama() Format {
	return Format{
		Name:               "ollama",
		BaseURL:            "http://localhost:11434", // proxy path /v1/…, /api/…
		Auth:               bearer(),
		OptionalCredential: true,
		Doors:              compatible("/v1", "chat", "completions", "messages", "embeddings"),
		Allow: slices.Concat(
			calls(usage.EvalCounts, "/api/chat", "/api/generate", "/api/embed", "/api/embeddings"),
			slashedModels("/v1/models"),
			lists("/api/tags", "/api/version")),
		IncludeUsage: true,
	}
}

// generic proxies every path of a server that no other row describes. Doors
// are given to it by the configuration.
func generic() Format {
	return Format{
		Name:               "generic",
		Auth:               bearer(),
		OptionalCredential: true,
		Models:             append(bodyModel(), BodyArray("models"), Query("model")),
		Allow: []Route{{
			Pattern:  "* /**",
			Open:     true,
			Endpoint: Endpoint{Models: append(bodyModel(), BodyArray("models"), Query("model")), Reader: usage.Any},
		}},
		AnyQuery: true,
		Stored:   []string{"previous_response_id", "conversation", "container"},
		Costs:    anyCosts(),
	}
}
