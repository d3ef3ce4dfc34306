package http1server

import (
	"context"
	"sync"
	"time"
)

// watchAfter is how long a call is under way before its client is watched. Most
// calls that are answered at once never are; a client that leaves is noticed
// this much later at most.
const watchAfter = 250 * time.Millisecond

// watch notices that the client has left while its call is under way: the
// connection is read, from which nothing is to come. The zero value watches
// nothing.
type watch struct {
	mu      sync.Mutex
	timer   *time.Timer  // made once, for look
	call    *transaction // nil while there is none to watch
	reading bool
	early   [1]byte       // of the next request
	came    bool          // early has been read
	stopped chan struct{} // made by who waits for the reading to end
}

// start watches over a call whose body has been read.
func (w *watch) start(t *transaction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.call = t
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, func() { w.look(t.c) })
	} else {
		w.timer.Reset(watchAfter)
	}
}

// look is the timer. One that was set for an earlier call looks a little early
// after the next.
func (w *watch) look(c *conn) {
	w.mu.Lock()
	t := w.call
	if t == nil || w.reading || w.came || c.in.full() {
		w.mu.Unlock()
		return
	}
	w.reading = true
	c.readUntil(time.Time{})
	w.mu.Unlock()

	n, err := c.raw.Read(w.early[:])

	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = false
	w.came = n > 0
	if w.stopped != nil {
		close(w.stopped)
		return
	}
	if err != nil {
		t.life.Cancel(context.Canceled)
	}
}

// stop ends the watch. From then on the connection is its goroutine's alone.
func (w *watch) stop(c *conn) {
	w.mu.Lock()
	if w.call == nil {
		w.mu.Unlock()
		return
	}
	w.call = nil
	w.timer.Stop()
	if !w.reading {
		w.mu.Unlock()
		return
	}
	stopped := make(chan struct{})
	w.stopped = stopped
	c.readUntil(time.Unix(1, 0))
	w.mu.Unlock()
	<-stopped
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = nil
	c.readUntil(time.Time{})
}

// giveBack adds to the connection's input what was read while it was watched.
// The watch must have stopped.
func (w *watch) giveBack(in *input) {
	if w.came {
		w.came = false
		in.push(w.early[0])
	}
}
