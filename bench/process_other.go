//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// leaveProcessor does nothing: processes cannot be tied to processors here.
func leaveProcessor() error { return nil }

func startMeasured(cmd *exec.Cmd) error { return cmd.Start() }

func placed() string { return "no processor kept for the targets" }

// cpuOf asks ps.
func cpuOf(pid int) (time.Duration, error) {
	out, err := exec.Command("ps", "-o", "time=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, err
	}
	minutes, seconds, _ := strings.Cut(strings.TrimSpace(string(out)), ":")
	m, err1 := strconv.Atoi(minutes)
	s, err2 := strconv.ParseFloat(seconds, 64)
	return time.Duration(m)*time.Minute + time.Duration(s*float64(time.Second)), errors.Join(err1, err2)
}

// stolen is not known here.
func stolen() time.Duration { return 0 }

// sleepUntil sleeps until a moment.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
