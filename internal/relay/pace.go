package relay

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// pace ends the part of a call in which one side has stopped: a provider that
// sends nothing, or a client that takes nothing. Only the side that is waited
// for is timed, so that a slow client is not held against the provider. A
// timer looks now and then whether the side has changed; the side that stops
// is ended after its time and at most half of the shorter one more.
type pace struct {
	changes atomic.Uint64 // of side; even: the provider is waited for, odd: the client
	call    *call
	bounds  [2]time.Duration
	tick    time.Duration

	mu    sync.Mutex
	over  bool
	timer *time.Timer
	seen  uint64 // changes when the timer last saw a new one
	since time.Time
}

// start begins with waiting for the provider.
func (p *pace) start(c *call, idle, stuck time.Duration) {
	p.call, p.bounds, p.tick = c, [2]time.Duration{idle, stuck}, min(idle, stuck)/4
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
	p.timer = time.AfterFunc(p.tick, p.look)
}

// turn says that the other side is waited for from now on.
func (p *pace) turn() { p.changes.Add(1) }

// look is the timer.
func (p *pace) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	now, changes := time.Now(), p.changes.Load()
	client := changes&1 == 1
	switch waited := now.Sub(p.since); {
	case changes != p.seen:
		p.seen, p.since = changes, now
	case !client && waited >= p.bounds[0]:
		p.call.client.cancel(errStalled)
	case client && waited >= p.bounds[1]:
		// The write under way fails, and the call goes on as one whose client
		// has left. A connection that knows no deadlines cannot be helped.
		_ = http.NewResponseController(p.call.w).SetWriteDeadline(time.Unix(1, 0))
	}
	p.timer.Reset(p.tick)
}

// stop ends it; nothing expires from then on.
func (p *pace) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
}
