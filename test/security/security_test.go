package security

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func hash(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// TestSecurityTable finds every test that docs/reference/threats.md names, and
// every test of this package in it.
func TestSecurityTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	defined, here := map[string]bool{}, map[string]bool{}
	definition := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, found := range definition.FindAllSubmatch(source, -1) {
			defined[string(found[1])] = true
			if strings.Contains(filepath.ToSlash(path), "test/security/") {
				here[string(found[1])] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`).FindAllString(string(text), -1) {
		if named[name] = true; !defined[name] {
			t.Errorf("threats.md names %s, which does not exist", name)
		}
	}
	for name := range here {
		if !named[name] && name != "TestMain" && name != "TestSecurityTable" {
			t.Errorf("threats.md does not name %s", name)
		}
	}
	if len(named) < 50 || len(here) < 40 {
		t.Errorf("%d tests are named, %d are here", len(named), len(here))
	}
}
