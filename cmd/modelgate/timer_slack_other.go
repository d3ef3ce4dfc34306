//go:build !linux

package main

// setTimerSlack does nothing: only Linux has a timer slack that a process can set.
func setTimerSlack() {}
