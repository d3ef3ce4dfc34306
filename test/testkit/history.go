//go:build unix

package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// previousEnv names a binary of the version before to use in place of one that
// is built from the last release.
const previousEnv = "MODELGATE_TEST_PREVIOUS"

// errNoRelease says that there is no version before.
var errNoRelease = errors.New("this checkout has no tag of a release (v*)")

var previous = sync.OnceValues(func() (build, error) {
	root, err := moduleRoot()
	if err != nil {
		return build{}, err
	}
	tag, err := exec.Command("git", "-C", root, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD~1").Output()
	if err != nil {
		return build{}, errNoRelease
	}
	b, err := place()
	if err != nil {
		return b, err
	}
	source := filepath.Join(filepath.Dir(b.path), "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		return b, err
	}
	unpack := exec.Command("sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, strings.TrimSpace(string(tag)), source)
	if out, err := unpack.CombinedOutput(); err != nil {
		return b, fmt.Errorf("unpack %s: %w\n%s", tag, err, out)
	}
	return b, b.compile(source, "")
})

// PreviousBinary is the path of a binary of the version before: that which
// MODELGATE_TEST_PREVIOUS names, else the last release of the history, built
// once per test process. Where there is none, as in a shallow clone, the test
// is skipped.
func PreviousBinary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(previousEnv); path != "" {
		return path
	}
	b, err := previous()
	if errors.Is(err, errNoRelease) {
		t.Skipf("NOT PROVED that instances of the version before go on: %v; fetch the tags, or name a binary in %s", err, previousEnv)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.path
}
