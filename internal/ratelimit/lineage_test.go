package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
	"modelgate/internal/ratelimit"
	"modelgate/test/testkit"
)

// line are limiters of one key and those above it.
type line struct {
	ratelimit.Limiter
	above []modelgate.Ancestor
}

// Enter is that of the key.
func (l line) Enter(key modelgate.KeyID, li modelgate.Limits, k ratelimit.Kind, _ ...modelgate.Ancestor) (ratelimit.Pass, error) {
	return l.Limiter.Enter(key, li, k, l.above...)
}

// below is a key under ancestors, the issuer first.
func below(l ratelimit.Limiter, above ...modelgate.Ancestor) line { return line{l, above} }

// What was set on an ancestor binds it and its descendants together, and a
// request that an ancestor refuses counts against nobody.
func TestAncestorsBind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
		binds(t, l, func() modelgate.KeyID { return newKey() }, func() { time.Sleep(time.Second) })
	})
}

func TestSharedAncestorsBind(t *testing.T) {
	t.Parallel()
	s := instance(t, testkit.Redis(t), time.Now)
	binds(t, s, newKey, nil)
	if s.Fallbacks() > 0 {
		t.Error("Redis did not answer in time: nothing was shared")
	}
}

// binds tries a line of three keys; pause lets a token come in, nil where time
// cannot be moved.
func binds(t *testing.T, l ratelimit.Limiter, name func() modelgate.KeyID, pause func()) {
	t.Helper()
	top, middle, leaf, other := name(), name(), name(), name()
	const slow = 1 // requests per second
	ofTop, none := modelgate.Ancestor{KeyID: top, Limits: limits(slow, 4, 2)}, limits(0, 0, 0)
	lower := below(l, modelgate.Ancestor{KeyID: middle, Limits: none}, ofTop)
	own := limits(slow, 100, 0)
	if got := len(admitted(t, lower, 3, leaf, own, ratelimit.Request)); got != 3 {
		t.Errorf("%d of 3 requests of a descendant admitted", got)
	}
	rest := len(admitted(t, below(l, ofTop), 20, middle, none, ratelimit.Request)) + len(admitted(t, l, 20, top, limits(slow, 4, 2), ratelimit.Request))
	if rest < 1 || pause != nil && rest != 1 || rest > 4 { // slow tests let tokens in
		t.Errorf("%d further requests of the line admitted, want 1", rest)
	}
	want(t, "another line", admitted(t, l, 4, other, limits(slow, 4, 2), ratelimit.Request), 4)
	if pause != nil {
		// 17 of the leaf's are refused above it: its own bucket is none the emptier.
		want(t, "refused above", admitted(t, lower, 17, leaf, own, ratelimit.Request), 0)
		want(t, "its own bucket", admitted(t, l, 100, leaf, own, ratelimit.Request), 97)
		pause()
		want(t, "the next token of the line", admitted(t, below(l, ofTop), 5, middle, none, ratelimit.Request), 1)
	}
	calls := limits(0, 0, 2)
	above := modelgate.Ancestor{KeyID: name(), Limits: calls}
	first := admitted(t, below(l, above), 5, leaf, none, ratelimit.Call)
	want(t, "calls at once of a descendant", first, 2)
	want(t, "of the ancestor beside them", admitted(t, l, 5, above.KeyID, calls, ratelimit.Call), 0)
	first[0].Release()
	want(t, "of the ancestor after one ended", admitted(t, l, 5, above.KeyID, calls, ratelimit.Call), 1)
}
