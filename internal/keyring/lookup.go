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

// errSuspect says that the database was not asked because of where the secret
// came from.
var errSuspect = errors.New("too many secrets from one address are no keys")

// flight is one query under way, shared by every call that waits for it. Its
// result is set before done is closed.
type flight struct {
	done       chan struct{}
	generation uint64
	seen       *modelgate.Caller // who was found before; nil for nobody
	found      *entry
	err        error
}

// lookup asks the database once for all calls that need the same key now. It
// is the first of them whose origin counts. What another query has found since
// the caller looked, and saw something else or nothing, is the answer, too.
func (k *Keyring) lookup(ctx context.Context, s *shard, d modelgate.Digest, seen *entry, from Origin) (*entry, error) {
	s.mu.Lock()
	f, joined := s.flights[d]
	e := s.known[d]
	if !joined && e != nil && e != seen && e.epoch == k.epoch.Load() {
		s.mu.Unlock()
		return e, nil
	}
	if !joined {
		f = &flight{done: make(chan struct{}), generation: s.generation}
		if e != nil {
			f.seen = e.caller
		}
		s.flights[d] = f
	}
	s.mu.Unlock()
	if !joined {
		k.fly(ctx, s, d, f, from)
		return f.found, f.err
	}
	select {
	case <-f.done:
		return f.found, f.err
	case <-ctx.Done():
		return nil, errUnverified // to a client that has gone
	}
}

// fly runs the query when its lane has a place. It is not bound to the call
// that happens to lead: others wait for the same answer.
func (k *Keyring) fly(ctx context.Context, s *shard, d modelgate.Digest, f *flight, from Origin) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	defer cancel()
	f.err = errNoAnswer // stands if the source panics
	defer close(f.done)
	defer s.keep(d, f)
	var release func()
	var err error
	if f.seen != nil {
		release, err = take(ctx, k.again)
	} else {
		release, err = k.strangeLane(ctx, from)
	}
	if err != nil {
		f.err = err
		return
	}
	defer release()
	f.found, f.err = k.query(ctx, d, f.seen)
	if f.seen == nil && f.err == nil && f.found.caller == nil {
		k.strange.failed(from.network(), k.now().Sub(k.start))
	}
}

// strangeLane is the way for keys seen for the first time. Where they come
// from is judged with a place in hand, when everything before them has been
// counted; a suspect gives its place up until it is its turn.
func (k *Keyring) strangeLane(ctx context.Context, from Origin) (release func(), err error) {
	release, err = take(ctx, k.first)
	if err != nil {
		return nil, err
	}
	now := k.now().Sub(k.start)
	if k.strange.trusts(from.network(), now) {
		return release, nil
	}
	release()
	wait, ok := k.strange.pace(now)
	if !ok {
		return nil, errSuspect
	}
	if !sleep(ctx, wait) {
		return nil, errNoAnswer
	}
	return take(ctx, k.first)
}

// take waits for a place in a lane.
func take(ctx context.Context, lane chan struct{}) (release func(), err error) {
	select {
	case lane <- struct{}{}:
		return func() { <-lane }, nil
	case <-ctx.Done():
		return nil, errNoAnswer
	}
}

func (k *Keyring) query(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (*entry, error) {
	e := &entry{asked: k.now(), epoch: k.epoch.Load(), use: newUse()}
	caller, err := k.source.Caller(ctx, d, seen)
	switch {
	case err == nil:
		caller.Remember()
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
