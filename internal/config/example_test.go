package config

import (
	"strings"
	"testing"
)

const examplePath = "../../modelgate.example.yaml"

// The example is right as it stands, with nothing in the environment, and
// warns only of what a deployment fills in.
func TestExampleFile(t *testing.T) {
	t.Parallel()
	cfg, err := Load(examplePath, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range cfg.Warnings {
		if !strings.Contains(w.Message, "has no credential") && w.Message != "catalog_files[0]: matches no file" {
			t.Errorf("warning %s", w)
		}
	}
	catalog, err := cfg.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(catalog.Models()); n != 3 {
		t.Errorf("%d models, want 3", n)
	}
}

func TestExampleFileWithCredentials(t *testing.T) {
	t.Parallel()
	cfg, err := Load(examplePath, func(name string) (string, bool) {
		switch {
		case strings.HasSuffix(name, "_API_KEY"):
			return "a key", true
		case strings.HasSuffix(name, "_WEBHOOK_SECRET"):
			return "the secret of a webhook", true
		}
		return "", false
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) != 1 {
		t.Errorf("warnings %v, want only that of catalog_files", cfg.Warnings)
	}
	for _, p := range cfg.Providers {
		if want := p.Format != "vllm"; (len(p.keys()) > 0) != want {
			t.Errorf("%s has %d keys", p.Name, len(p.keys()))
		}
	}
}
