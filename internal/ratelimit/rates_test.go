package ratelimit_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
	"modelgate/internal/ratelimit"
	"modelgate/test/testkit"
)

// numbers make rules unlike those of other tests.
func rule(r modelgate.RateLimit) *modelgate.RateLimit {
	r.Number = rand.Int64()
	if r.Level == "" {
		r.Level = modelgate.LevelClient
	}
	return &r
}

func matching(t *testing.T, text string) *modelgate.Match {
	t.Helper()
	m, err := modelgate.ParseMatch(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func caller(rules ...*modelgate.RateLimit) *modelgate.Caller {
	return &modelgate.Caller{ClientID: modelgate.ClientID(newKey()), KeyID: newKey(), RateLimits: rules}
}

// used is an admitted call.
type used struct {
	at   time.Duration
	cost int64
}

// most is the largest excess of what any interval between two calls admitted
// over what a bucket allows, by counting every one.
func most(calls []used, size, perSecond float64) float64 {
	worst := 0.0
	for i := range calls {
		sum := 0.0
		for _, c := range calls[i:] {
			sum += float64(c.cost)
			worst = max(worst, sum-size-(c.at-calls[i].at).Seconds()*perSecond)
		}
	}
	return worst
}

// In any interval T at most the burst and T's share of the limit is admitted,
// and not much less than that under load.
func TestRatesAgainstACount(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			r := &modelgate.RateLimit{Unit: modelgate.UnitTokens, Window: "minute", Limit: 1 + random.Int64N(100_000)}
			if random.IntN(2) == 0 {
				r.Burst = 1 + random.Int64N(2*r.Limit)
			}
			c := caller(rule(*r))
			rates := ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, time.Now))
			begin, mean := time.Now(), max(1, r.Size()/20)
			var calls []used
			var sum int64
			for range 400 {
				cost := 1 + random.Int64N(2*mean)
				_, err := rates.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: cost})
				if err == nil && cost <= r.Size() {
					calls, sum = append(calls, used{time.Since(begin), cost}), sum+cost
				}
				if retry, ok := errors.AsType[*modelgate.RetryError](err); ok && random.IntN(4) == 0 {
					time.Sleep(retry.After) // then it does pass
					if _, err := rates.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: cost}); err != nil {
						t.Errorf("seed %d: refused after the time it said: %v", seed, err)
					}
					calls, sum = append(calls, used{time.Since(begin), cost}), sum+cost
				}
				time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
			}
			rate := float64(r.Limit) / 60
			if over := most(calls, float64(r.Size()), rate); over > 1e-3 {
				t.Errorf("seed %d, limit %d, burst %d: %g more than allowed in some interval", seed, r.Limit, r.Burst, over)
			}
			if sum == 0 {
				t.Errorf("seed %d: nothing was admitted", seed)
			}
		})
	}
}

// The same on Redis, whose own clock counts: the time that a call surely took
// place after, and before.
func TestSharedRatesAgainstACount(t *testing.T) {
	t.Parallel()
	url := testkit.Redis(t)
	a, b := instance(t, url, time.Now), instance(t, url, time.Now)
	const limit, burst = 600_000, 5000 // 10,000 a second
	c := caller(rule(modelgate.RateLimit{Unit: modelgate.UnitInputTokens, Window: "minute", Limit: limit, Burst: burst}))
	instances := []*ratelimit.Rates{ratelimit.NewRates(a), ratelimit.NewRates(b)}
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now()
	var sum int64
	for i := range 1500 {
		cost := 1 + random.Int64N(400)
		if _, err := instances[i%2].Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: cost, Output: 1 << 40}); err == nil {
			sum += cost
		}
	}
	allowed := burst + time.Since(begin).Seconds()*limit/60
	if a.Fallbacks()+b.Fallbacks() > 0 || float64(sum) > allowed || float64(sum) < 0.8*min(allowed, 1500*150) {
		t.Errorf("%d admitted, %.0f allowed, %d calls judged alone", sum, allowed, a.Fallbacks()+b.Fallbacks())
	}
}

