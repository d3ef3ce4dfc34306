package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// TestGuides runs the guides: every sh block of a page, in order, in one shell
// and one folder, against the real binary. A block with the name of a file
// after its language is written to that file; one that says not-run is left
// out. What a page calls the provider, the payment processor, the database and
// the gateway's address are those of the test.
func TestGuides(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d guides, %v", len(pages), err)
	}
	pages = append(pages, "../../docs/scale.md")
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream"})
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			checkLinks(t, page, string(content))
			script := guideScript(t, t.TempDir(), guideWorld(t, upstream.URL, string(content)))
			if script != "" {
				runGuide(t, script)
			}
		})
	}
}

// guideWorld puts the test's own servers in the place of a page's.
func guideWorld(t *testing.T, upstream, page string) string {
	t.Helper()
	address := testkit.FreeAddress(t)
	const database = "postgres://modelgate:PASSWORD@db.example.com:5432/modelgate"
	if strings.Contains(page, database) {
		page = strings.ReplaceAll(page, database, "'"+testkit.Postgres(t)+"'")
		page = strings.ReplaceAll(page, `"'`, `"`)
		page = strings.ReplaceAll(page, `'"`, `"`)
	}
	processor := "https://api.stripe.com"
	if strings.Contains(page, "base_url: "+processor) {
		processor = testkit.NewProcessor(t, "sk_live_operator", "sk_live_operator_new", "rk_live_reseller", "rk_live_reseller_new").URL
	}
	return strings.NewReplacer("https://api.openai.com", upstream, "https://api.stripe.com", processor, "127.0.0.1:8080", address).Replace(page)
}

// guideScript writes a page's files and joins its commands, "" for a page
// without.
func guideScript(t *testing.T, place, page string) string {
	t.Helper()
	var commands []string
	for _, s := range snippets(page) {
		language, info, _ := strings.Cut(s.language, " ")
		switch {
		case info == "not-run":
		case language == "sh" && info == "":
			commands = append(commands, s.text)
		case info != "":
			commands = append(commands, fmt.Sprintf("cat >%s <<'END-OF-FILE'\n%sEND-OF-FILE\n", info, s.text))
		default:
			t.Errorf("a block in %q is neither run, nor a file, nor marked as not run", s.language)
		}
	}
	if len(commands) == 0 {
		return ""
	}
	return fmt.Sprintf("set -eu\ncd '%s'\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n", place) + strings.Join(commands, "\n")
}

func runGuide(t *testing.T, script string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(testkit.Binary(t), filepath.Join(bin, "modelgate")); err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(append([]string{bin, os.Getenv("PATH")}, tools...), ":"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a page starts ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var output lockedBuffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, last(output.String(), 40))
	}
}

// last are the last lines of a text.
func last(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// checkLinks looks whether the files are there that a page leads to.
func checkLinks(t *testing.T, page, content string) {
	t.Helper()
	for _, part := range strings.Split(content, "](")[1:] {
		target, _, _ := strings.Cut(part, ")")
		target, _, _ = strings.Cut(target, "#")
		if target == "" || strings.Contains(target, "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(page), target)); err != nil {
			t.Errorf("%s leads to %s, which is not there", page, target)
		}
	}
}

// lockedBuffer is what a process writes while a test reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
