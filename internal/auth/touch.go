package auth

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// touchEvery is how often the last use of one key or session is stored by one
// instance.
const touchEvery = 60 * time.Second

// maxTouches bounds what waits while the database is away.
const maxTouches = 100_000

// use is when a secret's last use was noted, since the authenticator's start.
type use struct{ noted atomic.Int64 }

func newUse() *use {
	u := &use{}
	u.noted.Store(math.MinInt64)
	return u
}

// due reports whether a use is the first in touchEvery and takes note of it.
func (u *use) due(now time.Duration) bool {
	noted := u.noted.Load()
	if noted != math.MinInt64 && int64(now)-noted < int64(touchEvery) {
		return false
	}
	return u.noted.CompareAndSwap(noted, int64(now))
}

func (u *use) before(v *use) bool { return u.noted.Load() < v.noted.Load() }

// touches collects last uses until they are stored together.
type touches[ID comparable] struct {
	store func(context.Context, map[ID]time.Time) error

	mu      sync.Mutex
	pending map[ID]time.Time
}

func newTouches[ID comparable](store func(context.Context, map[ID]time.Time) error) touches[ID] {
	return touches[ID]{store: store, pending: make(map[ID]time.Time)}
}

func (t *touches[ID]) add(id ID, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) < maxTouches {
		t.pending[id] = at
	}
}

// flush stores what was collected; what could not be stored waits for the
// next time, unless a later use came in meanwhile.
func (t *touches[ID]) flush(ctx context.Context) error {
	t.mu.Lock()
	batch := t.pending
	if len(batch) == 0 {
		t.mu.Unlock()
		return nil
	}
	t.pending = make(map[ID]time.Time)
	t.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := t.store(ctx, batch)
	if err == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, at := range batch {
		if _, later := t.pending[id]; !later && len(t.pending) < maxTouches {
			t.pending[id] = at
		}
	}
	return err
}
