package ratelimit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
	"modelgate/internal/ratelimit"
	"modelgate/test/testkit"
)

// A refusal says whether the rate or the number of calls at once refused, and
// nothing of a key above.
func TestRefusalFigures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refusals(t, ratelimit.NewLocal(modelgate.Limits{}, time.Now))
	})
}

func TestSharedRefusalFigures(t *testing.T) {
	t.Parallel()
	s := instance(t, testkit.Redis(t), time.Now)
	refusals(t, s)
	if s.Fallbacks() > 0 {
		t.Error("Redis did not answer in time: nothing was shared")
	}
}

func refusals(t *testing.T, l ratelimit.Limiter) {
	t.Helper()
	// The bucket refills in a second; so many requests do not take that long.
	key, above := newKey(), newKey()
	rate := refusedAt(t, l, key, limits(1, 3, 0))
	if rate.Unit != modelgate.UnitRequests || rate.Window != "second" || rate.Limit != modelgate.USD || rate.Used != 3*modelgate.USD {
		t.Errorf("the rate: %+v", rate)
	}
	if rate.Kind != modelgate.LimitRate || rate.Scope != modelgate.LevelKey || rate.ID != string(key) || rate.Remaining != 0 || rate.Needed != modelgate.USD || rate.ResetsAt != nil {
		t.Errorf("the rate: %+v", rate)
	}
	calls := refusedAt(t, l, newKey(), limits(0, 0, 2))
	if calls.Unit != modelgate.UnitConcurrency || calls.Window != "" || calls.Limit != 2*modelgate.USD || calls.Used != 2*modelgate.USD {
		t.Errorf("calls at once: %+v", calls)
	}
	under := below(l, modelgate.Ancestor{KeyID: above, Limits: limits(0, 0, 1)})
	if _, err := under.Enter(newKey(), limits(0, 0, 5), ratelimit.Call); err != nil {
		t.Fatal(err)
	}
	if _, err := under.Enter(newKey(), limits(0, 0, 5), ratelimit.Call); err != modelgate.ErrRateLimited {
		t.Errorf("a key above refuses: %v", err)
	}
}

// refusedAt enters until a call is refused.
func refusedAt(t *testing.T, l ratelimit.Limiter, key modelgate.KeyID, li modelgate.Limits) modelgate.LimitState {
	t.Helper()
	for range 1000 {
		_, err := l.Enter(key, li, ratelimit.Call)
		if err == nil {
			continue
		}
		limited, ok := errors.AsType[*modelgate.LimitError](err)
		if !ok || !errors.Is(err, modelgate.ErrRateLimited) {
			t.Fatalf("Enter: %v", err)
		}
		return limited.State
	}
	t.Fatal("nothing was refused")
	return modelgate.LimitState{}
}
