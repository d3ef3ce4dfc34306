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

// State tells how much of a key's own limits is used.
func TestState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
		states(t, l)
	})
}

func TestSharedState(t *testing.T) {
	t.Parallel()
	s := instance(t, testkit.Redis(t), time.Now)
	states(t, s)
	if s.Fallbacks() > 0 {
		t.Error("Redis did not answer in time: nothing was shared")
	}
	away := instance(t, "redis://127.0.0.1:1", time.Now)
	if got := away.State("k", limits(1, 5, 2)); len(got) != 2 || got[0].Remaining != 5*modelgate.USD || got[1].Remaining != 2*modelgate.USD {
		t.Errorf("without Redis: %+v", got)
	}
}

func states(t *testing.T, l ratelimit.Limiter) {
	t.Helper()
	key, li := newKey(), limits(1, 50, 3)
	if got := l.State(key, limits(0, 0, 0)); len(got) != 0 {
		t.Errorf("of a key without limits: %+v", got)
	}
	if got := l.State(key, li); len(got) != 2 || got[0].Used != 0 || got[0].Remaining != 50*modelgate.USD || got[1].Used != 0 || got[1].Remaining != 3*modelgate.USD {
		t.Errorf("of a key that was not used: %+v", got)
	}
	begin := time.Now()
	held := admitted(t, l, 2, key, li, ratelimit.Call)
	admitted(t, l, 38, key, li, ratelimit.Request)
	got := l.State(key, li)
	back := modelgate.WholeUnits(int64(time.Since(begin)/time.Second) + 1) // at most so much has come back since
	if len(got) != 2 || got[0].Used > 40*modelgate.USD || got[0].Used < 40*modelgate.USD-back || got[0].Used+got[0].Remaining != 50*modelgate.USD || got[0].Limit != modelgate.USD {
		t.Errorf("after 40 requests: %+v", got)
	}
	if got[1].Used != 2*modelgate.USD || got[1].Remaining != modelgate.USD || got[1].Limit != 3*modelgate.USD {
		t.Errorf("with 2 calls: %+v", got)
	}
	held[0].Release()
	if got := l.State(key, li); got[1].Used != modelgate.USD {
		t.Errorf("with 1 call: %+v", got)
	}
}
