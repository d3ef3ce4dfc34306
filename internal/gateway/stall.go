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
// half of the shortest bound more. Paces are used again.
type stallTimer struct {
	changes atomic.Uint64 // of side; even: the provider is waited for, odd: the client

	mu      sync.Mutex
	timer   *time.Timer // made once, for look
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
func (p *stallTimer) start(c *call, lifetime, tick time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call, p.tick, p.expires, p.replied = c, tick, c.start.Add(lifetime), false
	p.changes.Store(0)
	if p.timer == nil {
		p.timer = time.AfterFunc(tick, p.look)
	} else {
		p.timer.Reset(tick)
	}
}

// reply begins with waiting for the provider.
func (p *stallTimer) reply(idle, stuck time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle, p.stuck, p.replied = idle, stuck, true
	p.seen, p.since = p.changes.Load(), time.Now()
}

// turn says that the other side is waited for from now on.
func (p *stallTimer) turn() { p.changes.Add(1) }

// look is the timer. One that was set for an earlier call looks once more than
// it had to, which changes nothing.
func (p *stallTimer) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.call == nil {
		return
	}
	now := time.Now()
	if !now.Before(p.expires) {
		p.call.life.Cancel(errExpired)
	}
	if p.replied {
		p.judge(now)
	}
	p.timer.Reset(p.tick)
}

func (p *stallTimer) judge(now time.Time) {
	changes := p.changes.Load()
	client := changes&1 == 1
	switch waited := now.Sub(p.since); {
	case changes != p.seen:
		p.seen, p.since = changes, now
	case !client && waited >= p.idle:
		p.call.life.Cancel(errStalled)
	case client && waited >= p.stuck:
		// The write under way fails, and the call goes on as one whose client
		// has left.
		httpx.AbortWrites(p.call.w)
	}
}

// stop ends it; nothing expires from then on.
func (p *stallTimer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call = nil
	p.timer.Stop()
}
