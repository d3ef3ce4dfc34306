package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
	"modelgate/internal/auth"
)

var (
	errAway   = errors.New("connection refused")
	errBroken = errors.New("syntax error")
)

// database stands for the store: its answers can be changed, delayed and
// made to fail while the authenticator runs.
type database struct {
	mu      sync.Mutex
	keys    map[modelgate.Digest]modelgate.Caller
	version int64
	err     error
	hang    bool          // no answer until the caller gives up
	gate    chan struct{} // where set, an answer that is ready waits for it
	reached chan struct{} // told when an answer waits
	touched map[modelgate.KeyID]time.Time
	touches int
	queries atomic.Int64
}

func (d *database) Caller(ctx context.Context, digest modelgate.Digest, _ *modelgate.Caller) (modelgate.Caller, error) {
	d.queries.Add(1)
	d.mu.Lock()
	caller, ok := d.keys[digest]
	err, hang, gate := d.err, d.hang, d.gate
	d.mu.Unlock()
	if gate != nil {
		d.reached <- struct{}{}
		<-gate
	}
	switch {
	case hang:
		<-ctx.Done()
		return modelgate.Caller{}, ctx.Err()
	case err != nil:
		return modelgate.Caller{}, err
	case !ok:
		return modelgate.Caller{}, fmt.Errorf("find caller: %w", modelgate.ErrUnauthorized)
	}
	return caller, nil
}

func (d *database) ControlVersion(context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version, d.err
}

func (d *database) touch(_ context.Context, at map[modelgate.KeyID]time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	d.touches++
	maps.Copy(d.touched, at)
	return nil
}

// change applies f under the lock.
func (d *database) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

type bench struct {
	*auth.Authenticator
	db     *database
	secret string
	digest modelgate.Digest
}

// setup makes a authenticator over a database with one key. It must be called
// within a synctest bubble where the test moves the clock.
func setup(tb testing.TB) *bench {
	secret := modelgate.NewSecret()
	b := &bench{
		db:     &database{keys: map[modelgate.Digest]modelgate.Caller{}, touched: map[modelgate.KeyID]time.Time{}},
		secret: secret.Reveal(),
		digest: secret.Digest(),
	}
	b.db.keys[b.digest] = modelgate.Caller{KeyID: "k1", ClientID: "c1", SubAccountID: "s1"}
	b.Authenticator = auth.New(auth.Options{
		Source:      b.db,
		Unreachable: func(err error) bool { return errors.Is(err, errAway) },
		Touch:       b.db.touch,
		Now:         time.Now,
		Log:         slog.New(slog.DiscardHandler),
		Client: func(peer netip.Addr, forwarded []string) netip.Addr {
			if a, err := netip.ParseAddr(strings.Join(forwarded, "")); err == nil && peer.IsLoopback() {
				return a
			}
			return peer
		},
	})
	return b
}

// run starts the authenticator's loop and stops it at the end of the test.
func (b *bench) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
}

// want identifies the key and checks the outcome; "" is a caller.
func (b *bench) want(t *testing.T, what string, kind modelgate.Kind) {
	t.Helper()
	c, err := b.Identify(t.Context(), b.secret, auth.Origin{})
	if modelgate.KindOf(err) != kind || (err == nil) != (c != nil) {
		t.Errorf("%s: %v, %v, want %q", what, c, err, kind)
	}
}

func (b *bench) wantQueries(t *testing.T, what string, want int64) {
	t.Helper()
	if got := b.db.queries.Swap(0); got != want {
		t.Errorf("%s: %d queries, want %d", what, got, want)
	}
}

func (b *bench) revoke() { b.db.change(func() { delete(b.db.keys, b.digest) }) }

func TestCallersAreCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "first", "")
		for range 14 {
			time.Sleep(time.Second)
			b.want(t, "cached", "")
		}
		b.wantQueries(t, "in 14 s", 1)
	})
}

func TestRefreshAheadKeepsCallsFromWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.run(t)
		b.want(t, "first", "")
		b.wantQueries(t, "first", 1)
		time.Sleep(18 * time.Second)
		b.want(t, "18 s old", "")
		b.want(t, "18 s old again", "")
		synctest.Wait()
		b.wantQueries(t, "refresh ahead", 1)
		time.Sleep(14 * time.Second)
		b.want(t, "14 s after the refresh", "")
		b.wantQueries(t, "14 s after the refresh", 0)
	})
}

func TestIdleEntryIsNotServedPastSoftAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "first", "")
		b.revoke()
		time.Sleep(19 * time.Second)
		b.want(t, "19 s after a revocation elsewhere", "")
		time.Sleep(time.Second)
		b.want(t, "20 s after a revocation elsewhere", modelgate.Unauthorized)
	})
}

func TestAgeCountsFromBeforeTheQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.db.gate, b.db.reached = make(chan struct{}), make(chan struct{}, 1)
		done := make(chan struct{})
		go func() { b.want(t, "slow", ""); close(done) }()
		<-b.db.reached
		time.Sleep(1900 * time.Millisecond)
		close(b.db.gate)
		<-done
		b.db.change(func() { b.db.gate = nil })
		b.revoke()
		time.Sleep(18200 * time.Millisecond)
		b.want(t, "20.1 s after the query began", modelgate.Unauthorized)
	})
}

func TestControlVersionIsSeenWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.run(t)
		b.want(t, "first", "")
		time.Sleep(5500 * time.Millisecond)
		b.wantQueries(t, "an unchanged version", 1)
		b.db.change(func() { delete(b.db.keys, b.digest); b.db.version++ })
		time.Sleep(time.Second)
		synctest.Wait()
		b.want(t, "a second after a revocation elsewhere", modelgate.Unauthorized)

		// A sub-account that is active again: the negative entry is stale too.
		b.db.change(func() { b.db.keys[b.digest] = modelgate.Caller{KeyID: "k1"}; b.db.version++ })
		time.Sleep(time.Second)
		synctest.Wait()
		b.want(t, "a second after a reactivation elsewhere", "")
	})
}

func TestStaleCallersCountByAgeWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.run(t)
		b.want(t, "first", "")
		b.db.change(func() { b.db.version++ })
		time.Sleep(1100 * time.Millisecond)
		b.db.change(func() { b.db.err = errAway })
		b.want(t, "stale, database away", "")
		time.Sleep(83 * time.Second)
		b.want(t, "84.1 s old", "")
		time.Sleep(time.Second)
		b.want(t, "85.1 s old", modelgate.Unavailable)
	})
}

func TestFailedControlReadChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.run(t)
		b.want(t, "first", "")
		b.db.change(func() { b.db.err = errAway })
		time.Sleep(5 * time.Second)
		b.db.change(func() { b.db.err = nil })
		time.Sleep(5 * time.Second)
		b.want(t, "after failed reads", "")
		b.wantQueries(t, "in all", 1)
	})
}

func TestOutage(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*database){
		"refused": func(d *database) { d.err = errAway },
		"hanging": func(d *database) { d.hang = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				start := time.Now()
				b.want(t, "first", "")
				time.Sleep(19 * time.Second)
				b.db.change(func() { fail(b.db) })
				for time.Since(start) < 83*time.Second {
					b.want(t, fmt.Sprint("served at ", time.Since(start)), "")
					time.Sleep(500 * time.Millisecond)
				}
				time.Sleep(85*time.Second - time.Since(start))
				b.want(t, "past the hard age", modelgate.Unavailable)
				b.db.change(func() { b.db.err, b.db.hang = nil, false })
				b.want(t, "database back", "")
			})
		})
	}
}

func TestOutageMakesFewCallsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "first", "")
		b.db.change(func() { b.db.hang = true })
		time.Sleep(25 * time.Second)
		begin, slow := time.Now(), 0
		for time.Since(begin) < 20*time.Second {
			before := time.Now()
			b.want(t, "during the outage", "")
			if time.Since(before) > 0 {
				slow++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if slow > 7 {
			t.Errorf("%d of the calls of 20 s waited for the database, want at most one in 3 s", slow)
		}
	})
}

func TestRevokedDuringAnOutageIsNot401ButNeverPast90s(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "first", "")
		b.db.change(func() { delete(b.db.keys, b.digest); b.db.err = errAway })
		time.Sleep(60 * time.Second)
		b.want(t, "60 s", "")
		time.Sleep(30 * time.Second)
		b.want(t, "90 s", modelgate.Unavailable)
		b.db.change(func() { b.db.err = nil })
		b.want(t, "database back", modelgate.Unauthorized)
	})
}

func TestUnknownKeyDuringAnOutageIsUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.db.err = errAway
		b.want(t, "never seen", modelgate.Unavailable)
		b.db.change(func() { b.db.err = nil })
		b.want(t, "database back", "")
	})
}

func TestBrokenDatabaseIsAFaultNotAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "first", "")
		b.db.change(func() { b.db.err = errBroken })
		time.Sleep(21 * time.Second)
		b.want(t, "a query that fails", modelgate.Internal)
	})
}

func TestExpiryIsJudgedOnEveryCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.db.keys[b.digest] = modelgate.Caller{KeyID: "k1", ExpiresAt: time.Now().Round(0).Add(3 * time.Second)}
		b.want(t, "before", "")
		time.Sleep(3*time.Second - time.Nanosecond)
		b.want(t, "just before", "")
		time.Sleep(time.Nanosecond)
		b.want(t, "at the instant", modelgate.Unauthorized)
		b.wantQueries(t, "in all", 1)
	})
}

func TestUnknownKeysAreCachedFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.revoke()
		b.want(t, "first", modelgate.Unauthorized)
		time.Sleep(4900 * time.Millisecond)
		b.want(t, "4.9 s", modelgate.Unauthorized)
		b.wantQueries(t, "in 4.9 s", 1)
		time.Sleep(100 * time.Millisecond)
		b.want(t, "5 s", modelgate.Unauthorized)
		b.wantQueries(t, "after 5 s", 1)
	})
}

func TestMalformedKeysCostNoQuery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range len(b.secret) {
		changed := []byte(b.secret)
		changed[i] ^= 1
		if _, err := b.Identify(t.Context(), string(changed), auth.Origin{}); !errors.Is(err, modelgate.ErrUnauthorized) {
			t.Errorf("%s: %v, want unauthorized", changed, err)
		}
	}
	b.wantQueries(t, "keys with a typo", 0)
}

func TestOneQueryForConcurrentFirstUses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.db.gate, b.db.reached = make(chan struct{}), make(chan struct{}, 1)
		var all sync.WaitGroup
		for range 5000 {
			all.Go(func() { b.want(t, "together", "") })
		}
		synctest.Wait()
		close(b.db.gate)
		all.Wait()
		b.wantQueries(t, "5000 first uses", 1)
	})
}

func TestQueriesAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "a known key", "")
		time.Sleep(21 * time.Second)
		b.db.change(func() { b.db.gate, b.db.reached = make(chan struct{}), make(chan struct{}, 1000) })
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() { _, _ = b.Identify(t.Context(), modelgate.NewSecret().Reveal(), auth.Origin{}) })
		}
		synctest.Wait()
		if n := len(b.db.reached); n != 8 {
			t.Errorf("%d queries for unknown keys at once, want 8", n)
		}
		all.Go(func() { b.want(t, "the known key in a flood of unknown ones", "") })
		synctest.Wait()
		if n := len(b.db.reached); n != 9 {
			t.Errorf("%d queries at once, want 9: a known key does not wait behind unknown ones", n)
		}
		close(b.db.gate)
		all.Wait()
	})
}

func TestClientThatLeavesDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.db.gate, b.db.reached = make(chan struct{}), make(chan struct{}, 1)
		leader, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _, _ = b.Identify(leader, b.secret, auth.Origin{}) })
		<-b.db.reached
		all.Go(func() { b.want(t, "waiting behind it", "") })
		follower, leaveToo := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := b.Identify(follower, b.secret, auth.Origin{}); modelgate.KindOf(err) != modelgate.Unavailable {
				t.Errorf("a follower that left: %v, want unavailable", err)
			}
		})
		synctest.Wait()
		leave()
		leaveToo()
		synctest.Wait()
		close(b.db.gate)
		all.Wait()
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*bench){
		"key":         func(b *bench) { b.Forget(b.digest) },
		"sub-account": func(b *bench) { b.ForgetSubAccount("s1") },
		"client":      func(b *bench) { b.ForgetClient("c1"); b.Forget(b.digest) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				b.want(t, "first", "")
				b.revoke()
				forget(b)
				b.want(t, "after it was forgotten", modelgate.Unauthorized)

				b.db.change(func() { b.db.keys[b.digest] = modelgate.Caller{KeyID: "k1", SubAccountID: "s1"} })
				forget(b)
				b.want(t, "active again", "")

				b.db.change(func() { b.db.err = errAway })
				forget(b)
				b.want(t, "forgotten during an outage", modelgate.Unavailable)
			})
		})
	}
}

func TestForgetSubAccountLeavesOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "first", "")
		b.ForgetSubAccount("s2")
		b.want(t, "after another sub-account was forgotten", "")
		b.wantQueries(t, "in all", 1)
	})
}

func TestQueryFromBeforeForgetBringsNothingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.db.gate, b.db.reached = make(chan struct{}), make(chan struct{}, 2)
		early := make(chan struct{})
		go func() { _, _ = b.Identify(t.Context(), b.secret, auth.Origin{}); close(early) }()
		<-b.db.reached // it has read the key as active
		gate := b.db.gate
		b.db.change(func() { b.db.gate = nil })
		b.revoke()
		b.Forget(b.digest)
		b.want(t, "begun after Forget", modelgate.Unauthorized) // it did not join the early query
		close(gate)
		<-early
		b.want(t, "after the early query came back", modelgate.Unauthorized)
	})
}

func TestForgottenDuringAHangingRefreshIsNotServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.want(t, "first", "")
		time.Sleep(21 * time.Second)
		b.db.change(func() { b.db.hang = true })
		done := make(chan struct{})
		go func() { b.want(t, "its refresh hangs", modelgate.Unavailable); close(done) }()
		synctest.Wait()
		b.Forget(b.digest)
		<-done
	})
}

func TestCapacityIsBounded(t *testing.T) {
	t.Parallel()
	db := &database{keys: map[modelgate.Digest]modelgate.Caller{}}
	k := auth.New(auth.Options{Source: db, Now: time.Now, Capacity: 640, Log: slog.New(slog.DiscardHandler),
		Unreachable: func(error) bool { return false }})
	secrets := make([]string, 2000)
	for i := range secrets {
		s := modelgate.NewSecret()
		secrets[i] = s.Reveal()
		db.keys[s.Digest()] = modelgate.Caller{KeyID: modelgate.KeyID(secrets[i])}
	}
	for round := range 2 {
		for _, secret := range secrets {
			if c, err := k.Identify(t.Context(), secret, auth.Origin{}); err != nil || string(c.KeyID) != secret {
				t.Fatalf("round %d: %v, %v, want the key's own caller", round, c, err)
			}
		}
	}
	if n := db.queries.Load(); n < 4000-2*640 {
		t.Errorf("%d queries for 4000 uses of 2000 keys, so more than 640 were kept", n)
	}
}

func TestLastUses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.run(t)
		first := time.Now()
		for range 590 {
			b.want(t, "call", "")
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if got := b.db.touched["k1"]; !got.Equal(first) || b.db.touches != 1 {
			t.Errorf("after 59 s: last use %v in %d writes, want %v in 1", got, b.db.touches, first)
		}
		time.Sleep(time.Second)
		b.db.change(func() { b.db.err = errAway })
		second := time.Now()
		b.want(t, "call a minute later", "")
		time.Sleep(3 * time.Second)
		b.db.change(func() { b.db.err = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if got := b.db.touched["k1"]; !got.Equal(second) || b.db.touches != 2 {
			t.Errorf("after an outage: last use %v in %d writes, want %v in 2", got, b.db.touches, second)
		}
	})
}

func TestLastUsesAreStoredAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		synctest.Wait()
		b.want(t, "call", "")
		cancel()
		<-done
		if b.db.touches != 1 {
			t.Errorf("%d writes after Run ended, want 1", b.db.touches)
		}
	})
}

func TestRefusedKeysLeaveNoLastUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.run(t)
		b.db.change(func() { b.db.keys[b.digest] = modelgate.Caller{KeyID: "k1", ExpiresAt: time.Now().Add(-time.Second)} })
		b.want(t, "expired", modelgate.Unauthorized)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if b.db.touches != 0 {
			t.Errorf("%d writes, want 0", b.db.touches)
		}
	})
}

func TestLastRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		if at := b.LastRead(); !at.IsZero() {
			t.Errorf("LastRead = %v before any, want zero", at)
		}
		b.db.err = errAway
		b.run(t)
		time.Sleep(2 * time.Second)
		if at := b.LastRead(); !at.IsZero() {
			t.Errorf("LastRead = %v after failures, want zero", at)
		}
		b.db.change(func() { b.db.err = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if age := time.Since(b.LastRead()); age > time.Second {
			t.Errorf("LastRead is %v old, want at most 1 s", age)
		}
	})
}
