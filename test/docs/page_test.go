package docs

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the repository, seen from this package.
const root = "../.."

var agents = flag.Bool("agents", false, "run the blocks that start coding agents, which scripts/agents installs")

// page is a document.
type page struct {
	name   string // its path from root
	text   string
	blocks []*block
}

// block is a fenced block of a page.
type block struct {
	line     int // of its fence
	language string
	text     string

	// What the comment before it says.
	file        string
	notRun      string // the reason
	agent       string // the program that it starts
	output      bool
	newTerminal bool
}

// readPages reads the documents whose blocks this package is responsible for.
func readPages(t *testing.T) (pages []*page) {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "clients/typescript/README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			name, _ := filepath.Rel(root, path) // both are relative
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		p := &page{name: name, text: string(text)}
		if p.blocks, err = parseBlocks(p.text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		pages = append(pages, p)
	}
	return pages
}

var fence = regexp.MustCompile("^( *)```(.*)$")

// parseBlocks finds the fenced blocks of a page. The text of an indented block,
// as in a list, is without the indent.
func parseBlocks(text string) (blocks []*block, err error) {
	var open *block
	var indent, before string
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && m != nil && m[2] == "":
			blocks, open, before = append(blocks, open), nil, ""
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil:
			open, indent = &block{line: i + 1, language: m[2]}, m[1]
			if err := open.direct(strings.TrimSpace(before)); err != nil {
				return nil, fmt.Errorf("line %d: %w", i, err)
			}
		default:
			before = line
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block has no end", open.line)
	}
	return blocks, nil
}

// direct takes what the line before a block says, if that is a comment.
func (b *block) direct(before string) error {
	comment, ok := strings.CutPrefix(before, "<!-- ")
	if !ok {
		return nil
	}
	word, rest, _ := strings.Cut(strings.TrimSuffix(comment, " -->"), ": ")
	switch {
	case word == "file" && rest != "":
		b.file = rest
	case word == "not run" && rest != "":
		b.notRun = rest
	case word == "agent" && rest != "":
		b.agent = rest
	case word == "output":
		b.output = true
	case word == "new terminal":
		b.newTerminal = true
	default:
		return fmt.Errorf("comment %q is none of those in doc.go", before)
	}
	return nil
}

// shell says whether the block is a command.
func (b *block) shell() bool { return slices.Contains([]string{"sh", "bash", "console"}, b.language) }

// snippet says whether the block is a program that can run.
func (b *block) snippet() bool { return b.language == "js" || b.language == "go" }

// runs says whether the block is run.
func (b *block) runs() bool {
	return b.notRun == "" && b.file == "" && !b.output && (b.shell() || b.snippet()) && (b.agent == "" || *agents)
}

func TestParseBlocks(t *testing.T) {
	t.Parallel()
	text := "<!-- file: a.yaml -->\n```yaml\na: 1\n```\n1. a list\n   ```console\n   $ x\n   y\n   ```\n\n<!-- not run: no cloud -->\n```sh\nz\n```\n"
	blocks, err := parseBlocks(text)
	if err != nil || len(blocks) != 3 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	if b := blocks[0]; b.file != "a.yaml" || b.text != "a: 1\n" || b.runs() {
		t.Errorf("file: %+v", b)
	}
	if b := blocks[1]; b.text != "$ x\ny\n" || !b.runs() {
		t.Errorf("in a list: %+v", b)
	}
	if b := blocks[2]; b.notRun != "no cloud" || b.runs() {
		t.Errorf("not run: %+v", b)
	}
	for _, wrong := range []string{"```sh\nx\n", "<!-- norun -->\n```sh\n```\n", "<!-- not run -->\n```sh\n```\n"} {
		if _, err := parseBlocks(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
