//go:build race

package prove

// raceFactor is what the race detector multiplies memory by at most: with it everything takes several times the memory.
const raceFactor = 8
