package server

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// unknownMemory is assumed of a machine that does not say how much it has, in
	// bytes.
	unknownMemory = 2 << 30
	// Of the memory of the machine or container the Go heap may have nine
	// tenths. The rest is for what the collector does not count: buffers of
	// the kernel, pages of files.
	heapShare, heapParts = 9, 10
	// Of what the heap may have, request bodies get a quarter, and small ones
	// an eighth more (see httpx.MemoryQuota). A body may be in memory twice for a
	// moment, as it grows and as it is rewritten, and memory for the next one is kept:
	// then a quarter of the heap is still left to everything else, and the
	// collector has room to wait before it runs again.
	bodyParts = 4
	// gcPercent trades memory, of which a gateway needs little, for fewer
	// collections. With Go's 100 a call costs a tenth more processor time; with
	// 300 nothing less.
	gcPercent = 200
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
	most := uint64(unknownMemory)
	if n, err := memlimit.FromSystem(); err == nil && n > 0 {
		most = n
	}
	if n, err := memlimit.FromCgroup(); err == nil && n > 0 {
		most = min(most, n)
	}
	return most
}

// tuneCollector sets the memory limit and, unless the operator has set GOGC, the
// collector's percentage. What starting up has left behind goes back to the system
// first.
func (m memory) tuneCollector(lookup func(string) (string, bool)) {
	debug.FreeOSMemory()
	debug.SetMemoryLimit(m.heap)
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
}