// ways are the two places of buckets.
func ways(t *testing.T, test func(t *testing.T, r *ratelimit.Rates, flush func())) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		standing := time.Now()
		test(t, ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return standing })), func() {})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s := instance(t, testkit.Redis(t), time.Now)
		test(t, ratelimit.NewRates(s), s.Flush)
		if s.Fallbacks() > 0 {
			t.Error("Redis did not answer in time: nothing was shared")
		}
	})
}

// enters counts the calls of many that pass on entry.
func enters(r *ratelimit.Rates, c *modelgate.Caller, n int) (in []ratelimit.Taken) {
	for range n {
		if taken, err := r.Enter(c); err == nil {
			in = append(in, taken)
		}
	}
	return in
}

// A call draws from all limits or none.
func TestRatesAllOrNone(t *testing.T) {
	ways(t, func(t *testing.T, r *ratelimit.Rates, _ func()) {
		wide := rule(modelgate.RateLimit{Unit: modelgate.UnitRequests, Window: "minute", Limit: 60, Burst: 50})
		c := caller(wide, rule(modelgate.RateLimit{Level: modelgate.LevelKey, Unit: modelgate.UnitRequests, Window: "minute", Limit: 1, Burst: 3}))
		if in := len(enters(r, c, 40)); in != 3 {
			t.Errorf("%d admitted, want 3", in)
		}
		other := &modelgate.Caller{ClientID: c.ClientID, KeyID: newKey(), RateLimits: []*modelgate.RateLimit{wide}}
		if in := len(enters(r, other, 60)); in < 47 || in > 50 { // one comes back a second
			t.Errorf("%d of the organization's admitted, want 47: refused calls draw nothing", in)
		}
	})
}

// Calls at once are counted until they end; a refused call holds no place.
func TestRatesConcurrency(t *testing.T) {
	ways(t, func(t *testing.T, r *ratelimit.Rates, _ func()) {
		c := caller(rule(modelgate.RateLimit{Unit: modelgate.UnitConcurrency, Limit: 3}), rule(modelgate.RateLimit{Level: modelgate.LevelKey, Unit: modelgate.UnitConcurrency, Limit: 2}))
		in := enters(r, c, 5)
		if len(in) != 2 {
			t.Fatalf("%d calls at once, want 2", len(in))
		}
		_, err := r.Enter(c)
		limited, ok := errors.AsType[*modelgate.LimitError](err)
		if !ok || limited.State.Scope != modelgate.LevelKey || limited.State.Unit != modelgate.UnitConcurrency || limited.State.Used != 2*modelgate.USD {
			t.Errorf("refused with %+v", err)
		}
		if retry, ok := errors.AsType[*modelgate.RetryError](err); !ok || retry.After != time.Second {
			t.Errorf("refused with %+v, want a second", err)
		}
		in[0].End()
		in[0].End()
		if n := len(enters(r, c, 5)); n != 1 {
			t.Errorf("%d after one ended, want 1", n)
		}
	})
}

// What a call drew too much comes back, what it drew too little is owed, and a
// call that was refused later gives back everything.
func TestRatesSettle(t *testing.T) {
	ways(t, func(t *testing.T, r *ratelimit.Rates, flush func()) {
		c := caller(rule(modelgate.RateLimit{Unit: modelgate.UnitTokens, Window: "minute", Limit: 60, Burst: 10_000}))
		level := func() int64 { flush(); return int64(r.State(c, &modelgate.Traits{})[0].State.Used / modelgate.USD) }
		about := func(what string, want int64) {
			t.Helper()
			if got := level(); got > want || got < want-20 { // one comes back a second
				t.Errorf("%s: %d are drawn, want %d", what, got, want)
			}
		}
		take := func(n int64) ratelimit.Taken {
			t.Helper()
			taken, err := r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: n / 2, Output: n - n/2})
			if err != nil {
				t.Fatal(err)
			}
			return taken
		}
		refused := take(4000)
		about("reserved", 4000)
		refused.End()
		refused.End()
		about("given back", 0)
		much := take(3000)
		much.Settle(&modelgate.Amounts{Input: 1000})
		much.Settle(&modelgate.Amounts{})
		much.End()
		about("less than reserved", 1000)
		little := take(1)
		little.Settle(&modelgate.Amounts{Output: 12_000})
		little.End()
		about("more than there is", 13_000)
		_, err := r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: 1})
		retry, ok := errors.AsType[*modelgate.RetryError](err)
		if !ok || retry.After < 2980*time.Second || retry.After > 3002*time.Second {
			t.Errorf("a bucket in debt: %+v, want 3001 s", err)
		}
	})
}

