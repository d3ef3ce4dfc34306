package auth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
)

// errNoAnswer says that the database did not answer in time.
var errNoAnswer = errors.New("the database did not answer")

// errSuspect says that the database was not asked because of where the secret
// came from.
var errSuspect = errors.New("too many secrets from one address are no keys")

// lookup asks the database once for all calls that need the same secret now. It
// is the first of them whose origin counts.
func (c *cache[T]) lookup(ctx context.Context, s *shard[T], d modelgate.Digest, seen *entry[T], from Origin) (*entry[T], error) {
	result := c.flights.DoChan(s.flight(d), func() (any, error) { return c.refresh(ctx, s, d, seen, from) })
	select {
	case r := <-result:
		e, _ := r.Val.(*entry[T])
		return e, r.Err
	case <-ctx.Done():
		return nil, errUnverified // to a client that has gone
	}
}

// refresh queries the database when its lane has a place, and keeps the answer.
// What another query has found since the caller looked, and saw something else
// or nothing, is the answer, too. The query is not bound to the call that
// happens to lead: others wait for the same answer.
func (c *cache[T]) refresh(ctx context.Context, s *shard[T], d modelgate.Digest, seen *entry[T], from Origin) (found *entry[T], err error) {
	known, generation := s.state(d)
	if known != nil && known != seen && known.epoch == c.epoch.Load() {
		return known, nil
	}
	defer func() {
		if fault := recover(); fault != nil { // singleflight would end the process
			err = fmt.Errorf("look up a secret: panic: %v", fault)
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	defer cancel()
	var value *T
	var release func()
	if known != nil {
		value = known.value
		release, err = take(ctx, c.again)
	} else {
		release, err = c.limitFailed(ctx, from)
	}
	if err != nil {
		return nil, err
	}
	defer release()
	if found, err = c.query(ctx, d, value); err != nil {
		return nil, err
	}
	if known == nil && found.value == nil {
		c.strange.failed(from.network(c.client), c.now().Sub(c.start))
	}
	s.keep(d, found, generation)
	return found, nil
}

// limitFailed is the way for secrets seen for the first time. Where they come
// from is judged with a place in hand, when everything before them has been
// counted; a suspect gives its place up until it is its turn.
func (c *cache[T]) limitFailed(ctx context.Context, from Origin) (release func(), err error) {
	release, err = take(ctx, c.first)
	if err != nil {
		return nil, err
	}
	now := c.now().Sub(c.start)
	if c.strange.trusts(from.network(c.client), now) {
		return release, nil
	}
	release()
	wait, ok := c.strange.pace(now)
	if !ok {
		return nil, errSuspect
	}
	if cancelctx.Sleep(ctx, wait) != nil {
		return nil, errNoAnswer
	}
	return take(ctx, c.first)
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

func (c *cache[T]) query(ctx context.Context, d modelgate.Digest, seen *T) (*entry[T], error) {
	e := &entry[T]{asked: c.now(), epoch: c.epoch.Load(), use: newUse()}
	value, err := c.source.find(ctx, d, seen)
	switch {
	case err == nil:
		e.value = value
	case modelgate.KindOf(err) == modelgate.Unauthorized:
	case c.unreachable(err) || errors.Is(err, context.DeadlineExceeded):
		c.outage.begin(c.now().Sub(c.start))
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	default:
		return nil, err
	}
	c.outage.end()
	c.noteRead(e.asked)
	return e, nil
}

// outage remembers that the database does not answer, so that calls of known
// keys go on at once and only one in retryAfter waits to find out.
type outage struct{ until atomic.Int64 } // ns since the authenticator's start; 0: none

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
