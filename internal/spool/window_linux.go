package spool

import (
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// windowSize is how much of a file is mapped at a time, a power of two. What
// is mapped and touched counts as the process's memory.
const windowSize = 1 << 20

// window writes to a file through memory that is mapped to it, which spares
// the system call of every write: an entry is in the system's own pages, and
// survives the death of the process, as soon as it is copied. Linux syncs
// pages written in either way alike. Where a place cannot be written to
// through memory, it is written to as always. One goroutine at a time may use
// it.
type window struct {
	file   *os.File
	memory []byte // nil before the first write
	start  int64  // of the memory in the file
	never  bool   // the file system maps no files
}

// WriteAt writes within the present size of the file.
func (w *window) WriteAt(b []byte, off int64) (int, error) {
	for done := 0; ; {
		n := store(w.at(off+int64(done)), b[done:])
		if done += n; done == len(b) {
			return done, nil
		}
		if n == 0 {
			rest, err := w.file.WriteAt(b[done:], off+int64(done)) // says what is wrong, if something is
			return done + rest, err
		}
	}
}

// at is the mapped memory from an offset on, none where it cannot be had.
func (w *window) at(off int64) []byte {
	if start := off &^ (windowSize - 1); !w.never && (w.memory == nil || start != w.start) {
		w.close()
		memory, err := unix.Mmap(int(w.file.Fd()), start, windowSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		w.never = err != nil
		w.memory, w.start = memory, start
	}
	if w.never {
		return nil
	}
	return w.memory[off-w.start:]
}

// store copies as much as there is room for, and says how much that was. It
// is 0 where the memory has no place on the disk: the file was cut, or its
// disk is broken or full.
func store(room, b []byte) (n int) {
	defer func() {
		if recover() != nil { // the fault
			n = 0
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return copy(room, b)
}

func (w *window) close() {
	if w.memory != nil {
		_ = unix.Munmap(w.memory) // only of what was not mapped
	}
	w.memory = nil
}
