package security

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestCollectorWhenBodiesFillTheMemory fills all the memory that bodies may have, by two
// organizations and in large and small bodies that never end, and makes honest
// calls beside them: the process stays within its memory and the collector does
// not run all the time.
func TestCollectorWhenBodiesFillTheMemory(t *testing.T) {
	t.Parallel()
	const limit = 256 << 20
	g := testkit.StartGateway(t, testkit.GatewayOptions{Env: []string{"GOMEMLIMIT=256MiB"}})
	l := &lab{Gateway: g}
	var keys []string
	for _, name := range []string{"one", "other", "third"} {
		key, _ := g.NewKey(g.NewClient(name))
		keys = append(keys, key)
	}
	l.key = keys[2]
	held := func(key string, size int) string {
		head := strings.Replace(l.request("POST", "/openai/v1/chat/completions", padded("m", size)), l.key, key, 1)
		return head[:len(head)-1] // all but its last byte
	}
	var sent sync.WaitGroup
	for i, size := range []int{9 << 20, 9 << 20, 4 << 20, 4 << 20, 1 << 20, 120 << 10} {
		for j := range 4 + 40/(i+1) {
			conn := l.dial(t)
			sent.Go(func() {
				_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.WriteString(conn, held(keys[j%2], size))
			})
		}
	}
	sent.Wait()
	before, began := metric(t, g.URL, "go_gc_duration_seconds_count"), time.Now()
	peak := int64(0)
	const calls = 300
	for range calls {
		if a := l.call(t, l.key, "POST", "/openai/v1/chat/completions", chat("m")); a.StatusCode != 200 {
			t.Fatalf("an honest call: %s", a)
		}
		peak = max(peak, memory(t, g.Pid()))
	}
	runs := metric(t, g.URL, "go_gc_duration_seconds_count") - before
	t.Logf("%.0f collections during %d calls in %v; at most %d MiB in memory", runs, calls, time.Since(began), peak>>20)
	if runs > calls/3 {
		t.Errorf("%.0f collections during %d small calls", runs, calls)
	}
	if peak > limit+64<<20 {
		t.Errorf("%d MiB in memory with a limit of %d MiB", peak>>20, limit>>20)
	}
}
