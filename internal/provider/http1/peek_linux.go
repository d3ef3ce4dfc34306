package http1

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// nothingToRead reports whether a socket is open and has no bytes waiting. The
// system is asked without the scheduler being told, since this never waits, and
// without the sender's address, for which unix.Recvfrom takes memory.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	_, _, err := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), uintptr(len(b)), unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return err == unix.EAGAIN
}
