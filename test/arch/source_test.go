package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of this module; the packages below it are named without
// it, and the root package is "".
const module = "modelgate"

// source is one package as its files stand, whatever platform they are for.
type source struct {
	name  string // relative to the module
	fset  *token.FileSet
	files []file
}

type file struct {
	path  string // relative to the module's folder
	syn   *ast.File
	lines int // all of them
	code  int // lines that are neither blank nor a comment alone
	test  bool
}

// codeLines counts the lines that hold a token: a bound on them makes nobody save
// on comments.
func codeLines(text []byte) int {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(f, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		first := f.Line(pos)
		for line := first; line <= first+strings.Count(strings.TrimSuffix(lit, "\n"), "\n"); line++ {
			lines[line] = true
		}
	}
}

// imports are the import paths of the package, of its tests or of the rest.
func (s *source) imports(tests bool) []string {
	var out []string
	for _, f := range s.files {
		if f.test != tests {
			continue
		}
		for _, spec := range f.syn.Imports {
			path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// own is the name of an imported package of this module.
func own(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// thirdParty reports whether an import path is another module's.
func thirdParty(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}

// load reads every package of the module.
func load(t *testing.T) (root string, packages []*source) {
	t.Helper()
	root = strings.TrimSpace(string(run(t, ".", "go", "list", "-m", "-f", "{{.Dir}}")))
	for line := range strings.Lines(string(run(t, root, "go", "list", "-e", "-f", "{{.ImportPath}}\t{{.Dir}}", "./..."))) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		name, ok := own(path)
		if !ok {
			t.Fatalf("go list names %q, which is not of this module", path)
		}
		packages = append(packages, parseDir(t, root, name, dir))
	}
	if len(packages) == 0 {
		t.Fatal("no packages found")
	}
	return root, packages
}

func parseDir(t *testing.T, root, name, dir string) *source {
	t.Helper()
	s := &source{name: name, fset: token.NewFileSet()}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		s.add(t, filepath.ToSlash(rel), text)
	}
	return s
}

func (s *source) add(t *testing.T, path string, text []byte) {
	t.Helper()
	syn, err := parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s.files = append(s.files, file{path, syn, bytes.Count(text, []byte("\n")), codeLines(text), strings.HasSuffix(path, "_test.go")})
}

// requirements are the modules that go.mod names.
func requirements(t *testing.T, root string) []string {
	t.Helper()
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(run(t, root, "go", "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range mod.Require {
		out = append(out, r.Path)
	}
	return out
}

func run(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return out
}
