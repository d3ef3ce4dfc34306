// Package demo has the providers and models of `modelgate dev`: simulated ones,
// and real ones whose keys are in the environment.
package demo

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/simulator"
)

// realProvider is a provider that is added when its key is in the
// environment.
type realProvider struct{ name, format, baseURL, variable string }

var realProviders = [...]realProvider{
	{"openai", "openai", "https://api.openai.com", "OPENAI_API_KEY"},
	{"anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"},
	{"gemini", "gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"},
}

// simulatedProviders are the simulated providers' names and formats.
var simulatedProviders = [...]struct{ name, format string }{
	{"sim-openai", "openai"}, {"sim-anthropic", "anthropic"}, {"sim-gemini", "gemini"}, {"sim-cohere", "cohere"}, {"sim-bedrock", "bedrock"},
}

// Serve serves the simulated providers on a free loopback port, each under its own
// name.
func Serve() (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	for _, p := range simulatedProviders {
		handler := simulator.New(simulator.Options{Name: p.name, Now: time.Now})
		mux.Handle("/"+p.name+"/", http.StripPrefix("/"+p.name, handler))
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(listener) }() // ends with Close
	return "http://" + listener.Addr().String(), func() { _ = s.Close() }, nil
}

// Configure gives a configuration the simulated providers at an address of Serve
// and their models, and the real ones whose keys lookup finds, as os.LookupEnv does.
func Configure(cfg *config.Config, simulator string, lookup func(string) (string, bool)) error {
	for _, p := range simulatedProviders {
		cfg.Providers = append(cfg.Providers, config.Provider{
			Name: p.name, Format: p.format, BaseURL: simulator + "/" + p.name, Region: "eu-simulated",
			Credential: config.NewSecret("simulated"),
		})
	}
	models, err := simulatedModels()
	if err != nil {
		return err
	}
	cfg.Catalog = models
	real := make(map[string]bool)
	for _, p := range realProviders {
		credential, ok := lookup(p.variable)
		if !ok || credential == "" {
			continue
		}
		cfg.Providers = append(cfg.Providers, config.Provider{
			Name: p.name, Format: p.format, BaseURL: p.baseURL, Region: "us", Credential: config.NewSecret(credential),
		})
		real[p.name] = true
	}
	if p, ok := bedrock(lookup); ok {
		cfg.Providers = append(cfg.Providers, p)
		real[p.Name] = true
	}
	starter, err := config.Starter(func(provider string) bool { return real[provider] })
	cfg.Catalog = append(cfg.Catalog, starter...)
	return err
}

// bedrock is Amazon Bedrock, where an API key and a region of it are in the
// environment. An identity of the machine is never used.
func bedrock(lookup func(string) (string, bool)) (config.Provider, bool) {
	key, _ := lookup("AWS_BEARER_TOKEN_BEDROCK")
	region, _ := lookup("AWS_REGION")
	return config.Provider{
		Name: "bedrock", Format: "bedrock", BaseURL: "https://bedrock-runtime." + region + ".amazonaws.com", Region: region,
		ModelRegions: config.BedrockProfiles(), Credential: config.NewSecret(key),
	}, key != "" && region != ""
}

// simulatedModel is a model that costs round figures, so that a bill can be
// checked by hand.
type simulatedModel struct {
	slug, provider, native string
	kind                   modelgate.ModelKind
	prices                 map[modelgate.Unit]string
}

// simulatedModels are the models of the simulated providers.
func simulatedModels() ([]*modelgate.Model, error) {
	tokens := map[modelgate.Unit]string{modelgate.UnitInput: "1", modelgate.UnitCachedInput: "0.1", modelgate.UnitOutput: "2"}
	list := []simulatedModel{
		{"simulated/chat", "sim-openai", "sim-chat", modelgate.LLM, tokens},
		{"simulated/claude", "sim-anthropic", "sim-claude", modelgate.LLM, tokens},
		{"simulated/gemini", "sim-gemini", "sim-gemini", modelgate.LLM, tokens},
		{"simulated/bedrock", "sim-bedrock", "anthropic.sim-claude", modelgate.LLM, tokens},
		{"simulated/embedding", "sim-openai", "sim-embedding", modelgate.Embedding, tokens},
		{"simulated/image", "sim-openai", "gpt-image-sim", modelgate.Image, map[modelgate.Unit]string{modelgate.UnitImage: "0.04"}},
		{"simulated/video", "sim-openai", "sim-video", modelgate.Video, map[modelgate.Unit]string{modelgate.UnitSecond: "0.1"}},
		{"simulated/rerank", "sim-cohere", "sim-rerank", modelgate.Rerank, map[modelgate.Unit]string{modelgate.UnitSearch: "2"}},
		{"simulated/speech", "sim-openai", "sim-tts", modelgate.Audio, map[modelgate.Unit]string{modelgate.UnitCharacters: "15"}},
		{"simulated/transcribe", "sim-openai", "sim-transcribe", modelgate.Audio, map[modelgate.Unit]string{modelgate.UnitSecond: "0.0001", modelgate.UnitInput: "1", modelgate.UnitOutput: "2", modelgate.UnitAudioInput: "1"}},
	}
	var models []*modelgate.Model
	for _, m := range list {
		price := new(modelgate.Price)
		for unit, usd := range m.prices {
			amount, err := modelgate.ParseUSD(usd)
			if err == nil {
				err = price.Base.Set(unit, amount)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.slug, err)
			}
		}
		price.Prepare()
		model := &modelgate.Model{
			Slug: m.slug, DisplayName: "Simulated " + strings.TrimPrefix(m.slug, "simulated/"), Kind: m.kind,
			Routes: []modelgate.Route{{Provider: m.provider, Model: m.native}}, Price: price,
		}
		if m.kind == modelgate.LLM {
			model.ContextLength, model.MaxOutput = 128_000, 16_000
		}
		models = append(models, model)
	}
	return models, nil
}
