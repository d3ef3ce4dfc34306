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

// disconnectWatcher decides what becomes of a call whose client disconnects. Where
// the provider bills an abandoned call anyway, the reply is read on to its usage, for
// a bounded time and for a bounded number of calls at once. Else the call is canceled.
type disconnectWatcher struct {
	upstream *cancelctx.Context // the upstream call's
	drains   *drains            // slots of the gateway
	org      modelgate.ClientID
	limit    time.Duration
	gauge    prometheus.Gauge // drains under way

	mu     sync.Mutex
	drain  bool        // the on_disconnect of the provider being tried
	goesOn bool        // the call goes on whoever leaves
	gone   atomic.Bool // set with mu held
	slot   bool
	timer  *time.Timer
}

// setPolicy sets what becomes of the call when its client leaves from now on.
func (w *disconnectWatcher) setPolicy(d provider.Disconnect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain = d == provider.Drain
}

// keepGoing has the call go on to its end from now on, without a slot: it makes a
// job that the provider charges and delivers whoever waits for the reply, and
// that nobody can follow whose name was not read.
func (w *disconnectWatcher) keepGoing() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.goesOn = true
}

// left notes that the client has gone. It is called from the connection's
// goroutine and from a failed write, and acts once.
func (w *disconnectWatcher) left() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone.Swap(true) || w.goesOn {
		return
	}
	if w.drain && w.drains.take(w.org) {
		w.slot = true
		w.gauge.Inc()
		w.timer = time.AfterFunc(w.limit, func() { w.upstream.Cancel(errLeft) })
		return
	}
	w.upstream.Cancel(errLeft)
}

func (w *disconnectWatcher) hasLeft() bool { return w.gone.Load() }

// release gives the slot of a drain back.
func (w *disconnectWatcher) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone.Store(true)
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.slot {
		w.slot = false
		w.gauge.Dec()
		w.drains.give(w.org)
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
