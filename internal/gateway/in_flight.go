package gateway

import (
	"sync"

	"modelgate/internal/cancelctx"
)

// inFlight are the upstream calls under way, in parts so that calls rarely wait
// for each other.
type inFlight struct {
	parts [16]struct {
		mu    sync.Mutex
		alive map[*cancelctx.Context]struct{}
		over  error
	}
}

func newLives() *inFlight {
	a := new(inFlight)
	for i := range a.parts {
		a.parts[i].alive = make(map[*cancelctx.Context]struct{})
	}
	return a
}

// add notes a life under any number; it ends at once after an end of all.
func (a *inFlight) add(number byte, l *cancelctx.Context) {
	p := &a.parts[number%16]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		l.Cancel(p.over)
		return
	}
	p.alive[l] = struct{}{}
}

func (a *inFlight) remove(number byte, l *cancelctx.Context) {
	p := &a.parts[number%16]
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, l)
}

// end ends all, and all that come later.
func (a *inFlight) end(cause error) {
	for i := range a.parts {
		p := &a.parts[i]
		p.mu.Lock()
		p.over = cause
		for l := range p.alive {
			l.Cancel(cause)
		}
		p.mu.Unlock()
	}
}
