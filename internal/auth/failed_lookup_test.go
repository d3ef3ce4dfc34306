package auth_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
	"modelgate/internal/auth"
)

// origin is that of a request from an address.
func origin(peer string, forwarded ...string) auth.Origin {
	return auth.OriginOf(&http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}})
}

// flood presents n keys that do not exist, at once, and counts other answers
// than unauthorized.
func (b *bench) flood(t *testing.T, n int, from func(i int) auth.Origin) {
	var all sync.WaitGroup
	var wrong atomic.Int64
	for i := range n {
		all.Go(func() {
			if _, err := b.Identify(t.Context(), modelgate.NewSecret().Reveal(), from(i)); err != modelgate.ErrUnauthorized {
				wrong.Add(1)
			}
		})
	}
	all.Wait()
	if wrong.Load() > 0 {
		t.Errorf("%d of %d unknown keys were not answered as such", wrong.Load(), n)
	}
}

func one(int) auth.Origin { return origin("203.0.113.9:4711") }

// An address that presents thousands of well-formed keys that do not exist
// costs the database 50 look-ups at once, then a hundred a second, and gets
// one answer throughout.
func TestFloodOfUnknownKeysIsPaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		start := time.Now()
		for range 20 {
			b.flood(t, 1000, one)
			time.Sleep(100 * time.Millisecond)
		}
		took := time.Since(start)
		most := int64(50 + 8 + 17 + (20+100)*int64(took/time.Millisecond)/1000)
		if n := b.db.queries.Load(); n > most || n < 50 {
			t.Errorf("%d look-ups in %v, want 50 to %d", n, took, most)
		}
	})
}

func TestFloodLeavesGoodKeysAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.run(t)
		fresh := modelgate.NewSecret()
		b.db.change(func() { b.db.keys[fresh.Digest()] = modelgate.Caller{KeyID: "fresh"} })
		use := func(what, secret string, from auth.Origin, longest time.Duration) {
			before := time.Now()
			if _, err := b.Identify(t.Context(), secret, from); err != nil || time.Since(before) > longest {
				t.Errorf("%s: %v after %v", what, err, time.Since(before))
			}
		}
		use("first use", b.secret, one(0), 0)
		for range 30 {
			b.flood(t, 500, one)
			use("a key in use, from the same address", b.secret, one(0), 0)
			time.Sleep(time.Second)
		}
		b.flood(t, 500, one)
		use("a new key from another address", fresh.Reveal(), origin("198.51.100.7:1"), 0)
		b.Forget(fresh.Digest())
		time.Sleep(200 * time.Millisecond)
		use("a new key from the same address when the flood has passed", fresh.Reveal(), one(0), 160*time.Millisecond)
	})
}

// Finding a key is no failure: an instance that has just started meets all
// keys for the first time, often from the one address of a proxy.
func TestNewKeysFromOneAddressAreNotPaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		secrets := make([]string, 2000)
		for i := range secrets {
			s := modelgate.NewSecret()
			secrets[i], b.db.keys[s.Digest()] = s.Reveal(), modelgate.Caller{KeyID: modelgate.KeyID(fmt.Sprint(i))}
		}
		start := time.Now()
		var all sync.WaitGroup
		for _, secret := range secrets {
			all.Go(func() {
				if _, err := b.Identify(t.Context(), secret, one(0)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took > 0 {
			t.Errorf("2000 first uses took %v, want no wait", took)
		}
	})
}

// Failures are counted by the address that Client finds, and without one by
// the peer's, whatever a header says. httpx.Proxies has tests of its own.
func TestWhoseFailuresCountTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flooder, other auth.Origin
		together       bool
	}{
		"two ports of one address":               {origin("203.0.113.9:1"), origin("203.0.113.9:2"), true},
		"two addresses":                          {origin("203.0.113.9:1"), origin("203.0.113.10:1"), false},
		"one /64":                                {origin("[2001:db8:1:2::1]:1"), origin("[2001:db8:1:2:ffff::2]:1"), true},
		"two /64":                                {origin("[2001:db8:1:2::1]:1"), origin("[2001:db8:1:3::1]:1"), false},
		"one address in two spellings":           {origin("[::ffff:203.0.113.9]:1"), origin("203.0.113.9:1"), true},
		"behind the proxy":                       {origin("127.0.0.1:1", "203.0.113.9"), origin("127.0.0.1:2", "203.0.113.10"), false},
		"one client behind the proxy":            {origin("127.0.0.1:1", "203.0.113.9"), origin("127.0.0.1:2", "203.0.113.9"), true},
		"a forged header from afar":              {origin("203.0.113.9:1", "198.51.100.1"), origin("203.0.113.9:1", "198.51.100.2"), true},
		"a forged header from a private network": {origin("10.0.0.1:1", "198.51.100.1"), origin("10.0.0.1:1", "198.51.100.2"), true},
		"no address":                             {origin(""), origin("@"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				b.flood(t, 1000, func(int) auth.Origin { return c.flooder })
				before := b.db.queries.Load()
				b.flood(t, 40, func(int) auth.Origin { return c.other })
				if looked := b.db.queries.Load() - before; (looked < 40) != c.together {
					t.Errorf("%d of 40 look-ups, counted together: want %v", looked, c.together)
				}
			})
		})
	}
}

