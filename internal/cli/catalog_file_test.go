package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWriteFileKeepsMode: a file gets its new text, keeps its mode, and has no other
// beside it.
func TestWriteFileKeepsMode(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]os.FileMode{"closed": 0o600, "open": 0o644, "new": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "catalog.yaml")
			want := os.FileMode(0o644)
			if mode != 0 {
				want = mode
				if err := os.WriteFile(path, []byte("old"), mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := replaceFile(path, []byte("text")); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil || string(text) != "text" {
				t.Errorf("the file holds %q, %v", text, err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("mode %v, %v, want %v", info.Mode().Perm(), err, want)
			}
			beside, err := os.ReadDir(filepath.Dir(path))
			if err != nil || len(beside) != 1 {
				t.Errorf("%d files in the folder, %v", len(beside), err)
			}
		})
	}
}
