package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	// placed is one or two names and where they are: `a` and `b` in `x.go`.
	placed = regexp.MustCompile("`(\\w+)`(?: and `(\\w+)`)? (?:in|of) (?:the list in )?`([^`]+\\.go)`")
)

// A newcomer follows the tables that say where things are: each path in them
// exists, and each name is declared in the file that is named with it.
func TestPointersLead(t *testing.T) {
	t.Parallel()
	root, _ := load(t)
	for _, page := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for row := range strings.Lines(string(text)) {
			if strings.HasPrefix(row, "| ") {
				rows++
				for _, problem := range badPointers(root, row) {
					t.Errorf("%s: %s", page, problem)
				}
			}
		}
		if rows < 20 {
			t.Errorf("%s has %d rows of tables: where are they?", page, rows)
		}
	}
}

func TestBadPointersAreFound(t *testing.T) {
	t.Parallel()
	root, _ := load(t)
	for row, want := range map[string]int{
		"| `Identify` in `internal/auth/presented.go` |":                          0,
		"| `passRead` and `deliver` in `internal/gateway/stream.go`, `mark.go` |": 0,
		"| `internal/provider/table*.go`, `error.go` |":                           0,
		"| `Missing` in `internal/auth/presented.go` |":                           1,
		"| `Identify` and `Missing` in `internal/auth/presented.go` |":            1,
		"| `internal/absent` |":                                                   1,
		"| `internal/auth/presented.go`, `absent.go` |":                           1,
	} {
		if got := badPointers(root, row); len(got) != want {
			t.Errorf("%s: %q, want %d problems", row, got, want)
		}
	}
}

// badPointers are the paths and names of a row that lead nowhere. A file without
// a folder is in that of the last path, or in the root.
func badPointers(root, row string) (problems []string) {
	folder := ""
	where := make(map[string]string)
	for _, m := range quoted.FindAllStringSubmatch(row, -1) {
		path := m[1]
		first, _, below := strings.Cut(path, "/")
		if known, err := os.Stat(filepath.Join(root, first)); below && (first == "" || err != nil || !known.IsDir()) || !below && !strings.HasSuffix(path, ".go") {
			continue
		}
		found := ""
		for _, candidate := range []string{path, filepath.Join(folder, path)} {
			if matches, _ := filepath.Glob(filepath.Join(root, candidate)); len(matches) > 0 {
				found = candidate
			}
		}
		if found == "" {
			problems = append(problems, fmt.Sprintf("there is no %s (below %q)", path, folder))
			continue
		}
		where[path] = found
		if folder = found; strings.HasSuffix(found, ".go") {
			folder = filepath.Dir(found)
		}
	}
	for _, m := range placed.FindAllStringSubmatch(row, -1) {
		files, _ := filepath.Glob(filepath.Join(root, where[m[3]]))
		for _, name := range m[1:3] {
			declared := regexp.MustCompile(`(?m)(func (\([^)]*\) )?|type |const |var |^\t)` + name + `\b`)
			if where[m[3]] != "" && name != "" && !declaredIn(files, declared) {
				problems = append(problems, fmt.Sprintf("%s does not declare %s", m[3], name))
			}
		}
	}
	return problems
}

func declaredIn(files []string, declared *regexp.Regexp) bool {
	for _, path := range files {
		if text, err := os.ReadFile(path); err == nil && declared.Match(text) {
			return true
		}
	}
	return false
}
