package gateway

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/cancelctx"
	"modelgate/internal/provider"
)

// disconnectWatcher watches for the client's departure. From then on the reply is read
// for the books alone: to its usage where the provider bills an abandoned
// call anyway, for a bounded time and for a bounded number of calls at once.
type disconnectWatcher struct {
	life   *cancelctx.Context // the upstream call's
	drains *drains            // slots of the gateway
	org    modelgate.ClientID
	limit  time.Duration
	gauge  prometheus.Gauge // drains under way

	mu    sync.Mutex
	drain bool        // the on_disconnect of the provider being tried
	stays bool        // the call goes on whoever leaves
	gone  atomic.Bool // set with mu held
	slot  bool
	timer *time.Timer
}

// when sets what becomes of the call when its client leaves from now on.
func (l *disconnectWatcher) when(d provider.Disconnect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drain = d == provider.Drain
}

// stay has the call go on to its end from now on, without a slot: it makes a
// job that the provider charges and delivers whoever waits for the reply, and
// that nobody can follow whose name was not read.
func (l *disconnectWatcher) stay() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stays = true
}

// leave notes that the client has gone. It is called from the connection's
// goroutine and from a failed write, and acts once.
func (l *disconnectWatcher) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone.Swap(true) {
		return
	}
	if l.stays {
		return
	}
	if l.drain {
		if l.drains.take(l.org) {
			l.slot = true
			l.gauge.Inc()
			l.timer = time.AfterFunc(l.limit, func() { l.life.Cancel(errLeft) })
			return
		}
	}
	l.life.Cancel(errLeft)
}

func (l *disconnectWatcher) hasLeft() bool { return l.gone.Load() }

// close gives the drain's slot back.
func (l *disconnectWatcher) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone.Store(true)
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.slot {
		l.slot = false
		l.gauge.Dec()
		l.drains.give(l.org)
	}
}

// drains are the slots for replies that are read on after their clients have
// left. One organization has at most half of those that the others leave free,
// so that one whose clients leave all the time takes no slot of another's. It
// is safe for concurrent use.
type drains struct {
	mu    sync.Mutex
	slots int
	taken int
	by    map[modelgate.ClientID]int
}

func newDrains(slots int) *drains {
	return &drains{slots: slots, by: make(map[modelgate.ClientID]int)}
}

// take takes a slot where the organization may have another.
func (d *drains) take(org modelgate.ClientID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	mine := d.by[org]
	free := d.slots - (d.taken - mine)
	if mine >= (free+1)/2 {
		return false
	}
	d.by[org]++
	d.taken++
	return true
}

// give gives a slot back.
func (d *drains) give(org modelgate.ClientID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken--
	if d.by[org]--; d.by[org] == 0 {
		delete(d.by, org)
	}
}
