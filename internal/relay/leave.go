package relay

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate/internal/life"
	"modelgate/internal/provider"
)

// leaving watches for the client's departure. From then on the reply is read
// for the books alone: to its usage where the provider bills an abandoned
// call anyway, for a bounded time and for a bounded number of calls at once.
type leaving struct {
	life   *life.Life    // the upstream call's
	drains chan struct{} // slots of the relay
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
func (l *leaving) when(d provider.Disconnect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drain = d == provider.Drain
}

// stay has the call go on to its end from now on, without a slot: it makes a
// job that the provider charges and delivers whoever waits for the reply, and
// that nobody can follow whose name was not read.
func (l *leaving) stay() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stays = true
}

// leave notes that the client has gone. It is called from the connection's
// goroutine and from a failed write, and acts once.
func (l *leaving) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone.Swap(true) {
		return
	}
	if l.stays {
		return
	}
	if l.drain {
		select {
		case l.drains <- struct{}{}:
			l.slot = true
			l.gauge.Inc()
			l.timer = time.AfterFunc(l.limit, func() { l.life.End(errLeft) })
			return
		default:
		}
	}
	l.life.End(errLeft)
}

func (l *leaving) hasLeft() bool { return l.gone.Load() }

// close gives the drain's slot back.
func (l *leaving) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone.Store(true)
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.slot {
		l.slot = false
		l.gauge.Dec()
		<-l.drains
	}
}
