package worker

import (
	"context"
	"sync"
	"time"
)

// rateLimiter spaces calls of several goroutines. The zero value is ready.
type rateLimiter struct {
	mu   sync.Mutex
	next time.Time // when the next call may be made
}

// wait returns when it is the caller's turn, gap after the one before, or when
// the context ends.
func (p *rateLimiter) wait(ctx context.Context, gap time.Duration) {
	p.mu.Lock()
	now := time.Now()
	turn := p.next
	if turn.Before(now) {
		turn = now
	}
	p.next = turn.Add(gap)
	p.mu.Unlock()
	if turn.Equal(now) {
		return
	}
	timer := time.NewTimer(turn.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
