package server

import (
	"math"
	"testing"
)

// TestMemoryIsDivided: whatever the size of the machine or container, bodies
// that fill all that they may have, each of them kept twice, leave the collector
// a good part of what the heap may have, and the heap leaves some to the kernel.
func TestMemoryIsDivided(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		available    uint64 // MiB
		heap, bodies int64  // MiB
	}{
		{128, 115, 28}, {256, 230, 57}, {512, 460, 115}, {1 << 10, 921, 230}, {2 << 10, 1843, 460}, {4 << 10, 3686, 921},
		{8 << 10, 7372, 1843}, {16 << 10, 14745, 3686}, {32 << 10, 29491, 7372}, {64 << 10, 58982, 14745},
	} {
		m := divideMemory(c.available<<20, math.MaxInt64, false)
		if m.heap>>20 != c.heap || m.bodies>>20 != c.bodies {
			t.Errorf("of %d MiB: heap %d MiB, bodies %d MiB; want %d and %d", c.available, m.heap>>20, m.bodies>>20, c.heap, c.bodies)
		}
		small := m.bodies / 2 // see httpx.NewMemoryQuota
		if held := 2*m.bodies + small; held > m.heap*5/8 {
			t.Errorf("of %d MiB: bodies may hold %d MiB of a heap of %d MiB", c.available, held>>20, m.heap>>20)
		}
	}
}

// TestGOMEMLIMITWins over what the machine has, for the heap and for bodies; off
// is no word on how much memory there is.
func TestGOMEMLIMITWins(t *testing.T) {
	t.Parallel()
	const machine = 8 << 30
	if m := divideMemory(machine, 400<<20, false); m.heap != 400<<20 || m.bodies != 100<<20 {
		t.Errorf("GOMEMLIMIT=400MiB: %+v", m)
	}
	if m := divideMemory(machine, 100<<30, false); m.heap != 100<<30 || m.bodies > machine/4 {
		t.Errorf("GOMEMLIMIT above the machine's memory: %+v", m)
	}
	if m := divideMemory(machine, math.MaxInt64, true); m.heap != math.MaxInt64 || m.bodies > machine/4 {
		t.Errorf("GOMEMLIMIT=off: %+v", m)
	}
	if m := divideMemory(math.MaxUint64, math.MaxInt64, false); m.heap <= 0 || m.bodies <= 0 {
		t.Errorf("a machine that says it has everything: %+v", m)
	}
}

// TestMeasureMemory divides what it is told of.
func TestMeasureMemory(t *testing.T) {
	t.Parallel()
	none := func(string) (string, bool) { return "", false }
	if m := measureMemory(none, func() uint64 { return 1 << 30 }); m != divideMemory(1<<30, math.MaxInt64, false) {
		t.Errorf("%+v", m)
	}
	if n := availableMemory(); n < 32<<20 {
		t.Errorf("this machine has %d bytes", n)
	}
}
