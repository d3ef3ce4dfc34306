package spool

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestReadIntoLeavesOutNothingButZeros writes single bytes anywhere and reads
// files of any size.
func TestReadIntoLeavesOutNothingButZeros(t *testing.T) {
	t.Parallel()
	const longest = frameHeader + MaxPayload
	rng := rand.New(rand.NewPCG(0, 9))
	var buf []byte
	for _, size := range []int64{0, 1, segmentHeader, 5000, 128 << 10, 128<<10 + 1, 1 << 20, 1<<20 + 777} {
		for n := range 8 {
			whole := make([]byte, size)
			last := -1
			for range n {
				if size > 0 {
					at := rng.IntN(int(size))
					whole[at], last = 1, max(last, at)
				}
			}
			path := filepath.Join(t.TempDir(), "segment")
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if n%2 == 0 { // allocated and, but for the bytes, never written
				if err := allocate(file, size); err != nil && size > 0 {
					t.Fatal(err)
				}
				for at, b := range whole {
					if b != 0 {
						if _, err := file.WriteAt([]byte{b}, int64(at)); err != nil {
							t.Fatal(err)
						}
					}
				}
			} else if _, err := file.Write(whole); err != nil {
				t.Fatal(err)
			}
			content, got, err := readInto(buf, osFile{File: file})
			if err != nil || got != size || !bytes.Equal(content, whole[:len(content)]) || !blank(whole[len(content):]) {
				t.Errorf("%d bytes, the last one at %d: %d read, size %d, %v", size, last, len(content), got, err)
			}
			if int64(len(content)) < min(size, int64(last+longest)) {
				t.Errorf("%d bytes, the last one at %d: a frame that ends in zeros is cut at %d", size, last, len(content))
			}
			buf = content
			file.Close()
		}
	}
}
