package ratelimit

import (
	"errors"
	"time"

	"modelgate"
)

// Bucket is a rate of its own beside those of keys.
type Bucket struct {
	Name      string // no key's id
	PerMinute int64  // requests, which may also come at once; at least 1
}

func (b Bucket) figures() figures {
	return figures{rate: b.PerMinute, interval: time.Minute / time.Duration(b.PerMinute), burst: b.PerMinute}
}

// ofToken is the bucket of a browser token.
func ofToken(t *modelgate.Token) Bucket {
	return Bucket{Name: "token:" + string(t.ID), PerMinute: int64(t.RequestsPerMinute)}
}

// tokenState is the rate of a browser token with so many requests drawn.
func tokenState(t *modelgate.Token, drawn int64) modelgate.LimitState {
	most := int64(t.RequestsPerMinute)
	return modelgate.LimitState{
		Kind: modelgate.LimitRate, Scope: modelgate.LevelToken, ID: string(t.ID), Unit: modelgate.UnitRequests, Window: "minute",
		Limit: modelgate.WholeUnits(most), Used: modelgate.WholeUnits(drawn), Remaining: modelgate.WholeUnits(max(0, most-drawn)),
	}
}

// EnterCaller is Limiter.Enter for a caller. A request with a browser token counts
// against the token's own rate first, then against the shared buckets, and then
// as one of its key. Whom these refuse with a token, sees none of their figures.
// Whom a bucket refuses is told to wait for the time between two requests, in a
// *modelgate.RetryError.
func EnterCaller(l Limiter, c *modelgate.Caller, kind Kind, shared ...Bucket) (Pass, error) {
	if c.Token == nil {
		return l.Enter(c.KeyID, c.Limits, kind, c.Ancestors...)
	}
	own := ofToken(c.Token)
	if err := l.Draw(own); err != nil {
		state := tokenState(c.Token, own.PerMinute)
		state.Needed = modelgate.WholeUnits(1)
		return Pass{}, &modelgate.RetryError{Err: &modelgate.LimitError{Err: modelgate.ErrRateLimited, State: state}, After: own.figures().interval}
	}
	drawn := []Bucket{own}
	var pass Pass
	var err error
	for _, b := range shared {
		if l.Draw(b) != nil {
			err = &modelgate.RetryError{Err: modelgate.ErrRateLimited, After: b.figures().interval}
			break
		}
		drawn = append(drawn, b)
	}
	if err == nil {
		pass, err = l.Enter(c.KeyID, c.Limits, kind, c.Ancestors...)
		if errors.Is(err, modelgate.ErrRateLimited) {
			err = modelgate.ErrRateLimited
		}
	}
	if err != nil {
		for _, b := range drawn {
			l.Refund(b)
		}
	}
	return pass, err
}

// CallerStates are the limits of a caller's own, as Limiter.State has them: of a
// browser token its rate alone.
func CallerStates(l Limiter, c *modelgate.Caller) []modelgate.LimitState {
	if c.Token == nil {
		return l.State(c.KeyID, c.Limits)
	}
	return []modelgate.LimitState{tokenState(c.Token, l.Drawn(ofToken(c.Token)))}
}

// Draw is that of Limiter.
func (l *Local) Draw(b Bucket) error { return enterBucket(l, b) }

// Refund is that of Limiter.
func (l *Local) Refund(b Bucket) { l.refund(modelgate.KeyID(b.Name), b.figures()) }

// Draw is that of Limiter.
func (s *Shared) Draw(b Bucket) error { return enterBucket(s, b) }

// Refund is that of Limiter.
func (s *Shared) Refund(b Bucket) { s.refund(modelgate.KeyID(b.Name), b.figures()) }

// Drawn is that of Limiter.
func (l *Local) Drawn(b Bucket) int64 { return drawn(l.state(modelgate.KeyID(b.Name), b.figures())) }

// Drawn is that of Limiter.
func (s *Shared) Drawn(b Bucket) int64 { return drawn(s.stateOf(modelgate.KeyID(b.Name), b.figures())) }

// drawn are the requests of the only state of a bucket.
func drawn(states []modelgate.LimitState) int64 {
	return int64(states[0].Used / modelgate.WholeUnits(1))
}

func enterBucket(g gates, b Bucket) error {
	if _, err := g.enterOne(modelgate.KeyID(b.Name), b.figures()); err != nil {
		return modelgate.ErrRateLimited
	}
	return nil
}