// A call that is larger than the bucket waits for a full one, not for ever.
func TestRatesLargerThanTheBucket(t *testing.T) {
	ways(t, func(t *testing.T, r *ratelimit.Rates, _ func()) {
		c := caller(rule(modelgate.RateLimit{Unit: modelgate.UnitUSD, Window: "minute", Limit: 60, Burst: 100}))
		if _, err := r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Cost: 5000}); err != nil {
			t.Errorf("a full bucket: %v", err)
		}
		if _, err := r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Cost: 1}); err == nil {
			t.Error("a bucket in debt admits")
		}
	})
}

// Matches choose the calls that count, and each value of a tag has a bucket.
func TestRatesMatch(t *testing.T) {
	ways(t, func(t *testing.T, r *ratelimit.Rates, _ func()) {
		one := func(match string, limit int64) *modelgate.RateLimit {
			return rule(modelgate.RateLimit{Match: matching(t, match), Unit: modelgate.UnitRequests, Window: "minute", Limit: 1, Burst: limit})
		}
		c := caller(one("model:openai/*", 3), one("tag:end_user=*", 2), one("tag:end_user=vip", 4))
		count := func(slug, user string) (n int) {
			traits := modelgate.Traits{Slug: slug, Attribution: map[string]string{"end_user": user}}
			for range 6 {
				if _, err := r.Limit(c, &traits, &modelgate.Amounts{Requests: 1}); err == nil {
					n++
				}
			}
			return n
		}
		for _, w := range []struct {
			slug, user string
			want       int
		}{{"a/b", "", 6}, {"a/b", "ann", 2}, {"a/b", "bob", 2}, {"a/b", "vip", 4}, {"openai/x", "", 3}, {"openai/y", "", 0}} {
			if got := count(w.slug, w.user); got != w.want {
				t.Errorf("%s by %q: %d admitted, want %d", w.slug, w.user, got, w.want)
			}
		}
		if len(enters(r, c, 5)) != 5 {
			t.Error("limits with a match bind on entry")
		}
	})
}

// Limits of the file have a bucket for each target.
func TestRatesOfTheFile(t *testing.T) {
	ways(t, func(t *testing.T, r *ratelimit.Rates, flush func()) {
		perKey := rule(modelgate.RateLimit{Level: modelgate.LevelKey, Unit: modelgate.UnitRequests, Window: "minute", Limit: 1, Burst: 2, Owner: modelgate.OwnerOperator})
		all := rule(modelgate.RateLimit{Level: modelgate.LevelGateway, Unit: modelgate.UnitRequests, Window: "minute", Limit: 1, Burst: 4, Owner: modelgate.OwnerOperator})
		r.Configure([]*modelgate.RateLimit{perKey, all})
		if n := len(enters(r, caller(), 5)); n != 2 {
			t.Errorf("%d of a key, want 2", n)
		}
		flush()
		last := caller()
		if n := len(enters(r, last, 2)); n != 2 {
			t.Errorf("%d of another key, want 2", n)
		}
		_, err := r.Enter(caller())
		if _, shown := errors.AsType[*modelgate.LimitError](err); !errors.Is(err, modelgate.ErrRateLimited) || shown {
			t.Errorf("all organizations together: %v, want a refusal without figures", err)
		}
		r.Configure([]*modelgate.RateLimit{perKey})
		own := func(owner modelgate.Owner, key modelgate.KeyID) *modelgate.Caller {
			l := rule(modelgate.RateLimit{Level: modelgate.LevelKey, ID: string(key), Unit: modelgate.UnitRequests, Window: "minute", Limit: 1, Burst: 3, Owner: owner})
			c := caller(l)
			if l.ID == "" {
				l.ID = string(c.KeyID)
			}
			return c
		}
		if n := len(enters(r, own(modelgate.OwnerOperator, ""), 5)); n != 3 {
			t.Errorf("%d where the operator has set another limit for the key, want its 3", n)
		}
		flush()
		for _, c := range []*modelgate.Caller{own(modelgate.OwnerOrganization, ""), own(modelgate.OwnerOperator, "ancestor")} {
			if n := len(enters(r, c, 5)); n != 2 {
				t.Errorf("%d where the limit of %s is another's, want 2", n, c.RateLimits[0].Owner)
			}
			flush()
		}
		r.Configure(nil)
		if n := len(enters(r, last, 5)); n != 5 {
			t.Errorf("%d without limits, want 5", n)
		}
	})
}

