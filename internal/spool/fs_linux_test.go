package spool

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFillZeros(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 1 << 20, 3<<20 + 17} {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := fillZeros(f, size); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(content)) != size || !blank(content) {
			t.Errorf("%d bytes, blank: %t; want %d zeros", len(content), blank(content), size)
		}
	}
}
