package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// TestSetTimerSlack: a thread that the process begins has the slack, and so has the
// first; the process is the same and has its arguments.
func TestSetTimerSlack(t *testing.T) {
	const variable = "MODELGATE_TEST_TIMER_SLACK"
	if os.Getenv(variable) != "" {
		setTimerSlack()
		first, next := ownSlack(), make(chan struct{})
		go func() {
			runtime.LockOSThread() // a thread of its own
			fmt.Printf("%d %q %v %v\n", os.Getpid(), os.Args[1:], first, ownSlack())
			close(next)
		}()
		<-next
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSetTimerSlack$")
	cmd.Env = append(os.Environ(), variable+"=yes")
	out, err := cmd.Output()
	want := fmt.Sprintf("%d %q %v %v\n", cmd.Process.Pid, cmd.Args[1:], timerSlack, timerSlack)
	if err != nil || string(out) != want {
		t.Errorf("printed %q (%v), want %q", out, err, want)
	}
}
