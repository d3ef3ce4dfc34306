package sqldb

import (
	"context"
	"sync"

	"modelgate"
)

// Semaphore lets few long readings run at once, so that calls find a connection
// whatever an organization asks for. Safe for concurrent use.
type Semaphore struct {
	all    chan struct{} // has as many places as may run
	ofEach int           // of one client

	mu sync.Mutex
	of map[modelgate.ClientID]*turn // of clients that have one, or wait for it
}

// turn is what one client has of the turns.
type turn struct {
	places chan struct{}
	users  int // that have a place or wait for one
}

// NewSemaphore leaves half of the connections to others, and half of what it takes
// to other clients.
func NewSemaphore(connections int) *Semaphore {
	all := max(1, connections/2)
	return &Semaphore{all: make(chan struct{}, all), ofEach: max(1, all/2), of: make(map[modelgate.ClientID]*turn)}
}

// Run calls fn when it is the client's turn. The error is that of fn, or of a
// context that ended before.
func (s *Semaphore) Run(ctx context.Context, client modelgate.ClientID, fn func() error) error {
	own := s.join(client)
	defer s.release(client, own)
	for _, places := range [...]chan struct{}{own.places, s.all} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fn()
}

func (s *Semaphore) join(client modelgate.ClientID) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[client]
	if own == nil {
		own = &turn{places: make(chan struct{}, s.ofEach)}
		s.of[client] = own
	}
	own.users++
	return own
}

func (s *Semaphore) release(client modelgate.ClientID, own *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.of, client)
	}
}
