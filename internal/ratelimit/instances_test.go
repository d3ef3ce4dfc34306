package ratelimit_test

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/ratelimit"
	"modelgate/test/testkit"
)

var full = flag.Bool("full", false, "run at the size that the documentation states")

// fleet is three instances with callers of one key.
type fleet struct {
	shared []*ratelimit.Shared
	rates  []*ratelimit.Rates
	caller *modelgate.Caller
	clock  atomic.Int64 // ahead of the true one
}

// callersOf is how many calls an instance has open at once.
const callersOf = 4

// run makes calls that use twice the tokens they are estimated to use, at least
// for so long, and answers how many tokens were used and how long it took.
func (f *fleet) run(attempts int, lasts time.Duration, estimate int64) (used int64, took time.Duration) {
	var sum atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for i, r := range f.rates {
		for range callersOf {
			all.Go(func() {
				for n := 0; n < attempts || time.Since(begin) < lasts; n++ {
					taken, err := r.Limit(f.caller, &modelgate.Traits{}, &modelgate.Amounts{Input: estimate / 2, Output: estimate / 2})
					if err != nil {
						continue
					}
					sum.Add(2 * estimate)
					taken.Settle(&modelgate.Amounts{Input: estimate, Output: estimate})
					taken.End()
					f.shared[i].Flush()
				}
			})
		}
	}
	all.Wait()
	return sum.Load(), time.Since(begin)
}

func (f *fleet) fallbacks() (n int64) {
	for _, s := range f.shared {
		n += s.Fallbacks()
	}
	return n
}

// A limit of 100,000 tokens a minute holds over three instances whose calls use
// twice what was estimated: at most the burst, what comes back, and what open
// calls use beyond their estimates. While Redis is away each instance keeps the
// limit by itself, and once it is back all keep it together.
func TestTokensAMinuteOverInstances(t *testing.T) {
	t.Parallel()
	attempts, lasts := 300, time.Duration(0)
	if *full {
		lasts = 10 * time.Minute / 3
	}
	const limit, estimate = 100_000, 100
	server := testkit.NewRedisServer(t)
	f := &fleet{caller: caller(rule(modelgate.RateLimit{Unit: modelgate.UnitTokens, Window: "minute", Limit: limit}))}
	now := func() time.Time { return time.Now().Add(time.Duration(f.clock.Load())) }
	for range 3 {
		s := instance(t, server.URL(), now)
		f.shared, f.rates = append(f.shared, s), append(f.rates, ratelimit.NewRates(s))
	}
	check := func(phase string, buckets float64, used int64, took time.Duration) {
		t.Helper()
		most := buckets*(limit+limit*took.Minutes()) + 3*callersOf*estimate
		if float64(used) > most || float64(used) < 0.8*limit {
			t.Errorf("%s: %d tokens used in %v, want at most %.0f and nearly as much", phase, used, took, most)
		}
		t.Logf("%s: %d tokens in %v, at most %.0f", phase, used, took.Round(time.Millisecond), most)
	}
	used, took := f.run(attempts, lasts, estimate)
	check("shared", 1, used, took)
	if n := f.fallbacks(); n > 0 {
		t.Errorf("%d calls judged alone although Redis was there", n)
	}
	server.Stop()
	used, took = f.run(2*attempts, lasts, estimate)
	check("Redis away", 3, used, took)
	before := f.fallbacks()
	if before == 0 {
		t.Error("no call was judged alone although Redis was away")
	}
	server.Start(t) // it has forgotten everything
	for i, s := range f.shared {
		probe := caller(rule(modelgate.RateLimit{Unit: modelgate.UnitRequests, Window: "minute", Limit: 1000}))
		for alone := int64(-1); s.Fallbacks() != alone; { // until it has found that out
			f.clock.Add(int64(time.Second))
			alone = s.Fallbacks()
			enters(f.rates[i], probe, 1)
		}
	}
	before = f.fallbacks()
	used, took = f.run(attempts, lasts, estimate)
	check("Redis back", 1, used, took)
	if n := f.fallbacks() - before; n > 0 {
		t.Errorf("%d calls judged alone although Redis is back", n)
	}
}

// BenchmarkSharedRates draws from one limit and from twelve, in one script each.
func BenchmarkSharedRates(b *testing.B) {
	for _, n := range []int{1, 12} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rates := ratelimit.NewRates(instance(b, testkit.Redis(b), time.Now))
			c := caller()
			for range n {
				c.RateLimits = append(c.RateLimits, rule(modelgate.RateLimit{Unit: modelgate.UnitTokens, Window: "minute", Limit: 1_000_000_000}))
			}
			for b.Loop() {
				if _, err := rates.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
