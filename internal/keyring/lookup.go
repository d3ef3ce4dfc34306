package keyring

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"modelgate"
)

// errNoAnswer says that the database did not answer in time.
var errNoAnswer = errors.New("the database did not answer")

// flight is one query under way, shared by every call that waits for it. Its
// result is set before done is closed.
type flight struct {
	done       chan struct{}
	generation uint64
	found      *entry
	err        error
}

// lookup asks the database once for all calls that need the same key now.
func (k *Keyring) lookup(ctx context.Context, s *shard, d modelgate.Digest) (*entry, error) {
	s.mu.Lock()
	f, joined := s.flights[d]
	known := s.known[d] != nil
	if !joined {
		f = &flight{done: make(chan struct{}), generation: s.generation}
		s.flights[d] = f
	}
	s.mu.Unlock()
	if !joined {
		lane := k.first
		if known {
			lane = k.again
		}
		k.fly(ctx, s, d, f, lane)
		return f.found, f.err
	}
	select {
	case <-f.done:
		return f.found, f.err
	case <-ctx.Done():
		return nil, errUnverified // to a client that has gone
	}
}

// fly runs the query. It is not bound to the call that happens to lead:
// others wait for the same answer.
func (k *Keyring) fly(ctx context.Context, s *shard, d modelgate.Digest, f *flight, lane chan struct{}) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	defer cancel()
	f.err = errNoAnswer // stands if the source panics
	defer close(f.done)
	defer s.keep(d, f)
	select {
	case lane <- struct{}{}:
		defer func() { <-lane }()
	case <-ctx.Done():
		return
	}
	f.found, f.err = k.query(ctx, d)
}

func (k *Keyring) query(ctx context.Context, d modelgate.Digest) (*entry, error) {
	e := &entry{asked: k.now(), epoch: k.epoch.Load(), use: newUse()}
	caller, err := k.source.Caller(ctx, d)
	switch {
	case err == nil:
		e.caller = &caller
	case modelgate.KindOf(err) == modelgate.Unauthorized:
	case k.unreachable(err) || errors.Is(err, context.DeadlineExceeded):
		k.outage.begin(k.now().Sub(k.start))
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	default:
		return nil, err
	}
	k.outage.end()
	k.noteRead(e.asked)
	return e, nil
}

// outage remembers that the database does not answer, so that calls of known
// keys go on at once and only one in retryAfter waits to find out.
type outage struct{ until atomic.Int64 } // ns since the keyring's start; 0: none

func (o *outage) begin(now time.Duration) { o.until.Store(int64(now + retryAfter)) }
func (o *outage) end()                    { o.until.Store(0) }

// lasts reports whether a call should rely on what is known. The one call
// that gets false when the time is up is the one that tries.
func (o *outage) lasts(now time.Duration) bool {
	until := o.until.Load()
	if until == 0 {
		return false
	}
	return int64(now) < until || !o.until.CompareAndSwap(until, int64(now+queryTimeout+retryAfter))
}
