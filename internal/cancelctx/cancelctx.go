// Package cancelctx has what the gateway needs beside package context: Sleep, and a
// cancelable context for calls, which mostly end without
// anybody having waited for their cancellation. A call has two, one for its client
// and one for the request to the provider. Those of the standard library cost a call
// 2 µs and 12 allocations more.
package cancelctx

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Context is a context that Cancel cancels. Who waits for that is mostly one
// connection, which a function serves with less effort than a channel and a tree
// of contexts. The zero value is ready; it must not be copied. Safe for concurrent
// use.
type Context struct {
	mu     sync.Mutex
	cause  error
	done   chan struct{} // made when somebody asks for it
	after  []callback
	array  [2]callback // the first memory of after
	lastID int
}

// callback is a function to call once the context is canceled.
type callback struct {
	id int
	do func()
}

// Cancel cancels the context for a reason that is not nil; the first one counts.
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	c.cause = cause
	if c.done != nil {
		close(c.done)
	}
	after := c.after
	c.after = nil
	c.mu.Unlock()
	for _, f := range after {
		go f.do()
	}
}

// Cause is why the context was canceled, nil while it is not.
func (c *Context) Cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// AfterFunc calls do in its own goroutine once the context is canceled, unless
// stop is called before. context.AfterFunc and contexts derived from this one use
// it.
func (c *Context) AfterFunc(do func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		go do()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = c.array[:0]
	}
	c.lastID++
	id := c.lastID
	c.after = append(c.after, callback{id, do})
	return func() bool { return c.remove(id) }
}

func (c *Context) remove(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.after)
	c.after = slices.DeleteFunc(c.after, func(f callback) bool { return f.id == id })
	return len(c.after) < before
}

// Deadline reports that there is none.
func (c *Context) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed when the context is canceled.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.cause != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err is context.Canceled once the context is canceled.
func (c *Context) Err() error {
	if c.Cause() != nil {
		return context.Canceled
	}
	return nil
}

// Value returns nil.
func (c *Context) Value(any) any { return nil }

// AfterFunc is context.AfterFunc, without a channel where the context is a
// *Context.
func AfterFunc(ctx context.Context, do func()) (stop func() bool) {
	if c, ok := ctx.(*Context); ok {
		return c.AfterFunc(do)
	}
	return context.AfterFunc(ctx, do)
}

// Sleep waits for d. It ends early with the context's error. A d that is not above 0
// returns nil at once.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
