package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
	"modelgate/internal/auth"
)

// ledger stands for the store's sessions.
type ledger struct {
	mu      sync.Mutex
	found   map[modelgate.Digest]modelgate.Session
	touched map[modelgate.SessionID]time.Time
	touches int
	version int64
	queries int
	err     error
}

func (l *ledger) Session(_ context.Context, d modelgate.Digest) (modelgate.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries++
	s, ok := l.found[d]
	if l.err == nil && !ok {
		return s, modelgate.ErrUnauthorized
	}
	return s, l.err
}

func (l *ledger) SessionVersion(context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version, l.err
}

// TouchSessions stores the last uses in the sessions, as the store does.
func (l *ledger) TouchSessions(_ context.Context, used map[modelgate.SessionID]time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.touches++
	maps.Copy(l.touched, used)
	for d, s := range l.found {
		if at, ok := used[s.ID]; ok {
			s.LastSeenAt = at
			l.found[d] = s
		}
	}
	return nil
}

func (l *ledger) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// seat is one session that has just begun, of the key k1, and who finds it.
type seat struct {
	*auth.Sessions
	ledger *ledger
	digest modelgate.Digest
	t      *testing.T
}

func newSeat(t *testing.T) *seat {
	t.Helper()
	now := time.Now()
	s := &seat{ledger: &ledger{found: map[modelgate.Digest]modelgate.Session{}, touched: map[modelgate.SessionID]time.Time{}}, digest: modelgate.DigestOf("a cookie"), t: t}
	s.ledger.found[s.digest] = modelgate.Session{ID: "s1", KeyID: "k1", Idle: modelgate.SessionIdle, CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(modelgate.SessionLife)}
	s.Sessions = auth.NewSessions(auth.SessionOptions{
		Source: s.ledger, Unreachable: func(err error) bool { return errors.Is(err, errAway) }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	return s
}

// run runs the loops for the rest of the test.
func (s *seat) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (s *seat) want(what string, kind modelgate.Kind) {
	s.t.Helper()
	if _, err := s.Find(s.t.Context(), s.digest, auth.Origin{}); modelgate.KindOf(err) != kind {
		s.t.Errorf("%s: %v, want kind %q", what, err, kind)
	}
}

// TestSessionsEnd by their time, by being left alone, and for good: at once
// where they were ended and a second later elsewhere.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*seat){
		"by time": func(s *seat) {
			for range 6 * 12 {
				s.want("in use", "")
				time.Sleep(10 * time.Minute)
			}
			s.want("after twelve hours", modelgate.Unauthorized)
		},
		"left alone": func(s *seat) {
			s.want("at first", "")
			time.Sleep(modelgate.SessionIdle - time.Second)
			s.want("just before", "")
			time.Sleep(modelgate.SessionIdle + time.Minute)
			s.want("two hours later", modelgate.Unauthorized)
		},
		"here": func(s *seat) {
			s.want("at first", "")
			s.ledger.set(func() { delete(s.ledger.found, s.digest) })
			s.Forget(s.digest)
			s.want("after it was ended", modelgate.Unauthorized)
		},
		"of a key": func(s *seat) {
			s.want("at first", "")
			s.ledger.set(func() { delete(s.ledger.found, s.digest) })
			s.ForgetKey("k2")
			s.want("another key's were ended", "")
			s.ForgetKey("k1")
			s.want("its key's were ended", modelgate.Unauthorized)
		},
		"elsewhere": func(s *seat) {
			s.want("at first", "")
			s.ledger.set(func() { delete(s.ledger.found, s.digest); s.ledger.version++ })
			s.want("still", "")
			time.Sleep(1100 * time.Millisecond)
			s.want("a second later", modelgate.Unauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSeat(t)
				s.run()
				synctest.Wait()
				test(s)
			})
		})
	}
}

// TestSessionsWithoutADatabase go on for as long as keys do.
func TestSessionsWithoutADatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeat(t)
		s.want("at first", "")
		s.want("again", "")
		if s.ledger.queries != 1 {
			t.Errorf("%d queries, want one", s.ledger.queries)
		}
		s.ledger.set(func() { s.ledger.err = errAway })
		time.Sleep(84 * time.Second)
		s.want("84 s later", "")
		time.Sleep(2 * time.Second)
		s.want("86 s later", modelgate.Unavailable)
		s.ledger.set(func() { s.ledger.err = nil })
		time.Sleep(3 * time.Second)
		s.want("when it is back", "")
	})
}

// TestSessionsAreTouchedOnceAMinute: each use is noted, and written once a
// minute at most.
func TestSessionsAreTouchedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeat(t)
		s.run()
		for range 300 {
			s.want("in use", "")
			time.Sleep(time.Second)
		}
		s.ledger.set(func() {
			if s.ledger.touches < 4 || s.ledger.touches > 6 || time.Since(s.ledger.touched["s1"]) > 62*time.Second {
				t.Errorf("%d writes in five minutes, the last use %s ago", s.ledger.touches, time.Since(s.ledger.touched["s1"]))
			}
		})
	})
}
