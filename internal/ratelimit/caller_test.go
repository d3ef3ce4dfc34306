package ratelimit_test

import (
	"errors"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/ratelimit"
)

// A token has its own requests a minute beside the limits of its key. What the
// key refuses counts against neither, and tells none of its figures.
func TestEnterCallerWithToken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	l := ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return now })
	rate := 3
	caller := func(token modelgate.TokenID) *modelgate.Caller {
		return &modelgate.Caller{KeyID: "k", Limits: modelgate.Limits{RequestsPerSecond: &rate}, Token: &modelgate.Token{ID: token, RequestsPerMinute: 2}}
	}
	enter := func(token modelgate.TokenID) error {
		pass, err := ratelimit.EnterCaller(l, caller(token), ratelimit.Call)
		if err == nil {
			pass.Release()
		}
		return err
	}
	var limit *modelgate.LimitError
	for range 2 {
		if err := enter("a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := enter("a"); !errors.As(err, &limit) || limit.State.Window != "minute" || limit.State.ID != "a" || limit.State.Limit != 2*modelgate.USD {
		t.Errorf("a third request of a token: %v, %+v", err, limit)
	}
	var retry *modelgate.RetryError
	if err := enter("a"); !errors.As(err, &retry) || retry.After != 30*time.Second {
		t.Errorf("a refused token is told to wait %+v", retry)
	}
	if s := ratelimit.CallerStates(l, caller("a")); len(s) != 1 || s[0].Used != 2*modelgate.USD || s[0].Remaining != 0 || s[0].Scope != modelgate.LevelToken {
		t.Errorf("its states are %+v", s)
	}
	if err := enter("b"); err != nil {
		t.Errorf("another token of the key: %v", err)
	}
	if err := enter("b"); err != modelgate.ErrRateLimited {
		t.Errorf("past the rate of the key: %#v", err)
	}
	now = now.Add(time.Second)
	if err := enter("b"); err != nil {
		t.Errorf("what the key refused counted against the token: %v", err)
	}
	if err := enter("a"); !errors.As(err, &limit) {
		t.Errorf("a second later a token has %v", err)
	}
	now = now.Add(30 * time.Second)
	if err := enter("a"); err != nil {
		t.Errorf("half a minute later: %v", err)
	}
}

// Tokens of one address share a bucket; what it refuses counts against no token.
func TestEnterCallerFromOneAddress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	l := ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return now })
	enter := func(token modelgate.TokenID, address string) error {
		c := &modelgate.Caller{KeyID: "k", Token: &modelgate.Token{ID: token, RequestsPerMinute: 2}}
		_, err := ratelimit.EnterCaller(l, c, ratelimit.Request, ratelimit.Bucket{Name: address, PerMinute: 3})
		return err
	}
	for _, token := range []modelgate.TokenID{"a", "a", "b"} {
		if err := enter(token, "here"); err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []modelgate.TokenID{"b", "b"} {
		var retry *modelgate.RetryError
		if err := enter(token, "here"); !errors.As(err, &retry) || retry.Err != modelgate.ErrRateLimited || retry.After != 20*time.Second {
			t.Errorf("a fourth request of an address: %v", err)
		}
	}
	if err := enter("b", "elsewhere"); err != nil {
		t.Errorf("the second request of a token, from elsewhere: %v", err)
	}
}
