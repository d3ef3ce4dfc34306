package openapi

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is made from the contract anew")

// generated are the files made from the contract, by their place in the
// repository.
func generated(c *Contract) map[string][]byte {
	return map[string][]byte{
		"docs/reference/api.md":         markdown(c),
		"client/api.go":                 goClient(c),
		"clients/typescript/src/api.ts": tsClient(c),
	}
}

// TestGenerated holds what is made from the contract against it; with -update
// it is made anew.
func TestGenerated(t *testing.T) {
	t.Parallel()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range generated(c) {
		path := filepath.Join("../..", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the contract says (%v); run go test ./internal/openapi -run Generated -update", name, err)
		}
	}
}

// markdown is the reference as a page of the documentation.
func markdown(c *Contract) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# API\n\n<!-- Made from internal/openapi/api by go test ./internal/openapi -run Generated -update. -->\n\n%s", c.Description)
	line("A running gateway serves this as `GET /openapi.json` and, for people, `GET /openapi.html`.")
	ref := func(name string) string { return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)) }
	for _, tag := range c.Tags {
		line("\n## %s\n\n%s", tag.Name, tag.Description)
		for _, op := range c.Of(tag.Name) {
			line("\n### %s %s\n\n%s. %s", op.Method, op.Path, op.Summary, right(op))
			if op.Description != "" {
				line("\n%s", strings.TrimSpace(op.Description))
			}
			if len(op.Parameters) > 0 {
				line("\n| parameter | in | type | |\n|---|---|---|---|")
			}
			for _, p := range op.Parameters {
				line("| `%s`%s | %s | %s | %s |", p.Name, map[bool]string{true: ", required"}[p.Required], p.In, Shape(&p.Schema, ref), about(p.Description, p.Schema))
			}
			if in := op.Takes(); in != nil {
				line("\nBody: %s.", Shape(in, ref))
			}
			if out := op.Gives(); out != nil {
				line("\nAnswer: %s.", Shape(out, ref))
			}
		}
	}
	line("\n## Schemas")
	for _, s := range c.Schemas {
		line("\n### %s", s.Name)
		if text := about(s.Value.Description, s.Value); text != "" {
			line("\n%s", text)
		}
		if len(s.Value.Properties) > 0 {
			line("\n| member | type | |\n|---|---|---|")
		}
		for _, p := range s.Value.Properties {
			line("| `%s`%s | %s | %s |", p.Name, map[bool]string{false: ", optional"}[s.Value.Needs(p.Name)], Shape(&p.Value, ref), about(p.Value.Description, p.Value))
		}
	}
	return b.Bytes()
}

func right(op Operation) string {
	text := "Any valid key."
	switch {
	case op.Public():
		text = "No key."
	case op.Scope() != "":
		text = fmt.Sprintf("Scope `%s`.", op.Scope())
	}
	if op.For != "" {
		text += " Not for keys bound to a sub-account."
	}
	return text
}

func about(description string, s Schema) string {
	facts := Facts(s)
	switch {
	case facts == "":
	case description == "":
		description = strings.ToUpper(facts[:1]) + facts[1:] + "."
	default:
		description += " " + strings.ToUpper(facts[:1]) + facts[1:] + "."
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(description), "\n", " "), "|", "\\|")
}
