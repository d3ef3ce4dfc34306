package relay

import (
	"context"
	"slices"
	"sync"
	"time"
)

// life is the context of an upstream call. Mostly nobody but the connection
// waits for its end, which a plain function serves with less effort than a
// channel and a tree of contexts. The zero value is alive. Safe for concurrent
// use.
type life struct {
	mu    sync.Mutex
	cause error
	done  chan struct{} // made when somebody asks for it
	then  []epilogue
	last  int
}

// epilogue is a function to call at the end.
type epilogue struct {
	id int
	do func()
}

// end ends the life, for a reason; the first one stands.
func (l *life) end(cause error) {
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return
	}
	l.cause = cause
	if l.done != nil {
		close(l.done)
	}
	then := l.then
	l.then = nil
	l.mu.Unlock()
	for _, e := range then {
		go e.do()
	}
}

// Cause is why it ended, nil while it has not.
func (l *life) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// AfterFunc is what context.AfterFunc asks of a context of one's own.
func (l *life) AfterFunc(do func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		go do()
		return func() bool { return false }
	}
	l.last++
	id := l.last
	l.then = append(l.then, epilogue{id, do})
	return func() bool { return l.forget(id) }
}

func (l *life) forget(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.then)
	l.then = slices.DeleteFunc(l.then, func(e epilogue) bool { return e.id == id })
	return len(l.then) < before
}

// Deadline is none: what bounds a call looks at it from outside.
func (l *life) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed at the end.
func (l *life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.cause != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err is context.Canceled once it has ended.
func (l *life) Err() error {
	if l.Cause() != nil {
		return context.Canceled
	}
	return nil
}

// Value is none.
func (l *life) Value(any) any { return nil }

// lives are the upstream calls under way, in parts so that calls rarely wait
// for each other.
type lives struct {
	parts [16]struct {
		mu    sync.Mutex
		alive map[*life]struct{}
		over  error
	}
}

func newLives() *lives {
	a := new(lives)
	for i := range a.parts {
		a.parts[i].alive = make(map[*life]struct{})
	}
	return a
}

// add notes a life under any number; it ends at once after an end of all.
func (a *lives) add(number byte, l *life) {
	p := &a.parts[number%16]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		l.end(p.over)
		return
	}
	p.alive[l] = struct{}{}
}

func (a *lives) remove(number byte, l *life) {
	p := &a.parts[number%16]
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, l)
}

// end ends all, and all that come later.
func (a *lives) end(cause error) {
	for i := range a.parts {
		p := &a.parts[i]
		p.mu.Lock()
		p.over = cause
		for l := range p.alive {
			l.end(cause)
		}
		p.mu.Unlock()
	}
}
