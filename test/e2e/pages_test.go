package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"modelgate/test/testkit"
)

// browserTests is the folder of the scripts that drive a browser.
var browserTests = filepath.Join("..", "..", "test", "browser")

// installBrowserTests brings their packages to what the lock file says.
var installBrowserTests = sync.OnceValue(func() error {
	wanted, err := os.Stat(filepath.Join(browserTests, "package-lock.json"))
	if err != nil {
		return err
	}
	if have, err := os.Stat(filepath.Join(browserTests, "node_modules", ".package-lock.json")); err == nil && !have.ModTime().Before(wanted.ModTime()) {
		return nil
	}
	install := exec.Command("npm", "ci")
	install.Dir = browserTests
	install.Env = append(os.Environ(), "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1")
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in %s: %w\n%s", browserTests, err, out)
	}
	return nil
})

// browse runs a script of the browser against a shop.
func (s *shop) browse(t *testing.T, env []string, args ...string) {
	t.Helper()
	runBrowser(t, append([]string{s.env()}, env...), args...)
}

// runBrowser runs a script of the browser.
func runBrowser(t *testing.T, env []string, args ...string) {
	t.Helper()
	if err := installBrowserTests(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = browserTests
	cmd.Env = append(append(os.Environ(), "CHROMIUM="+testkit.Chromium(t)), env...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestPages drives every page and every flow of the dashboard and the portal
// in a real browser. Pictures of them are left in test/browser/screenshots.
func TestPages(t *testing.T) {
	t.Parallel()
	names := []string{"looks", "flows", "limits", "portal", "threats"}
	s := newShop(t, shopSize{rows: 1500, keys: 60, customers: 9}, names...)
	scripts := []string{"--test", "--test-concurrency=2"}
	for _, name := range names {
		scripts = append(scripts, name+".test.mjs")
	}
	s.browse(t, []string{size("NOTHING=", "FULL=1")}, scripts...)
	if log := s.Log(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the gateway logged an error:\n%s", tail(log, 3000))
	}
}

// TestPagesFast opens each page of a large organization and times it until
// its figures are there and it reacts.
func TestPagesFast(t *testing.T) {
	t.Parallel()
	s := newShop(t, size(shopSize{2000, 200, 60}, shopSize{100_000, 1000, 500}), "fast")
	s.browse(t, []string{"LIMIT=" + size("30000", "1000")}, "fast.mjs")
}
