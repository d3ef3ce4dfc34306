package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	marks   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// checkLinks checks that the files and headings that a page links to exist.
func checkLinks(t *testing.T, p *page) {
	t.Helper()
	for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(p.text, ""), -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		text := p.text
		if target != "" {
			path := filepath.Join(root, filepath.Dir(p.name), target)
			info, err := os.Stat(path)
			if err != nil {
				t.Errorf("%s links to %s, which does not exist", p.name, m[1])
				continue
			}
			if info.IsDir() || filepath.Ext(path) != ".md" {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(content)
		}
		if anchor != "" && !anchors(text)[anchor] {
			t.Errorf("%s links to %s, which has no such heading", p.name, m[1])
		}
	}
}

// anchors are the names that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		plain := marks.ReplaceAllString(strings.ToLower(strings.TrimSpace(link.ReplaceAllString(m[1], ""))), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}
