package main

import "testing"

func TestGCPercentFallsAsTheHeapGrows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64 // bytes
		want int
	}{
		{0, gcMost}, {6 << 20, gcMost}, {16 << 20, gcMost}, {24 << 20, 200}, {32 << 20, 150}, {48 << 20, gcLeast}, {1 << 40, gcLeast},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("gcPercent(%d) = %d, want %d", c.live, got, c.want)
		}
	}
}
