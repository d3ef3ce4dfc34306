package relay

import (
	"net/http"
	"time"
)

// pace ends the part of a call in which one side has stopped: a provider that
// sends nothing, or a client that takes nothing. Each clock runs only while
// its side is waited for, so that a slow client is not held against the
// provider.
type pace struct {
	idleFor, stuckFor time.Duration
	idle, stuck       *time.Timer
}

func (p *pace) start(c *call, idle, stuck time.Duration) {
	p.idleFor, p.stuckFor = idle, stuck
	p.idle = time.AfterFunc(idle, func() { c.client.cancel(errStalled) })
	p.stuck = time.AfterFunc(stuck, func() {
		// The write under way fails, and the call goes on as one whose client
		// has left. A connection that knows no deadlines cannot be helped.
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Unix(1, 0))
	})
	p.stuck.Stop()
}

func (p *pace) reading() { p.idle.Reset(p.idleFor) }
func (p *pace) read()    { p.idle.Stop() }
func (p *pace) writing() { p.stuck.Reset(p.stuckFor) }
func (p *pace) wrote()   { p.stuck.Stop() }

func (p *pace) stop() {
	p.idle.Stop()
	p.stuck.Stop()
}
