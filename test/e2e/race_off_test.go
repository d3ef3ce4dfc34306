//go:build !race

package e2e

// raceFactor is what the race detector multiplies memory by at most: without it memory counts as it is.
const raceFactor = 1
