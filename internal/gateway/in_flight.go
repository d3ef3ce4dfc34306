package gateway

import (
	"sync"

	"modelgate/internal/life"
)

// inFlight are the upstream calls under way, in parts so that calls rarely wait
// for each other.
type inFlight struct {
	parts [16]struct {
		mu    sync.Mutex
		alive map[*life.Life]struct{}
		over  error
	}
}

func newLives() *inFlight {
	a := new(inFlight)
	for i := range a.parts {
		a.parts[i].alive = make(map[*life.Life]struct{})
	}
	return a
}

// add notes a life under any number; it ends at once after an end of all.
func (a *inFlight) add(number byte, l *life.Life) {
	p := &a.parts[number%16]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		l.End(p.over)
		return
	}
	p.alive[l] = struct{}{}
}

func (a *inFlight) remove(number byte, l *life.Life) {
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
			l.End(cause)
		}
		p.mu.Unlock()
	}
}
