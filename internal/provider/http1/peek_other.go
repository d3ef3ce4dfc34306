//go:build !linux

package http1

import "golang.org/x/sys/unix"

// nothingToRead reports whether a socket is open and has no bytes waiting.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == unix.EAGAIN
}
