package server

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// unknownMemory is what a machine that does not say is taken to have, in
	// bytes.
	unknownMemory = 2 << 30
	// Of the memory of the machine or container the Go heap may have nine
	// tenths. The rest is for what the collector does not count: buffers of
	// the kernel, pages of files.
	heapShare, heapParts = 9, 10
	// Of what the heap may have, request bodies get a quarter, and small ones
	// an eighth more (see web.Room). A body may be in memory twice for a moment,
	// as it grows and as it is rewritten, and memory for the next one is kept:
	// then a quarter of the heap is still left to everything else, and the
	// collector has room to wait before it runs again.
	bodyParts = 4
)

// memory is how the memory of the machine or container is divided, in bytes.
type memory struct {
	heap   int64 // what the collector keeps the heap below; math.MaxInt64 for no limit
	bodies int64 // what request bodies may take together
}

// divideMemory derives both figures from the memory that there is. A limit that
// is set already, by GOMEMLIMIT, stays; math.MaxInt64 means that none is. off
// says that the operator wants none.
func divideMemory(available uint64, set int64, off bool) memory {
	heap := int64(min(available, math.MaxInt64)) / heapParts * heapShare
	m := memory{heap: heap}
	switch {
	case off:
		m.heap = math.MaxInt64
	case set < math.MaxInt64:
		m.heap = set
	}
	m.bodies = min(heap, m.heap) / bodyParts
	return m
}

// measureMemory divides the memory of this process's machine or container.
func measureMemory(lookup func(string) (string, bool), available func() uint64) memory {
	_, given := lookup("GOMEMLIMIT")
	set := int64(math.MaxInt64)
	if given {
		set = debug.SetMemoryLimit(-1)
	}
	return divideMemory(available(), set, given && set == math.MaxInt64)
}

// availableMemory is what the machine has, or the container where its limit
// is lower, in bytes.
func availableMemory() uint64 {
	most, err := memlimit.FromSystem()
	if err != nil || most == 0 {
		most = unknownMemory
	}
	if limit, err := memlimit.FromCgroup(); err == nil && limit > 0 {
		most = min(most, limit)
	}
	return most
}
