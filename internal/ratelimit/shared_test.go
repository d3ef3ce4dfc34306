package ratelimit_test

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelgate"
	"modelgate/internal/ratelimit"
	"modelgate/test/testkit"
)

// instance is one gateway's limits over a Redis. The clock is the local
// one's; Redis has its own.
func instance(tb testing.TB, url string, now func() time.Time) *ratelimit.Shared {
	tb.Helper()
	// A busy machine must not look like a Redis that is away.
	return patient(tb, url, now, 30*time.Second)
}

func patient(tb testing.TB, url string, now func() time.Time, patience time.Duration) *ratelimit.Shared {
	tb.Helper()
	s, err := ratelimit.NewShared(ratelimit.SharedOptions{
		URL:   url,
		Local: ratelimit.NewLocal(modelgate.Limits{}, now),
		IDs:   modelgate.NewIDs(time.Now),
		Log:   slog.New(slog.DiscardHandler),

		Patience: patience,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// wantAbout allows for the tokens that came in, one a second, since begin.
func wantAbout(t *testing.T, what string, got []ratelimit.Pass, n int, begin time.Time) {
	t.Helper()
	if most := n + int(time.Since(begin)/time.Second) + 1; len(got) < n || len(got) > most {
		t.Errorf("%s: %d admitted, want %d to %d", what, len(got), n, most)
	}
}

// newKey keeps tests apart that share a database.
func newKey() modelgate.KeyID { return modelgate.KeyID(modelgate.NewIDs(time.Now).New().String()) }

func TestSharedRateHoldsAcrossInstances(t *testing.T) {
	t.Parallel()
	url, key := testkit.Redis(t), newKey()
	a, b := instance(t, url, time.Now), instance(t, url, time.Now)
	var in atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for _, l := range []*ratelimit.Shared{a, b, a, b} {
		all.Go(func() {
			n := len(admitted(t, l, 50, key, limits(1, 20, 0), ratelimit.Request))
			in.Add(int64(n))
		})
	}
	all.Wait()
	if extra := int64(time.Since(begin)/time.Second) + 1; a.Fallbacks()+b.Fallbacks() > 0 || in.Load() < 20 || in.Load() > 20+extra {
		t.Errorf("%d admitted of 200 by two instances, %d of them unshared; want 20", in.Load(), a.Fallbacks()+b.Fallbacks())
	}
}

func TestSharedRateFollowsTheClockOfRedis(t *testing.T) {
	t.Parallel()
	l, key := instance(t, testkit.Redis(t), time.Now), newKey()
	// Three at once, then a token every 1/3 ms, which is no whole number of
	// microseconds. However slow the machine is, they do come.
	const enough = 20
	begin, n := time.Now(), 0
	for time.Since(begin) < 200*time.Millisecond || n < enough && time.Since(begin) < time.Minute {
		n += len(admitted(t, l, 1, key, limits(3000, 3, 0), ratelimit.Request))
	}
	if most := 3 + 3000*time.Since(begin).Seconds() + 1; l.Fallbacks() > 0 || float64(n) > most || n < enough {
		t.Errorf("%d admitted in %v, want at most %f and not next to none", n, time.Since(begin), most)
	}
}

func TestSharedChangedLimitsBindAtOnce(t *testing.T) {
	t.Parallel()
	l, key, begin := instance(t, testkit.Redis(t), time.Now), newKey(), time.Now()
	wantAbout(t, "large burst", admitted(t, l, 100, key, limits(1, 100, 0), ratelimit.Request), 100, begin)
	wantAbout(t, "smaller burst", admitted(t, l, 1, key, limits(1, 2, 0), ratelimit.Request), 0, begin)
	wantAbout(t, "no debt of the larger burst is left", admitted(t, l, 200, key, limits(1, 100, 0), ratelimit.Request), 97, begin)
}

func TestSharedConcurrency(t *testing.T) {
	t.Parallel()
	url, key := testkit.Redis(t), newKey()
	a, b := instance(t, url, time.Now), instance(t, url, time.Now)
	li := limits(0, 0, 3)
	first := admitted(t, a, 2, key, li, ratelimit.Call)
	second := admitted(t, b, 5, key, li, ratelimit.Call)
	want(t, "calls at once on a", first, 2)
	want(t, "calls at once on b", second, 1)
	want(t, "requests beside them", admitted(t, b, 5, key, li, ratelimit.Request), 5)
	first[0].Release()
	want(t, "after one ended on a", admitted(t, b, 5, key, li, ratelimit.Call), 1)
	if a.Fallbacks()+b.Fallbacks() > 0 {
		t.Errorf("Redis did not answer in time: nothing was shared")
	}
}

func TestSharedRefusalTakesNothing(t *testing.T) {
	t.Parallel()
	l, key := instance(t, testkit.Redis(t), time.Now), newKey()
	held := admitted(t, l, 30, key, limits(1, 1000, 1), ratelimit.Call)
	want(t, "one place", held, 1)
	held[0].Release()
	// A burst of 3 under the same bucket: 29 refusals left its tokens alone.
	if n := len(admitted(t, l, 2, key, limits(1, 3, 5), ratelimit.Call)); n != 2 || l.Leases() != 2 {
		t.Errorf("%d admitted, %d places held, want 2 and 2", n, l.Leases())
	}
}

func TestSharedPlacesExpireWithTheirInstance(t *testing.T) {
	t.Parallel()
	url, key := testkit.Redis(t), newKey()
	l := instance(t, url, time.Now)
	want(t, "a place", admitted(t, l, 1, key, limits(0, 0, 1), ratelimit.Call), 1)
	admin := client(t, url)
	places := "modelgate:limit:{" + string(key) + "}:calls"
	if ttl := admin.PTTL(t.Context(), places).Val(); ttl < 50*time.Second || ttl > time.Minute {
		t.Errorf("the places live another %v, want a minute", ttl)
	}
	// A lease that ran out, as one of an instance that died.
	if err := admin.ZAdd(t.Context(), places, redis.Z{Score: 1, Member: "dead"}).Err(); err != nil {
		t.Fatal(err)
	}
	want(t, "beside a place that ran out", admitted(t, l, 5, key, limits(0, 0, 2), ratelimit.Call), 1)
}

func TestSharedPlacesAreRenewed(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedisServer(t)
	l, key := instance(t, server.URL(), time.Now), newKey()
	held := admitted(t, l, 2, key, limits(0, 0, 2), ratelimit.Call)
	want(t, "places", held, 2)
	server.Stop()
	server.Start(t) // it has forgotten everything
	l.Renew(t.Context())
	other := instance(t, server.URL(), time.Now)
	want(t, "after Redis lost its memory", admitted(t, other, 1, key, limits(0, 0, 2), ratelimit.Call), 0)
	held[0].Release()
	held[1].Release()
	l.Renew(t.Context())
	want(t, "after both ended", admitted(t, other, 5, key, limits(0, 0, 2), ratelimit.Call), 2)
	if l.Leases() != 0 || other.Fallbacks() > 0 {
		t.Errorf("%d places are still held; %d requests were judged alone", l.Leases(), other.Fallbacks())
	}
}

func TestSharedFallsBackAndComesBack(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedisServer(t)
	var clock atomic.Int64
	l, key := instance(t, server.URL(), func() time.Time { return time.Unix(0, clock.Load()) }), newKey()
	li := limits(1, 5, 0)
	want(t, "shared", admitted(t, l, 2, key, li, ratelimit.Request), 2)
	server.Stop()
	want(t, "alone: this instance's own bucket", admitted(t, l, 20, key, li, ratelimit.Request), 5)
	if n := l.Fallbacks(); n != 20 {
		t.Errorf("%d fallbacks, want 20", n)
	}
	server.Start(t)
	want(t, "not yet asked again", admitted(t, l, 1, key, li, ratelimit.Request), 0)
	clock.Add(int64(time.Second))
	begin := time.Now()
	wantAbout(t, "shared again: a new bucket", admitted(t, l, 20, key, li, ratelimit.Request), 5, begin)
}

func TestPlaceTakenBeforeAnOutageIsGivenBackAfterIt(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedisServer(t)
	l, key := instance(t, server.URL(), time.Now), newKey()
	held := admitted(t, l, 1, key, limits(0, 0, 1), ratelimit.Call)
	want(t, "a place", held, 1)
	server.Stop()
	held[0].Release()
	if l.Leases() != 1 {
		t.Errorf("%d places to give back, want 1", l.Leases())
	}
	server.Start(t)
	l.Renew(t.Context())
	if l.Leases() != 0 {
		t.Errorf("%d places to give back after Renew, want 0", l.Leases())
	}
}

// TestSilentRedisCostsLittle connects to something that accepts and never
// answers.
func TestSilentRedisCostsLittle(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l, key := patient(t, "redis://"+listener.Addr().String(), time.Now, 0), newKey()
	begin := time.Now()
	wantAbout(t, "judged alone", admitted(t, l, 1000, key, limits(1, 5, 1), ratelimit.Request), 5, begin)
	if took := time.Since(begin); took > 25*time.Second { // waiting each time would take 50 s
		t.Errorf("1000 requests took %v, so they waited for Redis", took)
	}
}

func TestSharedAsksOnlyWhereALimitBinds(t *testing.T) {
	t.Parallel()
	l := instance(t, "redis://127.0.0.1:1", time.Now) // nothing listens there
	want(t, "unlimited", admitted(t, l, 100, "k", limits(0, 0, 0), ratelimit.Call), 100)
	if n := l.Fallbacks(); n != 0 {
		t.Errorf("%d fallbacks, want 0", n)
	}
}

// client speaks to a test's server beside the gateway.
func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSharedWithUsersAndPasswords(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedisServer(t)
	admin := client(t, server.URL())
	if err := admin.ACLSetUser(t.Context(), "gate", "on", ">s3cr@t/", "~modelgate:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ConfigSet(t.Context(), "requirepass", "pass word").Err(); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(server.URL(), "redis://"), "/0")
	for user, wantAlone := range map[string]int64{"gate:s3cr%40t%2F@": 0, ":pass%20word@": 0, "": 1, "gate:wrong@": 1} {
		l := instance(t, "redis://"+user+address+"/3/", time.Now)
		want(t, user, admitted(t, l, 1, newKey(), limits(1, 1, 1), ratelimit.Call), 1)
		if l.Fallbacks() != wantAlone {
			t.Errorf("%q: %d requests judged alone, want %d", user, l.Fallbacks(), wantAlone)
		}
	}
}

func TestSharedConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedisServer(t)
	l, key := instance(t, server.URL(), time.Now), newKey()
	var in atomic.Int64
	var all sync.WaitGroup
	for range 400 {
		all.Go(func() { in.Add(int64(len(admitted(t, l, 3, key, limits(0, 0, 500), ratelimit.Call)))) })
	}
	all.Wait()
	clients, err := client(t, server.URL()).ClientList(t.Context()).Result()
	if n := strings.Count(clients, "\n"); err != nil || n > 129 {
		t.Errorf("%d connections, %v", n, err)
	}
	if in.Load() != 500 || l.Fallbacks() != 0 {
		t.Errorf("%d admitted of 1200, %d judged alone, want 500 and 0", in.Load(), l.Fallbacks())
	}
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://x", "redis://:hush@ho st", "x"} {
		if _, err := ratelimit.NewShared(ratelimit.SharedOptions{URL: url}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("NewShared(%q) = %v", url, err)
		}
	}
}

func BenchmarkSharedEnter(b *testing.B) {
	l := instance(b, testkit.Redis(b), time.Now)
	li := limits(1_000_000, 1_000_000, 1000)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		key := newKey()
		for pb.Next() {
			if pass, err := l.Enter(key, li, ratelimit.Call); err == nil {
				pass.Release()
			}
		}
	})
	b.ReportMetric(float64(l.Fallbacks()), "fallbacks")
}
