package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/secrets"
	"modelgate/internal/server"
	"modelgate/internal/simulator"
	"modelgate/internal/store"
)

// devCommand is `modelgate dev`.
type devCommand struct {
	Data   string `name:"data" default:"modelgate-dev" placeholder:"DIR" help:"Where keys and books are kept (${default})."`
	Listen string `name:"listen" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to listen on (${default})."`
}

// realProvider is a provider that dev adds when its key is in the
// environment.
type realProvider struct{ name, format, baseURL, variable string }

var realProviders = [...]realProvider{
	{"openai", "openai", "https://api.openai.com", "OPENAI_API_KEY"},
	{"anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"},
	{"gemini", "gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"},
}

// simulatedProviders are the simulated providers' names and formats.
var simulatedProviders = [...]struct{ name, format string }{
	{"sim-openai", "openai"}, {"sim-anthropic", "anthropic"}, {"sim-gemini", "gemini"}, {"sim-cohere", "cohere"},
}

// Run serves until a signal ends the process.
func (c *devCommand) Run(env *Environment) error {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	simulator, stop, err := startSimulator()
	if err != nil {
		return err
	}
	defer stop()
	cfg, err := c.config(env, simulator)
	if err != nil {
		return err
	}
	s, err := server.New(env.Context, env.serverOptions(cfg, ""))
	if err != nil {
		return err
	}
	key, err := demo(env.Context, s.Store(), s.Catalog())
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return s.Run(env.Context, func(addr net.Addr) { c.greet(env.Stdout, addr, key, len(cfg.Catalog)) })
}

// startSimulator serves the simulated providers on a free loopback port, each
// under its own name.
func startSimulator() (url string, stop func(), err error) {
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

// config is the configuration of dev: the simulated providers and their
// models, and the real ones whose keys are in the environment.
func (c *devCommand) config(env *Environment, simulator string) (*config.Config, error) {
	cfg := config.Default()
	cfg.Server.Listen, cfg.Server.DataDir, cfg.Server.DrainDelay = c.Listen, c.Data, 0
	cfg.Database.URL = config.NewSecret("sqlite:modelgate.db")
	if err := keepMasterKey(cfg); err != nil {
		return nil, err
	}
	for _, p := range simulatedProviders {
		cfg.Providers = append(cfg.Providers, config.Provider{
			Name: p.name, Format: p.format, BaseURL: simulator + "/" + p.name, Region: "eu-simulated",
			Credential: config.NewSecret("simulated"),
		})
	}
	models, err := simulatedModels()
	if err != nil {
		return nil, err
	}
	cfg.Catalog = models
	real := make(map[string]bool)
	for _, p := range realProviders {
		credential, ok := env.Lookup(p.variable)
		if !ok || credential == "" {
			continue
		}
		cfg.Providers = append(cfg.Providers, config.Provider{
			Name: p.name, Format: p.format, BaseURL: p.baseURL, Region: "us", Credential: config.NewSecret(credential),
		})
		real[p.name] = true
	}
	starter, err := config.Starter(func(provider string) bool { return real[provider] })
	if err != nil {
		return nil, err
	}
	cfg.Catalog = append(cfg.Catalog, starter...)
	return cfg, c.leaveConfig()
}

// keepMasterKey gives dev a master key that lies in its data directory, made
// at the first start, so that the key of a payment processor can be left there.
// A damaged one is a fault: what lies under it must not be given up in silence.
func keepMasterKey(cfg *config.Config) error {
	path := filepath.Join(cfg.Server.DataDir, "master.key")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if _, err := server.GeneratedKey(cfg, "master.key", func(string) {}); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := secrets.ParseKey(string(text)); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	cfg.MasterKey = config.NewSecret(strings.TrimSpace(string(text)))
	return nil
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

const devConfig = `# Written by "modelgate dev" so that the operator's commands find this data:
#   modelgate client list --config FILE
#   modelgate key issue --config FILE --client ID
server:
  data_dir: .
database:
  url: sqlite:modelgate.db
`

// configPath is a configuration file for the operator's commands.
func (c *devCommand) configPath() string { return filepath.Join(c.Data, "modelgate.yaml") }

func (c *devCommand) leaveConfig() error {
	if _, err := os.Stat(c.configPath()); err == nil {
		return nil
	}
	return os.WriteFile(c.configPath(), []byte(devConfig), 0o600)
}

// demoName is the organization that dev makes.
const demoName = "demo"

// demo makes the organization and its key on the first start with a data
// directory; the secret is empty later.
func demo(ctx context.Context, db *store.DB, catalog *modelgate.Catalog) (secret string, err error) {
	clients, err := db.Clients(ctx)
	if err != nil {
		return "", err
	}
	client := newClient(demoName, time.Now())
	if i := slices.IndexFunc(clients, func(c modelgate.Client) bool { return c.Name == demoName }); i >= 0 {
		client = clients[i]
		if keys, _, err := db.Keys(ctx, client.ID, store.KeyList{Limit: 1}); err != nil || len(keys) > 0 {
			return "", err
		}
	} else if err := db.CreateClient(ctx, client, audit("dev", "client.create", "client", string(client.ID), client)); err != nil {
		return "", err
	}
	issued, err := issueKey(ctx, db, client.ID, modelgate.KeyRequest{}, catalog)
	return issued.Key, err
}

// greet tells a newcomer what there is and what to try.
func (c *devCommand) greet(w io.Writer, addr net.Addr, key string, models int) {
	base := "http://" + addr.String()
	if !server.Loopback(addr.String()) {
		fmt.Fprintf(w, "\nWARNING: dev listens on %s, which other machines can reach. It is made for trying things out:\nits key is printed below and its providers are simulated. Use `modelgate serve` for anything else.\n", addr)
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		data = c.Data
	}
	fmt.Fprintf(w, "\nModelgate is listening on %s with %d models.\nKeys and books are in %s.\n", base, models, data)
	if key == "" {
		fmt.Fprintf(w, "The key of organization %s was shown at the first start. For another one:\n\n  modelgate client list --config %s\n  modelgate key issue --config %s --client ID\n\n", demoName, c.configPath(), c.configPath())
		return
	}
	fmt.Fprintf(w, `
The key of organization %s, shown only now:

  %s

The dashboard, which you sign in to with it:

  %s/dashboard

Try it:

  curl %s/v1/chat/completions \
    -H "Authorization: Bearer %s" \
    -H "Content-Type: application/json" \
    -d '{"model":"simulated/chat","messages":[{"role":"user","content":"Hello, gateway"}]}'

  curl %s/gw/usage -H "Authorization: Bearer %s"

OpenAI SDK (Python):

  from openai import OpenAI
  client = OpenAI(base_url="%s/v1", api_key="%s")
  client.chat.completions.create(model="simulated/chat", messages=[{"role": "user", "content": "Hello, gateway"}])

Anthropic SDK (Python):

  from anthropic import Anthropic
  client = Anthropic(base_url="%s", api_key="%s")
  client.messages.create(model="simulated/claude", max_tokens=100, messages=[{"role": "user", "content": "Hello, gateway"}])

`, demoName, key, base, base, key, base, key, base, key, base, key)
}
