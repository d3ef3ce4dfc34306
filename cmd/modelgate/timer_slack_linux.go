package main

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is how much later than asked for the system may wake the process.
// After each pause of the process Go's scheduler has the thread that looks after
// the others wake every 20 µs at first, which with the system's own slack of
// 50 µs took an eighth of a gateway's processor time where it was busy in part.
const timerSlack = time.Millisecond

// setTimerSlack gives every thread of the process timerSlack. The thread meant has
// begun by now, and what another one sets does not reach it: the process begins
// once more, in its place, with what a thread hands on to those after it. Where
// the system does not do that, all stays as it is. See PR_SET_TIMERSLACK(2const).
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

// ownSlack is the slack of the calling thread.
func ownSlack() time.Duration {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0
	}
	return time.Duration(slack)
}
