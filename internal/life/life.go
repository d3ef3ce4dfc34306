// Package life has the context of something that mostly ends without anybody
// having waited for its end: a client's call, and the call to the provider that
// is made for it.
package life

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Life is a context. Who waits for its end mostly is one connection, which a
// plain function serves with less effort than a channel and a tree of
// contexts. The zero value is alive; it must not be copied. Safe for
// concurrent use.
type Life struct {
	mu    sync.Mutex
	cause error
	done  chan struct{} // made when somebody asks for it
	then  []epilogue
	room  [2]epilogue // for then
	last  int
}

// epilogue is a function to call at the end.
type epilogue struct {
	id int
	do func()
}

// End ends the life, for a reason that is not nil; the first one stands.
func (l *Life) End(cause error) {
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
func (l *Life) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// AfterFunc is what context.AfterFunc asks of a context that has its own way:
// do is called in its own goroutine at the end, unless stop came first.
func (l *Life) AfterFunc(do func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		go do()
		return func() bool { return false }
	}
	if l.then == nil {
		l.then = l.room[:0]
	}
	l.last++
	id := l.last
	l.then = append(l.then, epilogue{id, do})
	return func() bool { return l.forget(id) }
}

func (l *Life) forget(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.then)
	l.then = slices.DeleteFunc(l.then, func(e epilogue) bool { return e.id == id })
	return len(l.then) < before
}

// Deadline is none: what bounds a life looks at it from outside.
func (l *Life) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed at the end.
func (l *Life) Done() <-chan struct{} {
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
func (l *Life) Err() error {
	if l.Cause() != nil {
		return context.Canceled
	}
	return nil
}

// Value is none.
func (l *Life) Value(any) any { return nil }

// AfterFunc is context.AfterFunc, without a channel where the context is a
// Life.
func AfterFunc(ctx context.Context, do func()) (stop func() bool) {
	if l, ok := ctx.(*Life); ok {
		return l.AfterFunc(do)
	}
	return context.AfterFunc(ctx, do)
}