// Failures from more addresses than are remembered are counted together, and
// an address that was quiet is forgotten.
func TestRememberedAddressesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		address := func(i int) auth.Origin { return origin(fmt.Sprintf("198.18.%d.%d:1", i/256, i%256)) }
		b.flood(t, 4096, address)
		b.wantQueries(t, "one failure each of 4096 addresses", 4096)
		beyond := func(i int) auth.Origin { return address(5000 + i) }
		b.flood(t, 1000, beyond)
		if n := b.db.queries.Swap(0); n > 50+8+17 {
			t.Errorf("%d look-ups for addresses that are not remembered, want them counted together", n)
		}
		time.Sleep(3 * time.Second)
		b.flood(t, 1000, beyond)
		b.wantQueries(t, "when the first addresses are forgotten", 1000)
	})
}

func FuzzOrigin(f *testing.F) {
	f.Add("127.0.0.1:1", "203.0.113.9, [::1]:80")
	f.Add("[fe80::1%eth0]:1", ",")
	f.Add("", "::ffff:1.2.3.4%x")
	var b *bench
	turn := 0
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		if turn++; b == nil || turn%8 == 0 { // before failures are made to wait
			b = setup(f)
		}
		if _, err := b.Identify(t.Context(), modelgate.NewSecret().Reveal(), origin(peer, forwarded)); err != modelgate.ErrUnauthorized {
			t.Error(err)
		}
	})
}

// An address that guesses, without a pause, gets few look-ups. Others, and it
// itself after a while, get theirs at once.
func TestLookupLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLookupLimiter(time.Now)
		var all sync.WaitGroup
		var looked, refused atomic.Int64
		guess := func() {
			switch err := l.Enter(t.Context(), one(0)); {
			case err == nil:
				looked.Add(1)
				l.Failed(one(0))
			case modelgate.KindOf(err) == modelgate.RateLimited:
				refused.Add(1)
			default:
				t.Error(err)
			}
		}
		for range 50 {
			guess()
		}
		for range 1000 {
			all.Go(guess)
		}
		all.Wait()
		if looked.Load() < 50 || looked.Load() > 50+17 || looked.Load()+refused.Load() != 1050 {
			t.Errorf("%d look-ups and %d refusals for 1050 guesses", looked.Load(), refused.Load())
		}
		for what, from := range map[string]auth.Origin{"another address": origin("203.0.113.10:1"), "the same, later": one(0)} {
			if what == "the same, later" {
				time.Sleep(10 * time.Second)
			}
			before := time.Now()
			if err := l.Enter(t.Context(), from); err != nil || time.Since(before) > 0 {
				t.Errorf("%s: %v after %v", what, err, time.Since(before))
			}
		}
	})
}
