package server

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestGCPercentFallsAsTheHeapGrows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64 // bytes
		want int
	}{
		{0, gcMost}, {6 << 20, gcMost}, {16 << 20, gcMost}, {20 << 20, 240}, {24 << 20, gcLeast}, {48 << 20, gcLeast}, {1 << 40, gcLeast},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("gcPercent(%d) = %d, want %d", c.live, got, c.want)
		}
	}
}

// TestNoteCollections: every collection gives a token, the first and those
// after it, until the context ends.
func TestNoteCollections(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	collected := make(chan struct{}, 1)
	noteCollections(ctx, collected)
	for i := range 3 {
		runtime.GC()
		select {
		case <-collected:
		case <-time.After(time.Minute):
			t.Fatalf("collection %d gave no token", i+1)
		}
	}
}
