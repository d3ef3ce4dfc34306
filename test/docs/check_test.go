package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"modelgate/internal/config"
	"modelgate/test/testkit"
)

// readOnly are the languages that are not run, with the reason.
var readOnly = map[string]string{
	"yaml":    "a configuration, which is checked",
	"json":    "data, which is parsed",
	"python":  "the tests need no Python; its models and variables are checked",
	"toml":    "the configuration of another program; its models and variables are checked",
	"mermaid": "a diagram",
	"text":    "no commands",
}

// command is the beginning of a line that a reader would paste.
var command = regexp.MustCompile(`(?m)^\s*(\$ |curl |modelgate |export |docker |kubectl |make \S+$)`)

// checkBlocks checks what the blocks of a page say, whether they run or not.
func checkBlocks(t *testing.T, p *page) {
	t.Helper()
	for _, b := range p.blocks {
		where := fmt.Sprintf("%s:%d", p.name, b.line)
		if _, known := readOnly[b.language]; !known && !b.runs() && b.agent == "" && b.notRun == "" && b.file == "" && !b.output {
			t.Errorf("%s: a block in %q is neither run nor checked; say why in a comment before it", where, b.language)
		}
		for _, problem := range slices.Concat(p.wrongModels(t, b), wrongVariables(b)) {
			t.Errorf("%s: %s", where, problem)
		}
		if b.notRun != "" || b.output || b.file != "" {
			continue
		}
		switch {
		case b.language == "json" && !json.Valid([]byte(b.text)):
			t.Errorf("%s: not JSON", where)
		case b.language == "text" && command.MatchString(b.text):
			t.Errorf("%s: a block in text holds a command", where)
		case b.language == "yaml":
			checkConfig(t, where, b.text)
		}
	}
	checkLinks(t, p)
}

func checkConfig(t *testing.T, where, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "modelgate.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := testkit.RunBinary(t, nil, "config", "check", "--config", file); code != 0 {
		t.Errorf("%s: config check: exit %d\n%s%s", where, code, stdout, stderr)
	}
}

// models are those that an example may name: slugs of the starter catalog and
// of the simulator, and the names that their providers have for them.
var models = sync.OnceValues(func() (map[string]bool, error) {
	starter, err := config.Starter(func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, m := range starter {
		known[m.Slug] = true
		for _, r := range m.Routes {
			known[r.Model] = true
		}
	}
	for _, folder := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range simulated.FindAllStringSubmatch(string(text), -1) {
				known[m[1]] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return known, nil
})

var (
	simulated = regexp.MustCompile(`"(simulated/[\w.-]+|sim-[\w.-]+)"`) // in the sources of dev
	declared  = regexp.MustCompile(`(?:slug|model): "?([\w./:-]+)`)     // in a configuration
	slug      = regexp.MustCompile(`(?:^|[^\w/@.$-])((?:simulated|openai|anthropic|google|mistralai|cohere|deepseek|x-ai)/[\w.:-]+)`)
	member    = regexp.MustCompile(`(?i)\bmodel["']?\s*[:=]\s*["'\x60]([\w./:@-]+)["'\x60]`)
	// A route names the model as its provider does.
	route = regexp.MustCompile(`\{provider: [^,}]+, model: [^,}]+`)
)

// wrongModels are the models of a block that no reader has: neither those of
// the starter catalog, nor the simulator's, nor declared on the page under the
// reader's own name.
func (p *page) wrongModels(t *testing.T, b *block) (problems []string) {
	t.Helper()
	known, err := models()
	if err != nil {
		t.Fatal(err)
	}
	own := make(map[string]bool)
	for _, other := range p.blocks {
		if other.language != "yaml" {
			continue
		}
		for _, m := range declared.FindAllStringSubmatch(other.text, -1) {
			own[m[1]] = !slug.MatchString(m[1])
		}
	}
	text := b.text
	if b.language == "yaml" {
		text = route.ReplaceAllString(text, "")
	}
	for _, m := range slices.Concat(slug.FindAllStringSubmatch(text, -1), member.FindAllStringSubmatch(text, -1)) {
		// Clients that know several providers put the name of this one first.
		name := strings.TrimPrefix(m[1], "modelgate/")
		if !known[name] && !own[name] {
			problems = append(problems, fmt.Sprintf("model %s is neither in the starter catalog nor simulated", m[1]))
		}
	}
	return problems
}

var (
	bearer  = regexp.MustCompile(`(?:Bearer|-key:|api_key=|apiKey:)\s*["']?\$\{?([A-Z_]+)`)
	fromEnv = regexp.MustCompile(`(?:process\.env\.|Getenv\("|environ\["|env_key = ")(\w+)`)
)

// wrongVariables are variables for the gateway's key or address that have
// another name than on every other page.
func wrongVariables(b *block) (problems []string) {
	if b.language == "yaml" {
		return nil // its keys are those of providers
	}
	for _, m := range slices.Concat(bearer.FindAllStringSubmatch(b.text, -1), fromEnv.FindAllStringSubmatch(b.text, -1)) {
		if m[1] != "MODELGATE_KEY" && m[1] != "MODELGATE_URL" {
			problems = append(problems, "the gateway's key is in MODELGATE_KEY and its address in MODELGATE_URL, not "+m[1])
		}
	}
	return problems
}
