package sqldb

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
)

// TestSemaphore has clients ask for more than there is.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	long := NewSemaphore(12) // six at once, three of a client
	var running, most atomic.Int64
	var ofClient, mostOfClient [4]atomic.Int64
	raise := func(now, most *atomic.Int64) {
		for n := now.Add(1); ; {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				return
			}
		}
	}
	var asking sync.WaitGroup
	for n := range 200 {
		asking.Go(func() {
			i := n % len(ofClient)
			err := long.Run(t.Context(), modelgate.ClientID(rune('a'+i)), func() error {
				raise(&running, &most)
				raise(&ofClient[i], &mostOfClient[i])
				time.Sleep(100 * time.Microsecond)
				ofClient[i].Add(-1)
				running.Add(-1)
				return nil
			})
			if err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
	asking.Wait()
	if most.Load() > 6 {
		t.Errorf("%d ran at once, want at most 6", most.Load())
	}
	for i := range mostOfClient {
		if n := mostOfClient[i].Load(); n > 3 {
			t.Errorf("%d of client %d ran at once, want at most 3", n, i)
		}
	}
	if len(long.of) != 0 || len(long.all) != 0 {
		t.Errorf("%d clients and %d places are left", len(long.of), len(long.all))
	}
}
