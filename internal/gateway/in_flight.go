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

func newInFlight() *inFlight {
	f := new(inFlight)
	for i := range f.parts {
		f.parts[i].alive = make(map[*cancelctx.Context]struct{})
	}
	return f
}

// add notes a life under any number; it ends at once after an end of all.
func (f *inFlight) add(number byte, l *cancelctx.Context) {
	p := &f.parts[number%16]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		l.Cancel(p.over)
		return
	}
	p.alive[l] = struct{}{}
}

func (f *inFlight) remove(number byte, l *cancelctx.Context) {
	p := &f.parts[number%16]
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, l)
}

// end ends all, and all that come later.
func (f *inFlight) end(cause error) {
	for i := range f.parts {
		p := &f.parts[i]
		p.mu.Lock()
		p.over = cause
		for l := range p.alive {
			l.Cancel(cause)
		}
		p.mu.Unlock()
	}
}
