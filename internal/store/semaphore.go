package store

import (
	"context"
	"database/sql"
	"sync"

	"modelgate"
)

// semaphore lets few long readings run at once, so that calls find a connection
// whatever an organization asks for. Safe for concurrent use.
type semaphore struct {
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

// newTurns leaves half of the connections to others, and half of what it takes
// to other clients.
func newTurns(connections int) *semaphore {
	all := max(1, connections/2)
	return &semaphore{all: make(chan struct{}, all), ofEach: max(1, all/2), of: make(map[modelgate.ClientID]*turn)}
}

// run calls fn when it is the client's turn. The error is that of fn, or of a
// context that ended before.
func (t *semaphore) run(ctx context.Context, client modelgate.ClientID, fn func() error) error {
	own := t.join(client)
	defer t.leave(client, own)
	for _, places := range [...]chan struct{}{own.places, t.all} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fn()
}

func (t *semaphore) join(client modelgate.ClientID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.of[client]
	if own == nil {
		own = &turn{places: make(chan struct{}, t.ofEach)}
		t.of[client] = own
	}
	own.users++
	return own
}

func (t *semaphore) leave(client modelgate.ClientID, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.of, client)
	}
}

// inTurn is snapshot for what may read much on behalf of a client.
func (db *DB) inTurn(ctx context.Context, op string, client modelgate.ClientID, fn func(*sql.Tx) error) error {
	return wrap(op, db.long.run(ctx, client, func() error { return db.run(ctx, db.read, db.engine.snapshot, fn) }))
}
