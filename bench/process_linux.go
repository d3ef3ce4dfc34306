package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measuredVariable tells this program, once it has moved off it, which
// processor is kept for what is measured.
const measuredVariable = "MODELGATE_BENCH_PROCESSOR"

// leaveProcessor keeps the first processor for what is measured: the program
// begins anew on the others, and its children, the provider among them, with
// it. With one processor alone it does nothing.
func leaveProcessor() error {
	if os.Getenv(measuredVariable) != "" {
		return nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	if set.Count() < 2 {
		return nil
	}
	first := 0
	for !set.IsSet(first) {
		first++
	}
	set.Clear(first)
	runtime.LockOSThread() // what is executed inherits this thread's set
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("start anew: %w", syscall.Exec(self, os.Args, append(os.Environ(), measuredVariable+"="+strconv.Itoa(first))))
}

// startMeasured starts a process on the processor kept for it.
func startMeasured(cmd *exec.Cmd) error {
	kept, err := strconv.Atoi(os.Getenv(measuredVariable))
	if err != nil {
		return cmd.Start() // there is none
	}
	var others, own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &others); err != nil {
		return err
	}
	own.Set(kept)
	runtime.LockOSThread() // the process inherits this thread's set
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &own); err != nil {
		return err
	}
	started := cmd.Start()
	return errors.Join(started, unix.SchedSetaffinity(0, &others))
}

// placed says where the targets run.
func placed() string {
	if os.Getenv(measuredVariable) == "" {
		return "no processor kept for the targets"
	}
	return "each target on a processor of its own"
}

// cpuOf is the processor time of a process with all its threads, those that
// have ended among them, to the nanosecond.
func cpuOf(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: what the scheduler charged
	var used unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|scheduled), &used)
	return time.Duration(used.Nano()), err
}

// stolen is how long the host of a virtual machine has kept all its processors
// from it, together and since it began, to a hundredth of a second; 0 where that is not known.
func stolen() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	all, _, _ := strings.Cut(string(text), "\n")
	const steal = 8 // after the name: user, nice, system, idle, iowait, irq, softirq
	fields := strings.Fields(all)
	if len(fields) <= steal {
		return 0
	}
	ticks, err := strconv.ParseInt(fields[steal], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ
}

// sleepUntil sleeps until a moment, to the microsecond: the timers of the
// runtime are as coarse as a millisecond on an idle processor.
func sleepUntil(at time.Time) {
	if left := unix.NsecToTimespec(time.Until(at).Nanoseconds()); left.Nano() > 0 {
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &left, nil) // a signal only starts the call early
	}
}
