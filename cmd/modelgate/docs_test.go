package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// snippet is one fenced block of a page.
type snippet struct {
	language string // all of what follows the fence
	text     string
}

func snippets(page string) (all []snippet) {
	for i, part := range strings.Split("\n"+page, "\n```") {
		if i%2 == 1 {
			language, text, _ := strings.Cut(part, "\n")
			all = append(all, snippet{language, text + "\n"})
		}
	}
	return all
}

// TestClientPages runs what the pages for clients tell their readers to run,
// in order and in one place, against the real binary.
func TestClientPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/clients/*.md")
	if err != nil || len(pages) < 8 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	b := newBench(t, testkit.GatewayOptions{})
	place := t.TempDir()
	ran := 0
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range snippets(string(content)) {
			name := fmt.Sprintf("%s, snippet %d in %s", filepath.Base(page), i+1, s.language)
			if s.language == "python" && !strings.Contains(strings.ToLower(string(content)), "not run by this project's tests") {
				t.Errorf("%s does not say that it is not run", name)
			}
			cmd := s.command(t, place)
			if cmd == nil {
				continue
			}
			ran++
			cmd.Env = append(os.Environ(), "MODELGATE_URL="+b.URL, "MODELGATE_KEY="+b.key)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
	if ran < 15 {
		t.Errorf("%d snippets ran", ran)
	}
	_, rows := b.get(t, "/gw/usage?limit=100")
	if !strings.Contains(rows, `"team":"search"`) || strings.Contains(rows, `"parse_status":"unknown"`) {
		t.Errorf("rows %s", rows)
	}
}

// command is what runs a snippet; nil where nothing does. Shell snippets run in
// the place, the others where their imports are found.
func (s snippet) command(t *testing.T, place string) *exec.Cmd {
	t.Helper()
	switch s.language {
	case "sh":
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", s.text)
		cmd.Dir = place
		return cmd
	case "js":
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module")
		cmd.Dir, cmd.Stdin = nodeModules(t), strings.NewReader(s.text)
		return cmd
	case "go":
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.CommandContext(t.Context(), "go", "run", file)
	}
	return nil
}
