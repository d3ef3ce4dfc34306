//go:build !linux

package server

import "syscall"

// harden keeps what is in this process's memory out of a core file.
func harden() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
