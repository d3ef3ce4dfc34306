//go:build !race

package prove

// raceFactor is what the race detector multiplies memory by at most: without it memory counts as it is.
const raceFactor = 1
