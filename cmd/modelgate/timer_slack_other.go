//go:build !linux

package main

// slacken has nothing to set on this system.
func slacken() {}