// No limit is skipped: a call to which too many apply is refused.
func TestRatesTooMany(t *testing.T) {
	t.Parallel()
	r := ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, time.Now))
	c := caller()
	for range ratelimit.MaxRules {
		c.RateLimits = append(c.RateLimits, rule(modelgate.RateLimit{Unit: modelgate.UnitRequests, Window: "second", Limit: 100}))
	}
	if _, err := r.Enter(c); err != nil {
		t.Errorf("%d limits: %v", ratelimit.MaxRules, err)
	}
	c.RateLimits = append(c.RateLimits, rule(modelgate.RateLimit{Unit: modelgate.UnitTokens, Window: "minute", Limit: 100}))
	if _, err := r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{}); modelgate.KindOf(err) != modelgate.Forbidden {
		t.Errorf("%d limits: %v", ratelimit.MaxRules+1, err)
	}
}

// A bound key sees the figures of its own limits alone, money as billed.
func TestRatesFigures(t *testing.T) {
	t.Parallel()
	standing := time.Now()
	r := ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return standing }))
	own := rule(modelgate.RateLimit{Level: modelgate.LevelKey, Unit: modelgate.UnitUSD, Window: "minute", Limit: int64(modelgate.USD)})
	above := rule(modelgate.RateLimit{Unit: modelgate.UnitTokens, Window: "minute", Limit: 10})
	c := caller(above, own)
	c.SubAccountID, c.Markup, own.ID = "s", 100_000_000, string(c.KeyID)
	taken, err := r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: 1, Cost: modelgate.USD / 4})
	if err != nil || len(taken.Shown) != 1 || taken.Shown[0].State.Limit != 2*modelgate.USD || taken.Shown[0].State.Used != modelgate.USD/2 {
		t.Errorf("shown: %+v, %v", taken.Shown, err)
	}
	if _, err := r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Cost: modelgate.USD}); err == nil {
		t.Error("nothing was refused")
	} else if l, ok := errors.AsType[*modelgate.LimitError](err); !ok || l.State.Remaining != 3*modelgate.USD/2 || l.State.ID != string(c.KeyID) {
		t.Errorf("its own: %v", err)
	}
	_, err = r.Limit(c, &modelgate.Traits{}, &modelgate.Amounts{Input: 10})
	if _, shown := errors.AsType[*modelgate.LimitError](err); !errors.Is(err, modelgate.ErrRateLimited) || shown {
		t.Errorf("above it: %v, want no figures", err)
	}
}

// What has come back in part is not there yet: who is refused is never told that
// the limit has enough.
func TestRefusedRatesAreUsedUp(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, r *ratelimit.Rates, pass func()) {
		t.Helper()
		c := caller(rule(modelgate.RateLimit{Unit: modelgate.UnitRequests, Window: "minute", Limit: 1}))
		if in := enters(r, c, 1); len(in) != 1 {
			t.Fatal("the first call was refused")
		}
		pass()
		_, err := r.Enter(c)
		l, ok := errors.AsType[*modelgate.LimitError](err)
		if !ok || l.State.Used != modelgate.WholeUnits(1) || l.State.Remaining != 0 {
			t.Errorf("the second call: %+v, %v", l, err)
		}
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		now := time.Now()
		check(t, ratelimit.NewRates(ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return now })), func() { now = now.Add(time.Millisecond) })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		check(t, ratelimit.NewRates(instance(t, testkit.Redis(t), time.Now)), func() {}) // its clock moves by itself
	})
}
