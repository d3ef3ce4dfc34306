package main

import "runtime/debug"

const (
	// gcPercent trades memory, of which a gateway needs little, for fewer
	// collections; gcCeiling is where that trade ends.
	gcPercent = 300
	gcCeiling = 1 << 30 // bytes
)

// tuneRuntime sets the garbage collector for a service, unless the operator
// has set GOGC or GOMEMLIMIT. What starting up has left behind, which the
// larger percentage would keep for long, goes back to the system first.
func tuneRuntime(lookup func(string) (string, bool)) {
	debug.FreeOSMemory()
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := lookup("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(gcCeiling)
	}
}
