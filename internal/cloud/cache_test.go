package cloud

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
)

// tokens is a source with a ledger.
type tokens struct {
	life    time.Duration
	takes   time.Duration // how long a fetch takes
	fail    atomic.Bool
	third   bool // every third fetch fails
	fetches atomic.Int64
	active  atomic.Int64
	most    atomic.Int64 // fetches at the same time
}

func (s *tokens) fetch(ctx context.Context) (*credential, error) {
	number := s.fetches.Add(1)
	if n := s.active.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.active.Add(-1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fail.Load() || s.third && number%3 == 0 {
		return nil, errors.New("out of order")
	}
	c := &credential{bearer: "token"}
	if s.life > 0 {
		c.expires = time.Now().Add(s.life)
	}
	return c, nil
}

// run has a cache of the source in a bubble with a clock of its own.
func run(t *testing.T, s *tokens, test func(t *testing.T, c *cache, logged *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		c := newCache(s.fetch, slog.New(slog.NewTextHandler(&logged, nil)))
		defer synctest.Wait()
		defer c.close()
		test(t, c, &logged)
	})
}

func TestCacheIsFreshWithoutCalls(t *testing.T) {
	t.Parallel()
	s := &tokens{life: time.Hour, takes: time.Second}
	run(t, s, func(t *testing.T, c *cache, logged *bytes.Buffer) {
		c.start()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := s.fetches.Load(); n < 26 || n > 30 {
			t.Errorf("%d fetches in a day of tokens that live for an hour", n)
		}
		if have := c.current.Load(); !have.usable(time.Now()) {
			t.Error("the token at hand has expired")
		}
		if logged.Len() > 0 {
			t.Errorf("log: %s", logged)
		}
	})
}

// Calls that come together share one fetch, and go on as soon as it ends.
func TestCacheSharesFetches(t *testing.T) {
	t.Parallel()
	s := &tokens{life: time.Hour, takes: time.Second}
	run(t, s, func(t *testing.T, c *cache, _ *bytes.Buffer) {
		var calls sync.WaitGroup
		began := time.Now()
		for range 10_000 {
			calls.Go(func() {
				if _, err := c.get(t.Context()); err != nil || time.Since(began) != time.Second {
					t.Errorf("get: %v after %s", err, time.Since(began))
				}
			})
		}
		calls.Wait()
		if n := s.fetches.Load(); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

// A dead source under 10,000 calls: each gets its answer after five seconds, the
// source is asked once a second by nobody but one, and the first call after it is
// back goes through within two seconds.
func TestCacheOfDeadSource(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, time.Hour} { // refused at once, and never answered
		s := &tokens{life: time.Hour, takes: takes}
		s.fail.Store(true)
		run(t, s, func(t *testing.T, c *cache, logged *bytes.Buffer) {
			var calls sync.WaitGroup
			began := time.Now()
			for range 10_000 {
				calls.Go(func() {
					if _, err := c.get(t.Context()); !errors.Is(err, modelgate.ErrCredential) || time.Since(began) != maxWait {
						t.Errorf("get: %v after %s", err, time.Since(began))
					}
				})
			}
			calls.Wait()
			if n, most := s.fetches.Load(), s.most.Load(); n > 6 || most > 1 {
				t.Errorf("%d fetches, %d at once", n, most)
			}
			synctest.Wait()
			if n := strings.Count(logged.String(), "\n"); n > 1 {
				t.Errorf("%d lines for one change of state: %s", n, logged)
			}
			if got := c.unavailable.Load(); got != 10_000 {
				t.Errorf("%d calls counted as without a credential", got)
			}
			time.Sleep(10 * time.Minute)
			s.fail.Store(false)
			s.takes = 0
			time.Sleep(maxWait) // the fetch under way, which hangs, ends
			began = time.Now()
			if _, err := c.get(t.Context()); err != nil || time.Since(began) > 2*time.Second {
				t.Errorf("get, the source being back: %v after %s", err, time.Since(began))
			}
		})
	}
}

// Every third fetch fails, and tokens live for six seconds: no call is refused, and
// none goes out with a token that has expired.
func TestCacheWithShortLives(t *testing.T) {
	t.Parallel()
	s := &tokens{life: 6 * time.Second, takes: 100 * time.Millisecond, third: true}
	run(t, s, func(t *testing.T, c *cache, _ *bytes.Buffer) {
		for i := range 6000 {
			got, err := c.get(t.Context())
			if err != nil || !got.expires.After(time.Now()) {
				t.Fatalf("call %d: %v", i, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// While the source is down the token at hand serves, and calls do not wait.
func TestCacheUsesTokenAtHand(t *testing.T) {
	t.Parallel()
	s := &tokens{life: time.Hour}
	run(t, s, func(t *testing.T, c *cache, logged *bytes.Buffer) {
		if _, err := c.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.fail.Store(true)
		time.Sleep(59 * time.Minute)
		began := time.Now()
		if _, err := c.get(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("get: %v after %s", err, time.Since(began))
		}
		if n := s.fetches.Load(); n < 10 || n > 20 {
			t.Errorf("%d fetches: the pauses do not grow to a minute", n)
		}
		s.fail.Store(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := logged.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "fetched again") {
			t.Errorf("log: %s", got)
		}
	})
}

// A source that keeps tokens itself gives the same one until its end: no failure
// to report, and it is asked once a minute.
func TestCacheOfStaleSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		expires, fetches := time.Now().Add(time.Hour), 0
		c := newCache(func(context.Context) (*credential, error) {
			fetches++
			return &credential{bearer: "token", expires: expires}, nil
		}, slog.New(slog.NewTextHandler(&logged, nil)))
		defer synctest.Wait()
		defer c.close()
		c.start()
		time.Sleep(55 * time.Minute)
		synctest.Wait()
		if fetches < 4 || fetches > 8 || logged.Len() > 0 {
			t.Errorf("%d fetches; log: %s", fetches, &logged)
		}
	})
}

func TestCacheOfRefusedToken(t *testing.T) {
	t.Parallel()
	s := &tokens{} // without an end
	run(t, s, func(t *testing.T, c *cache, _ *bytes.Buffer) {
		c.start()
		synctest.Wait()
		for range 100 {
			c.refused()
			time.Sleep(time.Second)
		}
		if n := s.fetches.Load(); n != 5 || c.rejected.Load() != 100 {
			t.Errorf("%d fetches for %d refusals in 100 seconds", n, c.rejected.Load())
		}
	})
}
