//go:build linux

package e2e

import (
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestScaleStart starts a gateway on an existing database of either kind. The
// bound is on its CPU time: a busy machine makes it wait and not work.
func TestScaleStart(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		w := newWorld(t, testkit.GatewayOptions{Database: database})
		w.load(&load{calls: size(200, 20_000)}).run(t.Context())
		w.Stop()
		bound := size(500*time.Millisecond, 150*time.Millisecond) // a suite's machine may be a slow one
		least := time.Hour
		for range 5 {
			began := time.Now()
			w.Start()
			took, cpu := time.Since(began), cpuOf(t, w.Pid())
			t.Logf("listens after %v, of which %v CPU time", took.Round(time.Millisecond), cpu.Round(time.Millisecond))
			least = min(least, cpu)
			w.Stop()
		}
		if least > bound {
			t.Errorf("a start costs %v CPU time, want at most %v", least, bound)
		}
	})
}
