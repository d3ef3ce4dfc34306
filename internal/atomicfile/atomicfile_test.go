package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
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
