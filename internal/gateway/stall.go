package gateway

import (
	"sync"
	"sync/atomic"
	"time"

	"modelgate/internal/httpx"
)

// stallTimer ends the part of a call in which one side has stopped: a provider that
// sends nothing, or a client that takes nothing; and a call that has lasted
// too long. Only the side that is waited for is timed, so that a slow client
// is not held against the provider. A timer looks now and then whether the
// side has changed; the side that stops is ended after its time and at most
// half of the shortest bound more. Timers are used again.
type stallTimer struct {
	changes atomic.Uint64 // of side; even: the provider is waited for, odd: the client

	mu      sync.Mutex
	timer   *time.Timer // made once, for check
	call    *call       // nil while not in use
	tick    time.Duration
	expires time.Time
	replied bool // a reply has begun: from then on sides are timed
	idle    time.Duration
	stuck   time.Duration
	seen    uint64 // changes when the timer last saw a new one
	since   time.Time
}

// start times a call that has not been answered yet.
func (t *stallTimer) start(c *call, lifetime, tick time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.call, t.tick, t.expires, t.replied = c, tick, c.start.Add(lifetime), false
	t.changes.Store(0)
	if t.timer == nil {
		t.timer = time.AfterFunc(tick, t.check)
	} else {
		t.timer.Reset(tick)
	}
}

// replyBegan begins to time the sides, with the provider.
func (t *stallTimer) replyBegan(idle, stuck time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle, t.stuck, t.replied = idle, stuck, true
	t.seen, t.since = t.changes.Load(), time.Now()
}

// switchSide says that the other side is waited for from now on.
func (t *stallTimer) switchSide() { t.changes.Add(1) }

// check runs when the timer fires. One that was set for an earlier call looks once more than
// it had to, which changes nothing.
func (t *stallTimer) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.call == nil {
		return
	}
	now := time.Now()
	if !now.Before(t.expires) {
		t.call.upstream.Cancel(errExpired)
	}
	if t.replied {
		t.checkSide(now)
	}
	t.timer.Reset(t.tick)
}

func (t *stallTimer) checkSide(now time.Time) {
	changes := t.changes.Load()
	client := changes&1 == 1
	switch waited := now.Sub(t.since); {
	case changes != t.seen:
		t.seen, t.since = changes, now
	case !client && waited >= t.idle:
		t.call.upstream.Cancel(errStalled)
	case client && waited >= t.stuck:
		// The write under way fails, and the call goes on as one whose client
		// has left.
		httpx.AbortWrites(t.call.w)
	}
}

// stop ends it; nothing expires from then on.
func (t *stallTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.call = nil
	t.timer.Stop()
}
