package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives a new file its full size on the disk, so that writing into
// it cannot run out of space.
func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return fillZeros(f, size) // some network and layered file systems
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// fillZeros allocates by writing, where the file system knows no other way.
func fillZeros(f *os.File, size int64) error {
	zeros := make([]byte, min(size, 1<<20))
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-off, int64(len(zeros)))], off); err != nil {
			return err
		}
	}
	return nil
}

// syncData makes the content durable. The size never changes after allocate,
// so metadata can wait.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
