package main

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is by how much the system may delay a timer of the process. No timer in
// the gateway needs a finer resolution. Whenever the process has been idle, Go's
// sysmon thread wakes every 20 µs at first; with the system's slack of 50 µs that
// costs a paced stream, and calls to a slow provider, a tenth of their processor time.
const timerSlack = time.Millisecond

// setTimerSlack gives every thread of the process timerSlack. sysmon runs by now and
// cannot be given another slack, so the process executes itself anew: threads inherit
// the slack of the thread that does. Where the system refuses, nothing changes. See
// PR_SET_TIMERSLACK(2const).
func setTimerSlack() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	file, err := os.Executable()
	if err != nil || ownSlack() >= timerSlack {
		return
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0); err != nil || ownSlack() < timerSlack {
		return
	}
	_ = syscall.Exec(file, os.Args, os.Environ())
}

// ownSlack is the slack of the calling thread, 0 if the system does not say.
func ownSlack() time.Duration {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0
	}
	return time.Duration(slack)
}
