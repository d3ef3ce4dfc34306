//go:build race

package e2e

// raceFactor is what the race detector multiplies memory by at most: with it everything takes several times the memory.
const raceFactor = 8
