package http1

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeAtOnce writes as much of both as a socket takes without waiting.
func writeAtOnce(fd uintptr, head, body []byte) int {
	n, err := unix.Writev(int(fd), [][]byte{head, body})
	if err != nil {
		return 0
	}
	return n
}

// readAtOnce reads what a socket has, and errNothing where that is nothing.
func readAtOnce(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		switch err {
		case nil:
			return n, nil
		case unix.EAGAIN:
			return 0, errNothing
		case unix.EINTR:
		default:
			return 0, os.NewSyscallError("read", err)
		}
	}
}
