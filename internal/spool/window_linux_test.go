package spool

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Whatever is written where through a window is in the file.
func TestWindowWrites(t *testing.T) {
	const size = 3*windowSize + windowSize/2
	dir := Dir(t.TempDir())
	file, err := dir.Create("a", size)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rng, want := rand.New(rand.NewPCG(1, 2)), make([]byte, size)
	write := func(off int64, n int) {
		t.Helper()
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		copy(want[off:], b)
		if n, err := file.WriteAt(b, off); err != nil || n != len(b) {
			t.Fatalf("write of %d at %d: %d, %v", len(b), off, n, err)
		}
	}
	for range 2000 {
		n := rng.IntN(16 << 10)
		write(rng.Int64N(size-int64(n)), n)
	}
	for _, edge := range []int64{windowSize, 2 * windowSize, 3 * windowSize} {
		write(edge-1, 2)
		write(edge-100, 100)
		write(edge, 1)
	}
	write(windowSize/2, 2*windowSize) // over a whole window
	write(size-1, 1)
	got, err := os.ReadFile(filepath.Join(dir.name, "a"))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the file does not hold what was written (%v)", err)
	}
}

// Mapped memory whose place is gone ends the writing process by a signal; a
// window goes around it.
func TestWindowSurvivesACutFile(t *testing.T) {
	dir := Dir(t.TempDir())
	file, err := dir.Create("a", windowSize)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	path := filepath.Join(dir.name, "a")
	for _, step := range []func() error{
		func() error { return nil },
		func() error { return os.Truncate(path, 0) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if n, err := file.WriteAt([]byte("entry"), 9000); n != 5 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
		got := make([]byte, 5)
		if _, err := file.ReadAt(got, 9000); err != nil || string(got) != "entry" {
			t.Fatalf("read %q, %v", got, err)
		}
	}
}

// Where nothing can be mapped, it is written as always, and a disk that
// refuses says so itself.
func TestWindowWithoutMapping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path) // for reading: neither way of writing works
	if err != nil {
		t.Fatal(err)
	}
	w := &window{file: file}
	defer w.close()
	if n, err := w.WriteAt([]byte("entry"), 0); n != 0 || err == nil || !w.never {
		t.Fatalf("write into a file that is open for reading: %d, %v, given up %t", n, err, w.never)
	}
	if file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w.file = file
	if n, err := w.WriteAt([]byte("entry"), 0); n != 5 || err != nil {
		t.Fatalf("write without a mapping: %d, %v", n, err)
	}
}
