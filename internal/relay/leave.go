package relay

import (
	"context"
	"sync"
	"time"
)

// leaving watches for the client's departure. From then on the reply is read
// for the books alone: to its usage where the provider bills an abandoned
// call anyway, for a bounded time and for a bounded number of calls at once.
type leaving struct {
	cancel context.CancelCauseFunc // ends the upstream call
	drains chan struct{}           // slots of the relay
	limit  time.Duration
	drain  bool // the provider's on_disconnect

	mu    sync.Mutex
	gone  bool
	slot  bool
	timer *time.Timer
}

// leave notes that the client has gone. It is called from the connection's
// goroutine and from a failed write, and acts once.
func (l *leaving) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	l.gone = true
	if l.drain {
		select {
		case l.drains <- struct{}{}:
			l.slot = true
			l.timer = time.AfterFunc(l.limit, func() { l.cancel(errLeft) })
			return
		default:
		}
	}
	l.cancel(errLeft)
}

func (l *leaving) hasLeft() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// close gives the drain's slot back.
func (l *leaving) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.slot {
		l.slot = false
		<-l.drains
	}
}
