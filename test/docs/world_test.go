package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// world is what a page runs in: a folder, an environment, and servers of the
// test in the place of those that the page names.
type world struct {
	page    *page
	dir     string // where the commands run
	logs    string // what each block printed
	address string // of the gateway, host:port
	env     []string
	replace *strings.Replacer
}

const (
	pageAddress   = "127.0.0.1:8080"
	pageDatabase  = "postgres://modelgate:PASSWORD@db.example.com:5432/modelgate"
	pageProcessor = "https://api.stripe.com"
)

// newWorld makes the world of a page.
func newWorld(t *testing.T, p *page, upstream string) *world {
	t.Helper()
	w := &world{page: p, dir: t.TempDir(), logs: t.TempDir(), address: testkit.FreeAddress(t)}
	replace := []string{"https://api.openai.com", upstream, pageAddress, w.address}
	if strings.Contains(p.text, pageDatabase) {
		// In a shell the address of a private server needs quotes; in YAML it has some.
		url := testkit.Postgres(t)
		replace = append(replace, `"`+pageDatabase+`"`, `"`+url+`"`, pageDatabase, "'"+url+"'")
	}
	if strings.Contains(p.text, "base_url: "+pageProcessor) {
		processor := testkit.NewProcessor(t, "sk_live_operator", "sk_live_operator_new", "rk_live_reseller", "rk_live_reseller_new")
		replace = append(replace, pageProcessor, processor.URL)
	}
	w.replace = strings.NewReplacer(replace...)
	w.env = environment(t, w.dir)
	for _, name := range archive.FindStringSubmatch(p.text) {
		packArchive(t, w.dir, name)
	}
	return w
}

// environment is that of a new user: modelgate is installed, nothing else is
// set. The caches of Go are ours, so that snippets compile in time.
func environment(t *testing.T, home string) []string {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(testkit.Binary(t), filepath.Join(bin, "modelgate")); err != nil {
		t.Fatal(err)
	}
	// Without a terminal curl would print a progress meter.
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	postgres, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		t.Fatal(err)
	}
	path := slices.Concat([]string{bin, os.Getenv("PATH")}, postgres)
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	return []string{
		"PATH=" + strings.Join(path, ":"), "HOME=" + home, "TMPDIR=" + t.TempDir(),
		"GOCACHE=" + cache, "GOMODCACHE=" + modules, "GOFLAGS=-pgo=off", "GOTOOLCHAIN=local",
	}
}

// archive finds the name of a release archive that a page unpacks.
var archive = regexp.MustCompile(`modelgate_[\w.]+\.tar\.gz`)

// packArchive makes a release archive with this checkout's binary.
func packArchive(t *testing.T, dir, name string) {
	t.Helper()
	folder := strings.TrimSuffix(name, ".tar.gz")
	place := filepath.Join(t.TempDir(), folder)
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testkit.Binary(t), filepath.Join(place, "modelgate")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tar", "--dereference", "-czf", filepath.Join(dir, name), "-C", filepath.Dir(place), folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pack %s: %v\n%s", name, err, out)
	}
}

var (
	startsDev = regexp.MustCompile(`modelgate dev\b`)
	usesIt    = regexp.MustCompile(`MODELGATE_(URL|KEY)|` + regexp.QuoteMeta(pageAddress))
)

// needsGateway says whether the page uses a gateway that it does not start.
func (w *world) needsGateway() bool {
	uses := false
	for _, b := range w.page.blocks {
		if !b.runs() && b.file == "" {
			continue
		}
		if strings.Contains(b.text, "modelgate serve") || startsDev.MatchString(b.text) {
			return false
		}
		uses = uses || usesIt.MatchString(b.text)
	}
	return uses
}

// localize puts the test's servers in the place of the page's.
func (w *world) localize(text string) string {
	text = startsDev.ReplaceAllString(text, "modelgate dev --listen "+pageAddress)
	return w.replace.Replace(text)
}

// disguise puts the page's address back into what a command printed.
func (w *world) disguise(printed string) string {
	return strings.ReplaceAll(printed, w.address, pageAddress)
}

// log is where the output of a block goes.
func (w *world) log(block int) string { return filepath.Join(w.logs, fmt.Sprintf("block-%d", block)) }
