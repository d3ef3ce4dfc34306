package spool

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// syncer lets one goroutine sync for all who wait. Amounts are bytes appended
// in this life.
type syncer struct {
	mu      sync.Mutex
	done    sync.Cond // synced, failed or stopped has changed
	asked   sync.Cond // wanted, closing or stopped has changed
	wanted  int64
	synced  int64
	failed  error
	closing bool
	stopped bool
}

func (y *syncer) init() { y.done.L, y.asked.L = &y.mu, &y.mu }

// wait returns once a sync has covered the target.
func (y *syncer) wait(target int64) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.want(target)
	for y.synced < target && !y.stopped {
		y.done.Wait()
	}
	switch {
	case y.synced >= target:
		return nil
	case y.failed != nil:
		return y.failed
	}
	return errors.New("spool: closed before the entry was synced")
}

// ask has a sync cover the target, without waiting for it.
func (y *syncer) ask(target int64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.want(target)
}

func (y *syncer) want(target int64) {
	if target > y.wanted {
		y.wanted = target
		y.asked.Signal()
	}
}

// stop ends the loop after a last sync and returns that one's error.
func (y *syncer) stop() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.closing = true
	y.asked.Signal()
	for !y.stopped {
		y.done.Wait()
	}
	return y.failed
}

// abort ends the loop without another sync: who waits gets the error.
func (y *syncer) abort(err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.failed == nil {
		y.failed = err
	}
	y.stopped = true
	y.asked.Signal()
	y.done.Broadcast()
}

// next waits until a sync is due. It reports whether that is the last one, or
// that there is to be none any more.
func (y *syncer) next() (last, stopped bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.wanted <= y.synced && !y.closing && !y.stopped {
		y.asked.Wait()
	}
	return y.closing, y.stopped
}

// finish tells those who wait how far a sync has come.
func (y *syncer) finish(synced int64, last bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.synced = max(y.synced, synced)
	y.stopped = y.stopped || last
	y.done.Broadcast()
}

// syncLoop is the one goroutine that syncs. It ends with Close or with the
// first failure.
func (s *Spool) syncLoop() {
	for {
		last, stopped := s.syncs.next()
		if stopped {
			return
		}
		synced, err := s.syncDirty()
		if err != nil {
			s.die(fmt.Errorf("spool: sync: %w", err))
			return
		}
		s.syncs.finish(synced, last)
		if last {
			return
		}
	}
}

// tickLoop has whatever was appended synced within the interval. With Always
// too: nobody waits for the BEGIN of a long call, and it should not have to
// wait for another call's END.
func (s *Spool) tickLoop() {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.mu.Lock()
			appended := s.appended
			s.mu.Unlock()
			s.syncs.ask(appended)
		case <-s.closed:
			return
		}
	}
}

// die makes a failure final: nothing is accepted any more, everybody who
// waits gets the error, and Fatal is called, once.
func (s *Spool) die(err error) {
	s.mu.Lock()
	again := s.dead
	s.dead = true
	if !again {
		s.failed = err
	}
	s.roomAsked.Broadcast()
	s.roomMade.Broadcast()
	s.mu.Unlock()
	if again {
		return
	}
	s.syncs.abort(err)
	if s.Fatal != nil {
		s.Fatal(err)
	}
}

// synced closes what was released during a sync.
func (s *Spool) synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncing = false
	for _, file := range s.released {
		if err := file.Close(); err != nil {
			s.Log.Warn("released spool segment could not be closed", "error", err)
		}
	}
	s.released = nil
}

// syncDirty syncs every segment written to since its last sync and returns
// how many bytes of this life are then durable.
func (s *Spool) syncDirty() (int64, error) {
	s.mu.Lock()
	covered := s.appended
	var dirty []*segment
	for _, seg := range s.segments {
		if seg.dirty {
			seg.dirty = false
			dirty = append(dirty, seg)
		}
	}
	s.syncing = true
	s.mu.Unlock()
	defer s.synced()
	begin := time.Now()
	for _, seg := range dirty {
		if err := seg.file.Sync(); err != nil {
			return 0, err
		}
		s.stats.fsyncs.Add(1)
	}
	if len(dirty) > 0 {
		s.stats.lastSync.Store(int64(time.Since(begin)))
	}
	return covered, nil
}
