package spool

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives a new file its full size on the disk, so that writing into
// it cannot run out of space.
func allocate(f *os.File, size int64) error {
	store := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: size}
	if err := unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &store); err != nil {
		return err
	}
	return f.Truncate(size)
}

// syncData makes the content durable: os.File.Sync issues F_FULLFSYNC, which
// also empties the drive's own cache.
func syncData(f *os.File) error { return f.Sync() }
