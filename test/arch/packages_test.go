package arch

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxPackageLines is how many lines of code a package may have, blank lines,
// comments and tests aside: one person should be able to hold it in mind.
const maxPackageLines = 3500

// retired are package names that said nothing to a reader from the field, and
// what they are called now.
var retired = map[string]string{
	"relay": "gateway", "manage": "selfservice", "pages": "dashboard", "web": "httpx", "work": "worker", "keyring": "auth", "throttle": "ratelimit",
	"purse": "budget", "seal": "secrets", "contract": "openapi", "simulate": "simulator", "prove": "test/e2e", "attack": "test/security",
	"floors": "test/arch", "gatetest": "test/testkit", "lane": "http1server", "wire": "http1", "trace": "tracing", "giveway": "yield", "life": "cancelctx",
}

// TestPackages holds the size, the name and the description of every package.
func TestPackages(t *testing.T) {
	t.Parallel()
	root, packages := load(t)
	documents := readDocuments(t, root)
	for _, p := range packages {
		report(t, checkDescription(p, documents))
		if floor[p.name] != testOnly {
			report(t, checkPackage(p))
		}
	}
}

// readDocuments is the text in which a reader looks for a package.
func readDocuments(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"doc.go", "CONTRIBUTING.md", "docs/architecture.md", "docs/adr/*.md", "Makefile"} {
		paths, err := filepath.Glob(filepath.Join(root, name))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no documents %s: %v", name, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

// checkDescription wants a comment that says what the package is, and a document
// in which a reader finds it. A part of a package goes with the package.
func checkDescription(p *source, documents string) (problems []string) {
	described := slices.ContainsFunc(p.files, func(f file) bool { return !f.test && f.syn.Doc != nil })
	if !described {
		problems = append(problems, fmt.Sprintf("%s has no package comment: say what it is for in its doc.go", p.name))
	}
	named := func(name string) bool {
		return regexp.MustCompile(`(^|[^/\w])` + regexp.QuoteMeta(name) + `($|[^/\w])`).MatchString(documents)
	}
	for name := p.name; !slices.Contains([]string{"", ".", "internal", "test", "cmd"}, name); name = path.Dir(name) {
		short := strings.TrimPrefix(name, "internal/")
		if named(name) || strings.Contains(short, "/") && named(short) {
			return problems
		}
	}
	if p.name != "" {
		problems = append(problems, fmt.Sprintf("%s is named neither in doc.go nor in docs/architecture.md, docs/adr or CONTRIBUTING.md: add it where a reader looks for it", p.name))
	}
	return problems
}

// TestLongest lists the longest files and functions, with -v.
func TestLongest(t *testing.T) {
	t.Parallel()
	_, packages := load(t)
	var files, funcs []measure
	for _, p := range packages {
		for _, f := range p.files {
			if !f.test {
				files = append(files, measure{f.lines, f.path})
			}
		}
		for f, fn := range functions(p) {
			funcs = append(funcs, measure{p.length(fn), f.path + " " + fn.Name.Name})
		}
	}
	for _, list := range [][]measure{files, funcs} {
		slices.SortFunc(list, func(a, b measure) int { return b.lines - a.lines })
		for _, m := range list[:min(10, len(list))] {
			t.Logf("%4d lines: %s", m.lines, m.name)
		}
	}
}

// measure is how long something is.
type measure struct {
	lines int
	name  string
}

// checkPackage judges the size and the name of a package.
func checkPackage(p *source) (problems []string) {
	lines := 0
	for _, f := range p.files {
		if !f.test {
			lines += f.code
		}
	}
	if lines > maxPackageLines {
		problems = append(problems, fmt.Sprintf("%s has %d lines of code, more than %d: split it", p.name, lines, maxPackageLines))
	}
	if name, ok := retired[path.Base(p.name)]; ok {
		problems = append(problems, fmt.Sprintf("%s: a package of this name is %s", p.name, name))
	}
	return problems
}

// The rules themselves can fail.
func TestPackageRules(t *testing.T) {
	t.Parallel()
	sized := func(name string, lines int) *source { return &source{name: name, files: []file{{code: lines}}} }
	for _, c := range []struct {
		p    *source
		want int
	}{
		{sized("internal/x", maxPackageLines), 0},
		{sized("internal/x", maxPackageLines+1), 1},
		{sized("internal/store", 10), 0},
		{sized("internal/purse", 10), 1},
	} {
		if got := checkPackage(c.p); len(got) != c.want {
			t.Errorf("%s: %q, want %d problems", c.p.name, got, c.want)
		}
	}
}

func TestCodeLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                                       0,
		"package p\n":                            1,
		"package p // why\n\n// a\n/* b\nc */\n": 1,
		"package p\nvar s = `a\n\n// b`\n":       4,
		"package p\nvar n = /* a\nb */ 1\n":      3,
	} {
		if got := codeLines([]byte(text)); got != want {
			t.Errorf("%q has %d lines of code, want %d", text, got, want)
		}
	}
}

func TestDescriptionRules(t *testing.T) {
	t.Parallel()
	const documents = "internal/store and provider hold it; \ninternal, gateway: the call path; internal/jobsx (http1/test)"
	for name, want := range map[string]int{
		"internal/store": 1, "internal/store/part": 1, "internal/provider": 2, "internal/jobs": 2, "internal/http1/test": 1,
	} {
		if got := checkDescription(&source{name: name}, documents); len(got) != want {
			t.Errorf("%s: %q, want %d problems", name, got, want)
		}
	}
	if got := checkDescription(pkg(t, "internal/store", ""), documents); len(got) != 1 {
		t.Errorf("a package without a comment: %q", got)
	}
}
