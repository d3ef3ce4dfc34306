package ratelimit_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/ratelimit"
)

func limits(rate, burst, concurrency int) modelgate.Limits {
	return modelgate.Limits{RequestsPerSecond: &rate, Burst: &burst, Concurrency: &concurrency}
}

// admitted counts how many of n requests enter.
func admitted(t *testing.T, l ratelimit.Limiter, n int, key modelgate.KeyID, li modelgate.Limits, k ratelimit.Kind) (passes []ratelimit.Pass) {
	t.Helper()
	for range n {
		switch pass, err := l.Enter(key, li, k); {
		case err == nil:
			passes = append(passes, pass)
		case errors.Is(err, modelgate.ErrRateLimited):
		default:
			t.Fatalf("Enter: %v", err)
		}
	}
	return passes
}

func want(t *testing.T, what string, got []ratelimit.Pass, n int) {
	t.Helper()
	if len(got) != n {
		t.Errorf("%s: %d admitted, want %d", what, len(got), n)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
		li := limits(10, 5, 0)
		want(t, "a burst", admitted(t, l, 20, "k", li, ratelimit.Request), 5)
		time.Sleep(99 * time.Millisecond)
		want(t, "before the next token", admitted(t, l, 1, "k", li, ratelimit.Request), 0)
		time.Sleep(time.Millisecond)
		want(t, "the next token", admitted(t, l, 2, "k", li, ratelimit.Request), 1)
		want(t, "another key", admitted(t, l, 20, "other", li, ratelimit.Request), 5)
		time.Sleep(time.Hour)
		want(t, "a burst after a pause", admitted(t, l, 20, "k", li, ratelimit.Request), 5)
	})
}

func TestRateAndBurstBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		own       modelgate.Limits
		defaults  modelgate.Limits
		admitted  int // of 200 at once
		perSecond int // of 200 at once a second later
	}{
		{"nothing set", modelgate.Limits{}, modelgate.Limits{}, 200, 200},
		{"unlimited", limits(0, 1, 0), limits(1, 1, 1), 200, 200},
		{"defaults", modelgate.Limits{}, limits(50, 100, 0), 100, 50},
		{"one a second", limits(1, 1, 0), modelgate.Limits{}, 1, 1},
		{"no burst is a second's worth", limits(7, 0, 0), modelgate.Limits{}, 7, 7},
		{"burst under the rate", limits(50, 3, 0), modelgate.Limits{}, 3, 3},
		{"huge", limits(math.MaxInt, math.MaxInt, 0), modelgate.Limits{}, 200, 200},
		{"huge burst", limits(1, math.MaxInt, 0), modelgate.Limits{}, 200, 200},
		{"negative", limits(-1, -1, -1), modelgate.Limits{}, 200, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := ratelimit.NewLocal(c.defaults, time.Now)
				want(t, "at once", admitted(t, l, 200, "k", c.own, ratelimit.Request), c.admitted)
				time.Sleep(time.Second)
				want(t, "a second later", admitted(t, l, 200, "k", c.own, ratelimit.Request), c.perSecond)
			})
		})
	}
}

// TestRequestsAtOnceAreJudgedInTheOrderOfTheirInstants: the clock moves one
// token on with each reading, so that there is one for every request. A request
// that is judged by an instant that lies before another's finds none.
func TestRequestsAtOnceAreJudgedInTheOrderOfTheirInstants(t *testing.T) {
	t.Parallel()
	var ticks atomic.Int64
	start := time.Now()
	l := ratelimit.NewLocal(modelgate.Limits{}, func() time.Time {
		now := start.Add(time.Duration(ticks.Add(1)) * time.Millisecond)
		runtime.Gosched() // others read the clock meanwhile
		return now
	})
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 500 {
				if _, err := l.Enter("k", limits(1000, 1, 0), ratelimit.Request); err != nil {
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := refused.Load(); n > 0 {
		t.Errorf("%d of 8000 requests were refused, with a token for each", n)
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
	li := limits(0, 0, 3)
	inside := admitted(t, l, 10, "k", li, ratelimit.Call)
	want(t, "calls at once", inside, 3)
	want(t, "requests beside them", admitted(t, l, 10, "k", li, ratelimit.Request), 10)
	inside[0].Release()
	want(t, "after one ended", admitted(t, l, 10, "k", li, ratelimit.Call), 1)
}

func TestRefusedCallsCountAgainstNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
		inside := admitted(t, l, 50, "k", limits(1, 10, 1), ratelimit.Call)
		want(t, "one place", inside, 1)
		want(t, "the rate after 49 refusals for want of a place", admitted(t, l, 50, "k", limits(1, 10, 1), ratelimit.Request), 9)
		inside[0].Release()
		want(t, "no token left", admitted(t, l, 1, "k", limits(1, 10, 1), ratelimit.Call), 0)
		time.Sleep(time.Second)
		want(t, "the place is free: the refusal for want of a token took none", admitted(t, l, 1, "k", limits(1, 10, 1), ratelimit.Call), 1)
	})
}

func TestChangedLimitsBindAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
		want(t, "large burst", admitted(t, l, 100, "k", limits(1, 100, 0), ratelimit.Request), 100)
		want(t, "smaller burst", admitted(t, l, 1, "k", limits(1, 2, 0), ratelimit.Request), 0)
		time.Sleep(2 * time.Second)
		want(t, "no debt of the larger burst is left", admitted(t, l, 5, "k", limits(1, 2, 0), ratelimit.Request), 2)
	})
}

func TestNeverMoreThanTheLimitsUnderLoad(t *testing.T) {
	t.Parallel()
	l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 500 {
				pass, err := l.Enter("k", limits(0, 0, 5), ratelimit.Call)
				if err != nil {
					continue
				}
				now := inside.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				inside.Add(-1)
				pass.Release()
			}
		})
	}
	all.Wait()
	if most.Load() > 5 {
		t.Errorf("%d calls at once, want at most 5", most.Load())
	}
	want(t, "afterwards all places are free", admitted(t, l, 10, "k", limits(0, 0, 5), ratelimit.Call), 5)
}

// TestRateAgainstAModel compares with a plain token bucket of fractions.
func TestRateAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		now := time.Unix(1_000_000, 0)
		l := ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return now })
		rate, burst := rapid.IntRange(1, 1000).Draw(r, "rate"), rapid.IntRange(1, 50).Draw(r, "burst")
		tokens := float64(burst)
		for range rapid.IntRange(1, 200).Draw(r, "requests") {
			pause := time.Duration(rapid.IntRange(0, int(2*time.Second)/rate).Draw(r, "pause"))
			now = now.Add(pause)
			tokens = min(float64(burst), tokens+pause.Seconds()*float64(rate))
			_, err := l.Enter("k", limits(rate, burst, 0), ratelimit.Request)
			const rounding = 1e-4 // an interval is whole nanoseconds
			if err == nil && tokens < 1-rounding || err != nil && tokens >= 1+rounding {
				r.Fatalf("admitted %t with %f tokens", err == nil, tokens)
			}
			if err == nil {
				tokens--
			}
		}
	})
}

func TestIdleKeysAreDropped(t *testing.T) {
	var now atomic.Int64
	l := ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return time.Unix(now.Load(), 0) })
	held := admitted(t, l, 1, "held", limits(1, 1, 1), ratelimit.Call)
	want(t, "held", held, 1)
	for i := range 200_000 {
		now.Add(1)
		if _, err := l.Enter(modelgate.KeyID(fmt.Sprint(i)), limits(1, 1, 1), ratelimit.Request); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.Keys(); n > 64*70 {
		t.Errorf("%d keys are kept of 200,000 that are idle", n)
	}
	want(t, "a place held outlives the sweeps", admitted(t, l, 1, "held", limits(1, 1, 1), ratelimit.Call), 0)
}

func TestEnterDoesNotAllocate(t *testing.T) {
	l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
	li := limits(1_000_000_000, 1_000_000, 10)
	if n := testing.AllocsPerRun(1000, func() {
		pass, err := l.Enter("k", li, ratelimit.Call)
		if err != nil {
			t.Error(err)
		}
		pass.Release()
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkEnter(b *testing.B) {
	keys := make([]modelgate.KeyID, 10_000)
	for i := range keys {
		keys[i] = modelgate.KeyID(modelgate.NewIDs(time.Now).New().String())
	}
	l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
	li := limits(1_000_000_000, 1_000_000, 100)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if pass, err := l.Enter(keys[i%len(keys)], li, ratelimit.Call); err == nil {
				pass.Release()
			}
		}
	})
}
