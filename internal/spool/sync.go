package spool

import (
	"fmt"
	"sync"
	"time"
)

// syncer lets one of those who wait sync for all of them. Amounts are bytes
// appended in this life.
type syncer struct {
	mu     sync.Mutex
	done   sync.Cond // what is below has changed
	synced int64
	busy   bool  // one is syncing
	failed error // once set, nothing is synced any more
}

func (y *syncer) init() { y.done.L = &y.mu }

// take waits until a sync has covered the target, or until it is the caller
// who has to sync: lead is true and finish must be called.
func (y *syncer) take(target int64) (lead bool, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.busy && y.synced < target && y.failed == nil {
		y.done.Wait()
	}
	switch {
	case y.synced >= target:
		return false, nil
	case y.failed != nil:
		return false, y.failed
	}
	y.busy = true
	return true, nil
}

// finish tells those who wait how far the caller's sync has come.
func (y *syncer) finish(synced int64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.synced = max(y.synced, synced)
	y.busy = false
	y.done.Broadcast()
}

// abort ends all syncing: who waits gets the error.
func (y *syncer) abort(err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.failed == nil {
		y.failed = err
	}
	y.busy = false
	y.done.Broadcast()
}

// sync returns once everything up to the target is durable. A goroutine that
// syncs by itself, rather than have another one do it, saves a lone call two
// changes of the goroutine, which take as long as the sync.
func (s *Spool) sync(target int64) error {
	lead, err := s.syncs.take(target)
	if !lead {
		return err
	}
	synced, err := s.syncDirty()
	if err != nil {
		err = fmt.Errorf("spool: sync: %w", err)
		s.die(err)
		return err
	}
	s.syncs.finish(synced)
	return nil
}

// syncLoop has whatever was written synced within the interval. With Always
// too: nobody waits for the BEGIN of a long call, and it should not have to
// wait for another call's END. While nothing is written it sleeps.
func (s *Spool) syncLoop() {
	interval := time.NewTimer(syncInterval)
	defer interval.Stop()
	for {
		select {
		case <-s.written:
		case <-s.closed:
			return
		}
		interval.Reset(syncInterval)
		select {
		case <-interval.C:
		case <-s.closed:
			return
		}
		s.mu.Lock()
		appended := s.appended
		s.due = false
		s.mu.Unlock()
		if s.sync(appended) != nil {
			return
		}
	}
}

// wrote notes that a segment has to be synced, within the interval at the
// latest. The lock is held.
func (s *Spool) wrote(seg *segment) {
	seg.dirty = true
	if !s.due {
		s.due = true
		s.written <- struct{}{} // room for it there is: a token was taken before due fell
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
