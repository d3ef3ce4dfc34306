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
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
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
