//go:build !linux

package spool

import "os"

// window writes to a file as always: elsewhere than on Linux, syncing a file
// says nothing about what was written through mapped memory.
type window struct{ file *os.File }

// WriteAt writes within the present size of the file.
func (w *window) WriteAt(b []byte, off int64) (int, error) { return w.file.WriteAt(b, off) }

func (w *window) close() {}
