package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestCommandsOfPages has the binary explain every command that a page names
// within its text or in a block that no test runs, and looks for the flags.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "deploy/*/*", "deploy/helm/modelgate/*"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	helps := map[string]string{}
	checked := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			continue // a folder
		}
		for _, command := range namedCommands(string(text)) {
			words := strings.Fields(command)
			last := slices.IndexFunc(words, func(w string) bool { return !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(w) })
			if last < 0 {
				last = len(words)
			}
			path := strings.Join(words[:last], " ")
			if _, known := helps[path]; !known {
				stdout, stderr, code := testkit.RunBinary(t, nil, append(slices.Clone(words[:last]), "--help")...)
				if code != 0 {
					t.Errorf("%s: modelgate %s: exit %d\n%s%s", page, path, code, stdout, stderr)
				}
				helps[path] = stdout
			}
			for _, flag := range regexp.MustCompile(`(?:^| )(--[a-z-]+)`).FindAllStringSubmatch(command, -1) {
				if !strings.Contains(helps[path], flag[1]) {
					t.Errorf("%s: modelgate %s has no %s", page, path, flag[1])
				}
			}
			checked++
		}
	}
	if checked < 25 || len(helps) < 12 {
		t.Errorf("%d commands found, %d different", checked, len(helps))
	}
}

// namedCommands are what follows "modelgate" in inline code and in lines that
// begin with it.
func namedCommands(text string) (all []string) {
	for _, m := range regexp.MustCompile("(?m)(?:`|^\\s*|^bin/|=/usr/local/bin/|compose.* /)modelgate ((?:[a-z-]+ ?)+[^`\n|;#)]*)").FindAllStringSubmatch(text, -1) {
		if command, _, _ := strings.Cut(m[1], "  "); command != "" {
			all = append(all, strings.TrimSpace(command))
		}
	}
	return all
}
