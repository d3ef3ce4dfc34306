package server

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcMost trades memory, of which a gateway needs little, for fewer
	// collections. gcRoom is how much that trade may take: from where it does,
	// the percentage falls as the heap grows, down to gcLeast.
	gcMost, gcLeast = 300, 200
	gcRoom          = 48 << 20 // bytes
	// gcStep is by how much the percentage must differ to be set anew.
	gcStep = 10
)

// tuneRuntime sets the garbage collector for a service whose heap may have so
// many bytes, and unless the operator has set GOGC adapts it until the context
// ends. What starting up has
// left behind, which the larger percentage would keep for long, goes back to
// the system first.
func tuneRuntime(ctx context.Context, heap int64, lookup func(string) (string, bool)) {
	debug.FreeOSMemory()
	debug.SetMemoryLimit(heap)
	if _, set := lookup("GOGC"); set {
		return
	}
	percent := gcMost
	debug.SetGCPercent(percent)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	collected := make(chan struct{}, 1)
	noteCollections(ctx, collected)
	for {
		select {
		case <-ctx.Done():
			return
		case <-collected:
		}
		metrics.Read(live)
		if p := gcPercent(live[0].Value.Uint64()); max(p-percent, percent-p) >= gcStep {
			percent = p
			debug.SetGCPercent(percent)
		}
	}
}

// noteCollections gives a token for what collections have ended since the last
// was taken, until the context ends: each of them finds that nothing refers to
// an object made after the one before. A gateway at rest is not woken to look.
func noteCollections(ctx context.Context, collected chan<- struct{}) {
	if ctx.Err() != nil {
		return
	}
	runtime.AddCleanup(new([64]byte), func(collected chan<- struct{}) {
		noteCollections(ctx, collected) // first: who has the token counts on the next
		select {
		case collected <- struct{}{}:
		default:
		}
	}, collected)
}

// gcPercent is by how much of itself a heap may grow before it is collected
// that had so many bytes in use after the last collection.
func gcPercent(live uint64) int {
	return int(min(max(gcRoom*100/max(live, 1), gcLeast), gcMost))
}
