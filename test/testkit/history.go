//go:build unix

package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// previousEnv names a binary of the schema before to use in place of one that
// is built from the history.
const previousEnv = "MODELGATE_TEST_PREVIOUS"

var previous build

// errNoPrevious says that no migration has followed the first one yet, or that
// the history does not reach back.
var errNoPrevious = errors.New("there is no version before the last migration in the history of this checkout")

// PreviousBinary is the path of a binary that knows every migration but the
// last: that which MODELGATE_TEST_PREVIOUS names, else the newest such commit of the
// history, built once per test process. Where there is none, as in a shallow
// clone or while there is only one migration, the test is skipped.
func PreviousBinary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(previousEnv); path != "" {
		return path
	}
	previous.once.Do(func() { previous.err = previous.makePrevious() })
	if errors.Is(previous.err, errNoPrevious) {
		t.Skipf("NOT PROVED that instances of the version before go on: %v; fetch the whole of it, or name a binary in %s", previous.err, previousEnv)
	}
	if previous.err != nil {
		t.Fatal(previous.err)
	}
	return previous.path
}

func (b *build) makePrevious() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	commits, err := commitsBefore(root)
	if err != nil {
		return err
	}
	if err := b.place(); err != nil {
		return err
	}
	for _, commit := range commits {
		if err = b.makeOf(root, commit); err == nil {
			return nil
		}
	}
	return err
}

// makeOf builds a commit.
func (b *build) makeOf(root, commit string) error {
	source := filepath.Join(filepath.Dir(b.path), commit)
	if err := os.Mkdir(source, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(source)
	unpack := exec.Command("sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, commit, source)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w\n%s", commit, err, out)
	}
	return b.compile(source, "")
}

// commitsBefore are the newest commits that have all migrations but the last
// ones, the newest first: it may be one that does not build.
func commitsBefore(root string) (commits []string, err error) {
	const migrations, tries = "internal/store/migrations/postgres/", "5"
	git := func(args ...string) []string {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return nil // no git, no repository, or a commit that is not there
		}
		return strings.Fields(string(out))
	}
	files, err := filepath.Glob(filepath.Join(root, migrations, "*.sql"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no migrations in %s: %w", root, err)
	}
	slices.Sort(files)
	var want []string
	for _, f := range files {
		want = append(want, migrations+filepath.Base(f))
	}
	has := func(commit string) bool {
		had := git("ls-tree", "--name-only", commit, migrations)
		return len(had) > 0 && len(had) < len(want) && slices.Equal(had, want[:len(had)])
	}
	for _, changed := range git("log", "--format=%H", "--", migrations) {
		if before := changed + "~1"; has(before) {
			for _, commit := range git("rev-list", "--max-count="+tries, before) {
				if has(commit) {
					commits = append(commits, commit)
				}
			}
			return commits, nil
		}
	}
	return nil, errNoPrevious
}
