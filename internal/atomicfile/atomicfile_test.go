package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWrite: a file gets its new content and mode, and has no other beside it.
func TestWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, mode := range []os.FileMode{0o644, 0o600} {
		want := mode.String()
		if err := Write(path, []byte(want), mode); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || string(text) != want {
			t.Errorf("the file holds %q, %v", text, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("mode %v, %v, want %v", info.Mode(), err, mode)
		}
		if beside, err := os.ReadDir(filepath.Dir(path)); err != nil || len(beside) != 1 {
			t.Errorf("%d files in the folder, %v", len(beside), err)
		}
	}
}

// TestWriteFails leaves what was there, and nothing beside it.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("text"), 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if beside, err := os.ReadDir(filepath.Dir(path)); err != nil || len(beside) != 1 {
		t.Errorf("%d files in the folder, %v", len(beside), err)
	}
}

// TestMakeDirSyncsEachParent: each folder is there, of its mode, before its
// parent is synced, and the next is made after that.
func TestMakeDirSyncsEachParent(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, b, c := filepath.Join(root, "a"), filepath.Join(root, "a", "b"), filepath.Join(root, "a", "b", "c")
	type step struct{ synced, made, missing string }
	var got []step
	there := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir() && info.Mode().Perm() == 0o700
	}
	record := func(synced string) error {
		s := step{synced: synced}
		for _, path := range []string{a, b, c} {
			if there(path) {
				s.made = path
			} else if s.missing == "" {
				s.missing = path
			}
		}
		got = append(got, s)
		return nil
	}
	for range 2 { // the second finds all of them, and syncs nothing
		if err := makeDir(c, 0o700, record); err != nil {
			t.Fatal(err)
		}
	}
	if want := []step{{root, a, b}, {a, b, c}, {b, c, ""}}; !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
}

// TestMakeDirFails: a sync that fails ends it, and a file in the way is an error.
func TestMakeDirFails(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	broken := errors.New("broken")
	if err := makeDir(filepath.Join(root, "a", "b"), 0o700, func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a sync failed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "a", "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the next folder was made after a failed sync: %v", err)
	}
	file := filepath.Join(root, "file")
	if err := Write(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "a")} {
		if err := MakeDir(path, 0o700); !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("MakeDir(%q) = %v, want ENOTDIR", path, err)
		}
	}
}

// TestMakeDirRelative makes a folder of one element in the working directory.
func TestMakeDirRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := MakeDir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat("data"); err != nil || !info.IsDir() {
		t.Errorf("Stat = %v, %v", info, err)
	}
}
