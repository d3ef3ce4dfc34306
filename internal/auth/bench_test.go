package auth_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/auth"
)

// BenchmarkIdentify is the hot path: a cached key among many.
func BenchmarkIdentify(b *testing.B) {
	for _, size := range []int{1, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			db := &database{keys: make(map[modelgate.Digest]modelgate.Caller, size)}
			now := time.Now() // stands still, so that nothing ages while a million keys load
			k := auth.New(auth.Options{Source: db, Capacity: 2 * size, Log: slog.New(slog.DiscardHandler),
				Now: func() time.Time { return now }, Unreachable: func(error) bool { return false }})
			secrets := make([]string, size)
			for i := range secrets {
				s := modelgate.NewSecret()
				secrets[i] = s.Reveal()
				db.keys[s.Digest()] = modelgate.Caller{KeyID: modelgate.KeyID(s.Prefix())}
				if _, err := k.Identify(b.Context(), secrets[i], auth.Origin{}); err != nil {
					b.Fatal(err)
				}
			}
			var worker atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := int(worker.Add(7919)); pb.Next(); i += 7919 {
					if _, err := k.Identify(b.Context(), secrets[i%size], auth.Origin{}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func TestIdentifyDoesNotAllocate(t *testing.T) {
	b := setup(t)
	b.want(t, "first", "")
	if n := testing.AllocsPerRun(1000, func() { _, _ = b.Identify(t.Context(), b.secret, auth.Origin{}) }); n > 0 {
		t.Errorf("%v allocations for a cached key, want 0", n)
	}
}
